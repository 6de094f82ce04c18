"""What every task promises: its files are read, learned from, answered, scored, and judged by the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import regarde
from regarde.data.corpus import ReadOptions, Report
from regarde.data.formats import Pair
from regarde.evaluation.metrics import METRICS, PERPLEXITY
from regarde.tasks import TASKS, suits
from regarde.training.presets import presets

FILES: dict[str, str] = {  # the content of a small file of each task
    "translation": "ab\tba\nabc\tcba\nbc\tcb\n" * 4,
    "classification": "ab ab\tlow\nxy xy\thigh\nab b\tlow\nx yx\thigh\n" * 3,
    "tagging": "Wolff\tB-PER\nplays\tO\n\nin\tO\nBonn\tB-LOC\n\n" * 4,
    "modeling": "".join(f"day {n} is long\n" for n in range(12)),
}
SMALL = {"embedding": 6, "hidden": 6, "size": 8, "heads": 2, "feed_forward": 6, "layers": 1}


def test_every_task_has_a_file_here() -> None:
    assert FILES.keys() == {kind for kind, task in TASKS.items() if not task.numbers}


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def file(kind: str, tmp_path: Path) -> Path:
    path = tmp_path / ("rows.txt" if kind == "modeling" else "rows.tsv")
    path.write_text(FILES[kind])
    return path


def rows(kind: str, file: Path) -> list[Pair]:
    read = TASKS[kind].read([file], ReadOptions(), Report())
    return list(read)


def test_rows_survive_its_tokenizers(kind: str, file: Path) -> None:
    pairs = rows(kind, file)
    config = TASKS[kind].tokenizers(pairs).target.config
    target = config.train([target for _, target in pairs])
    assert [target.decode(target.encode(wanted)) for _, wanted in pairs] == [wanted for _, wanted in pairs]
    assert TASKS[kind].metric(config, pairs) in (*METRICS, PERPLEXITY.name)


def test_its_preset_is_a_model_of_it(kind: str) -> None:
    assert suits(TASKS[kind], presets()[TASKS[kind].preset].recipe["model"]["kind"])


def test_a_model_learns_answers_scores_and_is_judged(kind: str, file: Path, tmp_path: Path) -> None:
    task = TASKS[kind]
    recipe = presets()[task.preset].recipe
    sizes = [f"model.{name}={size}" for name, size in SMALL.items() if name in recipe["model"]]
    few = ["training.steps=2", "training.valid_every=2", f"task.kind={kind}", *sizes]
    run = regarde.train(file, out=tmp_path / "run", settings=few)
    model = regarde.load(run.folder)
    pairs = rows(kind, file)
    assert model.task.kind == kind
    assert len(model.predict([given or wanted[:3] for given, wanted in pairs])) == len(pairs)
    assert all(scored.score < 0 for scored in model.score(pairs))
