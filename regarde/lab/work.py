"""A lab from beginning to end: settle, train, measure, report."""

from __future__ import annotations

from pathlib import Path

from regarde.data.corpus import Report as Reading
from regarde.evaluation.evaluate import suited
from regarde.evaluation.metrics import require
from regarde.evaluation.testset import TestSet
from regarde.lab import pictures
from regarde.lab import plan as plans
from regarde.lab.bench import Watcher, bench
from regarde.lab.markdown import markdown
from regarde.lab.measure import gold_links
from regarde.lab.page import page
from regarde.lab.plan import Plan
from regarde.lab.report import Report, report
from regarde.lab.wish import Wish, hold_out, settle
from regarde.visualise.picture import Canvas
from regarde.visualise.style import LIGHT


def work(wish: Wish, watcher: Watcher) -> Report:
    """Do what is asked for, or go on with it; what would be missing at the end is said at the beginning."""
    Canvas.empty(LIGHT, 1.0, 1.0)  # needs matplotlib
    plan = settle(wish)
    with bench(wish.out) as place:
        for report in hold_out(wish):
            _tell(report, watcher)
        testset = plan.testset()
        _tell(testset.report, watcher)
        gold_links(plan, testset)
        require([*suited(testset).metrics, "chrf"])
        plans.write(wish.out, plan)
        watcher.planned(list(plan.models))
        place.work(plan, watcher)
        return _written(wish.out, plan, testset)


def _tell(read: Reading, watcher: Watcher) -> None:
    for note in read.notes():
        watcher.noted(note)


def _written(folder: Path, plan: Plan, testset: TestSet) -> Report:
    found = report(folder, plan, testset)
    charts = list(pictures.charts(found))
    drawn = [*charts, *pictures.alignments(found)]
    for picture in drawn:
        picture.save(folder / pictures.FOLDER)
    plans.save(folder / "report.md", markdown(found, drawn))
    plans.save(folder / "index.html", page(found, charts))
    plans.save(folder / "report.json", found.as_json())
    return found
