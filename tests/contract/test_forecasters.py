"""What every forecaster promises: engines agree, padding and company change nothing, a folder is the whole model."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import regarde
from regarde.data.series import SeriesSet
from regarde.errors import DataError, FolderError, RegardeError, UsageError
from regarde.forecast import Forecaster
from regarde.native import library
from regarde.training.start import train

MODELS = {
    "deepar": ["model.kind=deepar", "model.layers=2", "model.embedding=3", "model.skip=true", "task.direct=false"],
    "deepar-paper": ["model.kind=deepar", "model.layers=1", "model.embedding=0", "task.scaling=paper"],
    "counts": ["model.kind=deepar", "model.likelihood=negative-binomial", "task.scaling=paper", "task.direct=false"],
    "gru": ["model.kind=forecaster", "model.cell=gru", "model.likelihood=gaussian", "task.direct=false"],
    "attentive": ["model.kind=forecaster", "model.layers=2", "task.direct=true", "model.embedding=2"],
    "additive": ["model.kind=forecaster", "model.attention.score.kind=additive", "model.attention.score.size=5"],
}
SIZES = [
    "model.hidden=6",
    "training.steps=4",
    "training.valid_every=2",
    "training.batch_pairs=7",
    "training.batch_tokens=0",
]
WINDOWS = ["task.horizon=5", "task.history=12", "task.season=6", "task.lags=[3, 6]"]


def series_file(path: Path, *, more: int = 0) -> Path:
    """Counts with a season of 6, one of the series shorter than the history, one with gaps."""
    dice = np.random.default_rng(5)
    rows = ["time,series,value"]
    for name, count in (("a", 60), ("b", 50), ("short", 16), ("gaps", 40)):
        hours = np.datetime64("2024-03-01T00") + np.arange(count + more)
        values = np.rint(20 + 10 * np.sin(np.arange(count + more) * np.pi / 3) + dice.normal(size=count + more))
        rows += [
            f"{hour},{name},{value:.0f}"
            for n, (hour, value) in enumerate(zip(hours, values, strict=True))
            if name != "gaps" or n % 9 != 4
        ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp(request.param)
    data = series_file(home / "data.csv")
    return train(data, settings=[*MODELS[request.param], *WINDOWS, *SIZES], out=home / "run", threads=1).folder


def paths(model: Forecaster, **given: object) -> dict[str, np.ndarray]:
    return {one.series: one.paths for one in model.forecast(paths=7, **given)}  # type: ignore[arg-type]


def test_the_engine_without_torch_agrees_with_torch(run: Path) -> None:
    native, reference = regarde.load(run), regarde.load(run, engine="torch")
    assert (native.engine.name, reference.engine.name) == ("native", "torch")
    for one, other in zip(native.forecast(paths=7), reference.forecast(paths=7), strict=True):
        assert np.allclose(one.paths, other.paths, rtol=1e-4, atol=1e-4)
        assert np.allclose(one.attention, other.attention, atol=1e-5)


def test_without_the_library_numpy_gives_the_same(run: Path) -> None:
    before = paths(regarde.load(run))
    with library.switched_off():
        after = paths(regarde.load(run))
    assert all(np.allclose(before[name], after[name], rtol=1e-4, atol=1e-4) for name in before)


def test_reprs_are_short(run: Path) -> None:
    model = regarde.load(run)
    one, *_ = model.forecast(paths=7)
    assert repr(model).startswith(f"<Forecaster of {len(model.ids)} series, ")
    assert repr(one).startswith(f"<Forecast of {one.series!r}, {len(one.times)} value")
    assert "7 paths" in repr(one)
    assert max(len(repr(model)), len(repr(one))) < 120


def test_a_forecast_depends_on_its_own_series_and_seed_alone(run: Path) -> None:
    model = regarde.load(run)
    whole = paths(model, seed=4)
    alone = paths(model, given=model.chosen(["short"]), seed=4)
    other = paths(model, given=replace(model.histories, series=model.histories.series[::-1]), seed=4)
    assert np.allclose(alone["short"], whole["short"], rtol=1e-5)
    assert all(np.allclose(other[name], whole[name], rtol=1e-5) for name in whole)
    assert not np.allclose(paths(model, seed=5)["a"], whole["a"])


def test_a_longer_past_than_a_model_reads_changes_nothing(run: Path, tmp_path: Path) -> None:
    model = regarde.load(run)
    newer = model.read(series_file(tmp_path / "newer.csv"))
    assert np.allclose(paths(model, given=newer)["a"], paths(model)["a"], rtol=1e-5)


def test_attention_is_a_distribution_over_the_past(run: Path) -> None:
    for one in regarde.load(run).forecast(paths=3):
        if one.attention.size:
            assert one.attention.shape == (len(one.times), len(one.past))
            assert np.allclose(one.attention.sum(axis=1), 1, atol=1e-5)


def test_bytes_are_nearly_as_good(run: Path, tmp_path: Path) -> None:
    from regarde.folder.quantize import quantize

    quantize(run, tmp_path / "int8")
    small, large = regarde.load(tmp_path / "int8"), regarde.load(run)
    (one, *_), (other, *_) = small.forecast(paths=50), large.forecast(paths=50)
    assert not np.array_equal(one.paths, other.paths)
    assert np.abs(one.mean - other.mean).mean() < 0.2 * np.abs(other.mean).mean()
    assert np.allclose(
        regarde.load(tmp_path / "int8", engine="torch").forecast(paths=50)[0].paths, one.paths, rtol=1e-3
    )


def test_forecasting_never_imports_torch(run: Path) -> None:
    code = f"import regarde, sys; regarde.load({str(run)!r}).forecast(paths=2); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_damage_is_a_named_error(run: Path, tmp_path: Path) -> None:
    import shutil

    for name in ("history.jsonl", "weights.safetensors", "config.toml"):
        copy = tmp_path / name.split(".")[0]
        shutil.copytree(run, copy)
        content = bytearray((copy / name).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / name).write_bytes(content)
        with pytest.raises(FolderError, match=name.replace(".", "\\.")):
            regarde.load(copy)


def test_series_that_a_model_cannot_forecast_are_one_line(run: Path, tmp_path: Path) -> None:
    model = regarde.load(run)
    (tmp_path / "new.csv").write_text(series_file(tmp_path / "x.csv").read_text().replace(",a,", ",new,"))
    if model.embeds:
        with pytest.raises(DataError, match="'new' was not trained on"):
            model.read(tmp_path / "new.csv")
    else:
        assert len(model.forecast(model.read(tmp_path / "new.csv"), paths=2)) == 4
    assert "2 series shorter than the history of 12" in " ".join(model.known(ends(model, 11, 12, 9)).notes)
    with pytest.raises(UsageError, match="'x' is not among the 4"):
        model.chosen(["x"])
    daily = series_file(tmp_path / "y.csv").read_text().split("\n")[0] + "\n2024-03-01,a,1\n2024-03-02,a,2\n"
    (tmp_path / "daily.csv").write_text(daily)
    with pytest.raises(DataError, match="are daily, the model was trained on hourly"):
        model.read(tmp_path / "daily.csv")


def ends(model: Forecaster, *counts: int) -> SeriesSet:
    """The last values of the first series."""
    own = zip(model.histories.series, counts, strict=False)
    return replace(model.histories, series=tuple(one.last(count) for one, count in own))


def test_texts_are_refused_in_one_line(run: Path) -> None:
    from regarde.folder.loading import load

    with pytest.raises(UsageError, match=r"reads no text\. Use: regarde forecast"):
        load(run)


def test_the_end_is_never_learned_from(tmp_path: Path) -> None:
    """Other values in the last horizon of each series: the same weights after training."""
    weights = []
    for change in (0, 1000):
        data = series_file(tmp_path / f"{change}.csv")
        lines = data.read_text().splitlines()
        last = {line.split(",")[1]: n for n, line in enumerate(lines)}
        ends = {n - back for n in last.values() for back in range(4)} if change else set()
        lines = [f"{line}9" if n and n in ends else line for n, line in enumerate(lines)]
        data.write_text("\n".join(lines) + "\n")
        settings = [*MODELS["deepar"], *WINDOWS, *SIZES]
        found = train(data, settings=settings, out=tmp_path / f"run-{change}", threads=1)
        last_folder = found.folder / "checkpoints" / "step-4"
        weights.append(regarde.load(last_folder, engine="torch").engine.model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["task.horizon=70"], "the longest series has 60 values, too few to hold out 70"),
        (["text.normalize=none"], "reads numbers, not text"),
        (["training.label_smoothing=0.1"], "is for texts"),
        (["training.metric=bleu"], "not a metric of forecasts"),
        (["training.metric=coverage"], "Use crps"),
        (["model.kind=deepar", "model.likelihood=negative-binomial"], "task.scaling=paper"),
        (["task.frequency=fortnightly"], "expected one of s, min, h"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(tmp_path: Path, settings: list[str], told: str) -> None:
    with pytest.raises(RegardeError, match=told) as error:
        train(series_file(tmp_path / "data.csv"), settings=settings, out=tmp_path / "run")
    assert "\n" not in str(error.value)


def test_the_commands_of_a_forecaster(cli, run: Path, tmp_path: Path) -> None:
    done = cli("forecast", run, "--quantiles", ".1,.9", "--horizon", 3)
    rows = done.out.decode().splitlines()
    assert (rows[0], len(rows)) == ("series,time,mean,0.1,0.9", 1 + 4 * 3)
    assert cli("forecast", run, "--quantiles", ".1,.9", "--horizon", 3).out == done.out
    found = json.loads(cli("forecast", run, "--series", "a", "--json", "--attention").out)
    assert (found["series"], len(found["mean"]), len(found["attention"])) == ("a", 5, 5)
    assert cli("forecast", run, "--series", "a", "--picture", tmp_path / "fan.svg").code == 0
    assert "<polygon" in (tmp_path / "fan.svg").read_text()
    wrong = cli("forecast", run, "--quantiles", "2")
    assert (wrong.code, wrong.out) == (2, b"")  # no header of an output that never comes
    newer = series_file(tmp_path / "newer.csv", more=5)
    table = cli("evaluate", run, "--data", newer, "--samples", 10).out.decode()
    assert all(word in table for word in ("CRPS", "MASE", "sMAPE", "coverage of 80%", "seasonal naive", "1-3"))
    assert json.loads(cli("evaluate", run, "--data", newer, "--json").out)["metrics"]["seasonal naive"]["mase"]
    assert "difference" in cli("compare", run, run, "--data", newer, "--samples", 10).out.decode()
    assert cli("evaluate", run, "--data", newer, "--beam", 3).code == 2
