"""A lab from beginning to end: settle, train, measure, report."""

from __future__ import annotations

import warnings
from pathlib import Path

from regarde.data.corpus import Report as Reading
from regarde.errors import RegardeError, RegardeWarning
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
    plan = settle(wish)
    drawing = _can_draw()
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
        return _written(wish.out, plan, testset, drawing)


def _tell(read: Reading, watcher: Watcher) -> None:
    for note in read.notes():
        watcher.noted(note)


def _can_draw() -> bool:
    """Whether the report gets pictures; a lab without matplotlib measures all the same."""
    try:
        Canvas.empty(LIGHT, 1.0, 1.0)
    except RegardeError as error:
        later = "The report will have its tables and no charts; once installed, the same command adds them."
        warnings.warn(f"{error} {later}", RegardeWarning, stacklevel=2)
        return False
    return True


def _written(folder: Path, plan: Plan, testset: TestSet, drawing: bool) -> Report:
    found = report(folder, plan, testset)
    charts = list(pictures.charts(found)) if drawing else []
    drawn = [*charts, *pictures.alignments(found)] if drawing else []
    for picture in drawn:
        picture.save(folder / pictures.FOLDER)
    plans.save(folder / "report.md", markdown(found, drawn))
    plans.save(folder / "index.html", page(found, charts))
    plans.save(folder / "report.json", found.as_json())
    return found
