"""Several labels for one text, from a file to an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import regarde
from regarde.errors import ConfigError, DataError
from regarde.folder.calibrate import calibrate
from regarde.text.labels import LabelsConfig
from regarde.text.tokenizers import EOS, UNK
from regarde.training.prepare import prepare

ROWS = ["red round ball\tred,round", "red box\tred", "round box\tround", "soft red cushion\tsoft, red"]
SEVERAL = ["task.kind=classification", "task.several=true"]


def file(folder: Path, rows: list[str]) -> Path:
    (folder / "things.tsv").write_text("".join(f"{row}\n" for row in rows))
    return folder / "things.tsv"


def tables(path: Path, **training: object) -> dict[str, object]:
    return {
        "task": {"kind": "classification", "several": True},
        "model": {"kind": "classifier"},
        "data": {"name": str(path), "valid": [str(path)]},
        "training": {"steps": 1, **training},
    }


def test_labels_are_a_set_in_the_order_of_the_vocabulary() -> None:
    tokenizer = LabelsConfig(several=True).train(["b,a", "a", "a,c"])
    assert tokenizer.encode("c,a") == tokenizer.encode("a, c") == [EOS + 1, EOS + 3]
    assert tokenizer.decode(tokenizer.encode("c,b,a")) == "a,b,c"
    assert tokenizer.encode("a,new") == [UNK, EOS + 1]
    assert tokenizer.unknown("a,new") == ["new"]
    assert tokenizer.encode("") == []


def test_the_task_decides_for_the_tokenizer_and_the_model(tmp_path: Path) -> None:
    recipe = prepare(tables(file(tmp_path, ROWS))).recipe
    assert recipe.model.several  # type: ignore[union-attr]
    assert recipe.text.target == LabelsConfig(several=True)


def test_a_model_learns_several_labels_and_both_engines_say_them(tmp_path: Path) -> None:
    settings = [*SEVERAL, "text.source.kind=words", "model.dropout=0", "training.valid_every=40"]
    path = file(tmp_path, ROWS)
    run = regarde.train(
        path, valid=[path], preset="classifier-small", steps=80, batch=4, settings=settings, out=tmp_path / "run"
    )
    assert run.outcome.best.value == 1.0  # whole sets, whatever their order in the file
    wanted = [{"red", "round"}, {"red"}, {"round"}, {"soft", "red"}]
    sources = [row.split("\t")[0] for row in ROWS]
    for translator in (run.load(), regarde.load(run.folder)):
        assert [set(found.text.split(",")) for found in translator.predict(sources)] == wanted
    assert "| probabilities | not calibrated |" in (run.folder / "README.md").read_text()
    calibrate(run.folder, tmp_path / "calibrated", 2.0)
    card = (tmp_path / "calibrated" / "README.md").read_text()
    assert "not calibrated" not in card
    assert card.splitlines()[-1].startswith("Calibrated: `regarde calibrate` divided the logits")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("red,,round", r"things\.tsv, line 2: 'red,,round' has an empty label"),
        ("red,", r"things\.tsv, line 2: 'red,' has an empty label"),
        ("red, red", r"things\.tsv, line 2: the label 'red' occurs twice"),
    ],
)
def test_empty_and_repeated_labels_are_errors_of_their_line(labels: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        prepare(tables(file(tmp_path, [ROWS[0], f"red ball\t{labels}", *ROWS[1:]])))


def test_one_label_in_all_texts_is_nothing_to_learn(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected two or more different labels"):
        prepare(tables(file(tmp_path, ["a b\tred", "c\tred"])))


@pytest.mark.parametrize(("name", "value"), [("label_smoothing", 0.1), ("class_weights", "balanced")])
def test_what_is_for_labels_that_exclude_one_another_is_refused(name: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"training.{name} = {value} with several labels"):
        prepare(tables(file(tmp_path, ROWS), **{name: value}))
