"""A lab from beginning to end: plan, train, measure, report."""

from __future__ import annotations

import warnings
from pathlib import Path

from regarde.data.corpus import Report
from regarde.errors import RegardeError, RegardeWarning
from regarde.evaluation.compare import judging_rows
from regarde.evaluation.evaluate import suited
from regarde.evaluation.metrics import require
from regarde.evaluation.testset import TestSet
from regarde.lab import pictures
from regarde.lab import plan as plans
from regarde.lab.markdown import markdown
from regarde.lab.measure import gold_links
from regarde.lab.page import page
from regarde.lab.plan import LabPlan
from regarde.lab.processes import LabObserver, lab_processes
from regarde.lab.report import LabReport, report
from regarde.lab.request import LabRequest, hold_out, planned
from regarde.visualize.picture import Canvas
from regarde.visualize.style import LIGHT


def run_lab(request: LabRequest, observer: LabObserver) -> LabReport:
    """Run a lab, or resume it; missing packages are reported before any model is trained."""
    plan = planned(request)
    drawing = _can_draw()
    with lab_processes(request.out) as processes:
        for report in hold_out(request):
            _note(report, observer)
        testset = plan.testset()
        _note(testset.report, observer)
        gold_links(plan, testset)
        require([*suited(testset).metrics, judging_rows(testset).name])
        plans.write(request.out, plan)
        observer.planned(list(plan.models))
        processes.run(plan, observer)
        return _written(request.out, plan, testset, drawing)


def _note(read: Report, observer: LabObserver) -> None:
    for note in read.notes():
        observer.noted(note)


def _can_draw() -> bool:
    """Whether the report gets pictures, which need matplotlib."""
    try:
        Canvas.empty(LIGHT, 1.0, 1.0)
    except RegardeError as error:
        later = "The report will have no charts; once it is installed, the same command adds them."
        warnings.warn(f"{error} {later}", RegardeWarning, stacklevel=2)
        return False
    return True


def _written(folder: Path, plan: LabPlan, testset: TestSet, drawing: bool) -> LabReport:
    found = report(folder, plan, testset)
    charts = list(pictures.charts(found)) if drawing else []
    drawn = [*charts, *pictures.alignments(found)] if drawing else []
    for picture in drawn:
        picture.save(folder / pictures.FOLDER)
    plans.save(folder / "report.md", markdown(found, drawn))
    plans.save(folder / "index.html", page(found, charts))
    plans.save(folder / "report.json", found.as_json())
    return found
