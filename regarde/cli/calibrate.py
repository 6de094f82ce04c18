"""`regarde calibrate`: make the probabilities of a classifier match how often it is right."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from regarde.cli import options
from regarde.cli.evaluate import read_for
from regarde.cli.options import open_run, option
from regarde.display.tables import json_line, table
from regarde.errors import UsageError, counted, warn
from regarde.streaming.streams import tell, write


def calibrate(
    run: options.Run,
    data: options.Data = "",
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    out: Annotated[Path | None, option("FOLDER", "Model folder to create. Default: RUN-calibrated.")] = None,
    as_json: options.AsJson = False,
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Calibrate a classifier: fit one temperature to validation data, and divide the logits by it (Guo et al. 2017).

    The answers stay the same; their probabilities come closer to how often the answers are right. Calibrate with texts
    that the model was not trained on, and test with others. The weights of the output layer of a new model are divided
    by the temperature, so the new model is as fast.

    Example: regarde calibrate runs/languages --data valid.tsv
    """
    from regarde.evaluation.calibrate import fit
    from regarde.evaluation.testset import Origin
    from regarde.folder.calibrate import calibrate as written
    from regarde.folder.calibrate import check

    origin = Origin(data, None, (), columns, False, header, quotes, on_error)
    translator = open_run(run, device="cpu", engine=engine, threads=threads)
    if not translator.task.calibrates:
        raise UsageError(f"{run}: {translator.task.noun}, expected a classifier. Only labels are calibrated.")
    named = run if run.name not in ("", "..") else run.resolve()
    made = out or named.with_name(f"{named.name}-calibrated")
    check(run, made)
    found = fit(translator, read_for(translator.task, origin, run))
    written(run, made, found.temperature)
    if found.left_out:
        warn(f"warning: {counted(found.left_out, 'text')} with a label never seen in training left out")
    if found.limited:
        warn(f"warning: the temperature is at its limit, {found.temperature:g}: too few texts, or all of them right")
    if as_json:
        write([json_line({"run": str(run), "out": str(made), **asdict(found)})])
        return
    rows = [
        ["nats per label", *(f"{value:.4f}" for value in found.loss)],
        ["expected calibration error", *(f"{value:.1%}" for value in found.error)],
    ]
    tell([f"temperature {found.temperature:.3f}, fitted to {counted(found.texts, 'text')}\n\n"])
    tell(table(["", "before", "after"], rows))
    warn(f"the calibrated model is in {made}")
