"""From what the user gave to what the trainer needs, and what is said on the way."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regarde import config
from regarde.config import Table
from regarde.data.batch import EncodedPairs
from regarde.data.formats import Pair
from regarde.engines.reference import TorchEngine
from regarde.errors import ConfigError, DataError, UsageError
from regarde.search import Search
from regarde.training import recipe as recipes
from regarde.training.distributed import ALONE
from regarde.training.prepare import prepare
from regarde.training.start import compose, request
from regarde.training.validate import validation_loss, validation_metric


def tables(data: Table, *settings: str) -> Table:
    return compose(data, settings=["training.steps=1", *settings])


def write(path: Path, *pairs: tuple[str, str]) -> Table:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return {"name": str(path)}


@pytest.fixture
def data(tmp_path: Path) -> Table:
    return write(tmp_path / "my.tsv", *((f"{n:03}", f"{n:03}") for n in range(100)))


def test_everything_inferred_is_noted(data: Table) -> None:
    prepared = prepare(tables(data))
    assert prepared.notes[:4] == [
        "data: 100 pairs kept",
        "validation: 5 pairs held out, 95 left for training",
        "source: characters: short strings, 3.0 characters on average",
        "target: characters: short strings, 3.0 characters on average",
    ]
    assert (len(prepared.train), len(prepared.valid), len(prepared.valid_pairs)) == (95, 5, 5)


def test_what_is_said_is_not_inferred(data: Table) -> None:
    prepared = prepare(tables(data, "text.source.kind=words"))
    assert prepared.recipe.text.source.kind == "words"
    assert not any(note.startswith("source:") for note in prepared.notes)


def test_the_same_data_is_prepared_the_same_way(data: Table) -> None:
    first, second = prepare(tables(data)), prepare(tables(data))
    assert first.recipe == second.recipe
    assert first.valid_pairs == second.valid_pairs


def test_an_embedded_data_set_brings_its_own_validation() -> None:
    prepared = prepare(tables({"name": "copy"}))
    assert prepared.notes[:2] == ["data: copy, 20,000 pairs", "validation: 500 pairs, the valid split of copy"]


def test_a_validation_set_that_is_given_is_used_even_with_embedded_data(tmp_path: Path) -> None:
    valid = write(tmp_path / "valid.tsv", ("abc", "abc"), ("d", "d"))
    prepared = prepare(tables({"name": "copy", "valid": [valid["name"]]}))
    assert prepared.valid_pairs == [("abc", "abc"), ("d", "d")]
    assert "validation: 2 pairs kept" in prepared.notes


def test_validation_may_be_two_files(data: Table, tmp_path: Path) -> None:
    (tmp_path / "v.fr").write_text("1\n2\n")
    (tmp_path / "v.en").write_text("a\nb\n")
    prepared = prepare(tables(data | {"valid": [str(tmp_path / "v.fr"), str(tmp_path / "v.en")]}))
    assert prepared.valid_pairs == [("1", "a"), ("2", "b")]


def test_lines_that_are_no_pair_are_skipped_and_counted_if_wanted(tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_bytes(b"a\tb\nc\td\n\xff\te\nf\0\tg\n\nh\ti\r\n")
    given = {"name": str(tmp_path / "my.tsv")}
    with pytest.raises(DataError, match=r"line 3: not valid UTF-8 \(byte 0xff at offset 8 of the file\)"):
        prepare(tables(given))
    with pytest.raises(DataError, match=r"3 of 6 lines skipped \(50\.0%\): \S*my\.tsv:3 not valid UTF-8"):
        prepare(tables(given | {"on_error": "skip"}))
    notes = prepare(tables(given | {"on_error": "skip-any"})).notes
    assert notes[0] == ("data: 3 pairs kept; 3 skipped (1 invalid UTF-8, 1 NUL, 1 blank line); 1 line ended in CRLF")
    assert notes[1].startswith("warning: 3 of 6 lines skipped (50.0%)")


def test_an_empty_corpus_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"my\.tsv: no texts \(0 texts kept\)"):
        prepare(tables(write(tmp_path / "my.tsv")))


def test_one_pair_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair in the data: training needs at least 2"):
        prepare(tables(write(tmp_path / "my.tsv", ("a", "b"))))


def test_one_source_again_and_again_leaves_nothing_to_hold_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 pairs with 1 distinct source: no pairs can be held out"):
        prepare(tables(write(tmp_path / "my.tsv", *[("a", "b")] * 3)))


def test_equal_targets_are_warned_of(tmp_path: Path) -> None:
    prepared = prepare(tables(write(tmp_path / "my.tsv", ("a", "x"), ("b", "x"), ("c", "x"))))
    assert any("warning: all targets are equal" in note for note in prepared.notes)
    assert len(prepared.train) == 2


def test_pairs_over_the_length_limit_are_counted(tmp_path: Path) -> None:
    given = write(tmp_path / "my.tsv", *((f"{n:03}", f"{n:03}"[: n % 3 + 1]) for n in range(100)))
    notes = prepare(tables(given, "data.max_target=2")).notes
    (note,) = [note for note in notes if note.startswith("training: ") and "over" in note]
    kept, dropped = int(note.split()[1]), int(note.split()[4])
    assert kept + dropped == 95
    assert 28 <= dropped <= 33
    assert note.endswith("over the length limits (data.max_source = 0, data.max_target = 2)")


def test_pairs_keep_their_numbers_where_others_are_left_out(tmp_path: Path) -> None:
    given = write(tmp_path / "my.tsv", *((f"{n:03}", f"{n:03}"[: n % 3 + 1]) for n in range(100)))
    prepared = prepare(tables(given, "data.max_target=2"))
    for row, number in enumerate(prepared.numbers.tolist()):  # pair n has the source n - 1
        assert prepared.text.source.decode(prepared.train.sources[row]) == f"{number - 1:03}"


def test_all_pairs_over_the_length_limit_are_refused(data: Table) -> None:
    with pytest.raises(DataError, match=r"All 95 training pairs are over the length limits \(data.max_source = 2"):
        prepare(tables(data, "data.max_source=2"))


def test_a_file_is_never_taken_for_an_embedded_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("copy.tsv"), *((f"{n}", f"{n}") for n in range(9)))
    assert prepare(tables({"name": "copy.tsv"})).notes[0] == "data: 9 pairs kept"
    with pytest.raises(DataError, match=r'no such file or data set\. Did you mean "copy"'):
        prepare(tables({"name": "copie"}))


def test_data_is_given_in_one_way(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No data given"):
        prepare(tables({}))
    with pytest.raises(UsageError, match="Give one or the other"):
        prepare(tables({"name": "copy", "source": "a", "target": "b"}))


def test_nfd_and_nfc_are_one_text(tmp_path: Path) -> None:
    composed = write(tmp_path / "c.tsv", *((f"é{n}", f"é{n}") for n in range(9)))
    decomposed = write(tmp_path / "d.tsv", *((f"e\u0301{n}", f"e\u0301{n}") for n in range(9)))
    first, second = prepare(tables(composed)), prepare(tables(decomposed))
    assert first.recipe.text.normalize == "NFC"
    assert first.train.sources.ids.tolist() == second.train.sources.ids.tolist()


def test_control_symbols_in_the_data_are_text(tmp_path: Path) -> None:
    given = write(tmp_path / "my.tsv", *((f"</s>{n}<pad>", f"<s>{n}") for n in range(9)))
    prepared = prepare(tables(given))
    assert min(prepared.train.sources.ids) >= 4  # no control among them
    assert prepared.text.source.decode(prepared.train.sources[0]).startswith("</s>")


def test_one_very_long_target_leaves_a_configuration_that_can_be_read_again(tmp_path: Path) -> None:
    given = write(tmp_path / "my.tsv", *((f"{n}", "x" * 2_500) for n in range(9)))
    recipe = prepare(tables(given, "text.target.kind=characters")).recipe
    assert recipe.search.rules.max_ratio == 1000
    assert recipes.parse(config.as_table(recipe)) == recipe


def test_one_rule_of_the_search_leaves_the_others_inferred(tmp_path: Path) -> None:
    given = write(tmp_path / "my.tsv", *((f"{n}", f"{n}" * 20) for n in range(9)))
    inferred = prepare(tables(given)).recipe.search.rules
    assert inferred.max_ratio == 13  # 21 target tokens for 2 of the source, and a fifth more
    rules = prepare(tables(given, "search.kind=greedy", "search.rules.min_length=2")).recipe.search.rules
    assert rules == replace(inferred, min_length=2)
    rules = prepare(tables(given, "search.kind=greedy", "search.rules.max_ratio=3")).recipe.search.rules
    assert rules == replace(inferred, max_ratio=3.0)


@pytest.mark.parametrize("name", ["rnnsearch-small", "transformer-small"])
def test_the_file_of_a_preset_is_a_recipe(name: str) -> None:
    file = Path(config.__file__).parent / "recipes" / f"{name}.toml"
    assert compose({"name": "copy"}, recipe=file) == compose({"name": "copy"}, preset=name)


@pytest.mark.parametrize(("pairs", "steps"), [(9, 5_000), (8 * 600, 6_000), (8 * 3_000, 20_000)])
def test_a_length_that_is_not_said_is_ten_epochs_within_bounds(pairs: int, steps: int, tmp_path: Path) -> None:
    given = write(tmp_path / "my.tsv", *((f"{n:06}", f"{n:06}") for n in range(pairs)))
    held_out = write(tmp_path / "valid.tsv", ("1", "1"))
    asked = {**given, "valid": [held_out["name"]]}
    eight = ["training.batch_pairs=8"]
    assert prepare(compose(asked, settings=eight)).recipe.training.steps == steps
    assert prepare(compose(asked, settings=[*eight, "training.epochs=1"])).recipe.training.steps == -(-pairs // 8)


def test_pairs_of_ones_own_have_more_dropout_unless_a_model_is_named(tmp_path: Path) -> None:
    own = {"name": str(tmp_path / "my.tsv")}
    recipe = Path(config.__file__).parent / "recipes" / "rnnsearch-small.toml"
    assert compose(own)["model"]["dropout"] == 0.3
    assert compose({"source": "a.de", "target": "a.en"})["model"]["dropout"] == 0.3
    assert compose(own, settings=["model.dropout=0.2"])["model"]["dropout"] == 0.2
    assert compose({"name": "copy"})["model"]["dropout"] == 0.1
    assert compose(own, preset="rnnsearch-small")["model"]["dropout"] == 0.1
    assert compose(own, recipe=recipe)["model"]["dropout"] == 0.1
    assert request(own).notes == ["model: rnnsearch-small, with dropout 0.3 for pairs of your own"]
    assert request(own, preset="rnnsearch-small").notes == request({"name": "copy"}).notes == []
    assert request(own, settings=["model.dropout=0.2"]).notes == []


@pytest.fixture
def tagged(tmp_path: Path) -> Table:
    path = tmp_path / "my.conll"
    path.write_text("".join(f"Anna{n}\tB-PER\nWolff\tI-PER\nplays\tO\n\n" for n in range(9)) + "one\tO\n\ntwo\tO\n")
    return {"name": str(path)}


def test_tags_and_words_go_together_whatever_the_preset_says(tagged: Table) -> None:
    spelled, words = prepare(tables(tagged)), prepare(tables(tagged, "text.source.kind=words"))
    assert (spelled.recipe.text.source.kind, words.recipe.model.spelling) == ("spelled", 0)
    assert spelled.recipe.model.spelling > 0
    assert spelled.recipe.training.metric == "span_f1"


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (
            "sentencepiece",
            "text.source.kind = sentencepiece, expected one token for each tag. Set text.source.kind=spell",
        ),
        (
            "characters",
            "text.source.kind = characters: 'Anna0 Wolff plays' has 17 tokens and 3 tags. Set text.source.ki",
        ),
    ],
)
def test_tokens_that_are_no_words_are_refused_for_tags_of_words(tagged: Table, kind: str, given: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(given)):
        prepare(tables(tagged, f"text.source.kind={kind}"))


def test_the_length_limit_of_spelled_words_counts_words(tagged: Table) -> None:
    assert len(prepare(tables(tagged, "data.max_source=3")).train) == len(prepare(tables(tagged)).train)
    with pytest.raises(DataError, match="validation sentences are over the length limits"):
        prepare(tables(tagged, "data.max_source=2"))


def test_validation_labels_never_seen_in_training_are_counted(tmp_path: Path) -> None:
    train = write(tmp_path / "my.tsv", *((f"text {n:02} {'ab'[n % 2]}", "xy"[n % 2]) for n in range(40)))
    write(tmp_path / "valid.tsv", ("text 1", "x"), ("text 2", "new"), ("text 3", "new"), ("text 4", "other"))
    prepared = prepare(tables({**train, "valid": [str(tmp_path / "valid.tsv")]}))
    told = "3 labels or tags never seen in training, scored as wrong: new (2), other (1)"
    assert f"warning: validation: {told}" in prepared.notes
    model = prepared.recipe.model.build(len(prepared.text.source), len(prepared.text.target))
    seen = replace(prepared, valid=EncodedPairs.of([Pair("text 1", "x")], prepared.text))
    expected = validation_loss(seen, model, "cpu", ALONE)
    assert expected < 10
    assert validation_loss(prepared, model, "cpu", ALONE) == pytest.approx(expected, abs=1e-5)
    write(tmp_path / "valid.tsv", ("text 2", "new"))
    with pytest.raises(DataError, match=re.escape("Validation: 1 label or tag never seen in training, scored as wr")):
        prepare(tables({**train, "valid": [str(tmp_path / "valid.tsv")]}))


@pytest.mark.parametrize(("several", "marked"), [(False, "x"), (True, "x,y")])
def test_validation_searches_for_the_answer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool, marked: str
) -> None:
    train = write(tmp_path / "my.tsv", *((f"text {n:02} {'ab'[n % 2]}", (marked, "y")[n % 2]) for n in range(40)))
    write(tmp_path / "valid.tsv", ("text 1", marked), ("text 2", "y"))
    given = {**train, "valid": [str(tmp_path / "valid.tsv")]}
    prepared = prepare(tables(given, "task.kind=classification", f"task.several={str(several).lower()}"))
    searches = []
    decode = TorchEngine.decode

    def spied(engine: TorchEngine, sources: Any, search: Search, *more: Any) -> Any:
        searches.append(search)
        return decode(engine, sources, search, *more)

    monkeypatch.setattr(TorchEngine, "decode", spied)
    model = prepared.recipe.model.build(len(prepared.text.source), len(prepared.text.target))
    assert 0 <= validation_metric(prepared, model, ALONE, 0.0) <= 1
    assert [search.kind for search in searches] == ["greedy"]  # a beam of all labels would find only their order


def test_validation_leaves_sets_with_a_label_never_seen_in_training_out_of_the_loss(tmp_path: Path) -> None:
    train = write(tmp_path / "my.tsv", *((f"text {n:02} {'ab'[n % 2]}", ("x,y", "y")[n % 2]) for n in range(40)))
    write(tmp_path / "valid.tsv", ("text 1", "x,y"), ("text 2", "new,y"))
    prepared = prepare(tables({**train, "valid": [str(tmp_path / "valid.tsv")]}, "task.several=true"))
    assert "warning: validation: 1 label or tag never seen in training, scored as wrong: new (1)" in prepared.notes
    model = prepared.recipe.model.build(len(prepared.text.source), len(prepared.text.target))
    seen = replace(prepared, valid=EncodedPairs.of([Pair("text 1", "x,y")], prepared.text))
    expected = validation_loss(seen, model, "cpu", ALONE)
    assert validation_loss(prepared, model, "cpu", ALONE) == pytest.approx(expected, abs=1e-5)


def test_a_language_model_has_one_text_and_one_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("".join(f"This is sentence {n} of a short list.\n" for n in range(50)), "utf-8")
    data = {"name": str(tmp_path / "my.txt")}
    notes = prepare(tables(data)).notes
    assert notes[:2] == ["data: 50 texts kept", "validation: 2 texts held out, 48 left for training"]
    assert [note for note in notes if note.startswith(("source", "target", "vocabularies"))] == []
    for side in ("source", "target"):  # what is said of one side holds for the other
        text = prepare(tables(data, f"text.{side}.kind=characters")).recipe.text
        assert (text.source.kind, text.target.kind, text.shared) == ("characters", "characters", True)
    with pytest.raises(UsageError, match="--columns 1:2: a language model reads whole lines"):
        prepare(tables({**data, "columns": "1:2"}))


def test_the_diary_is_read_as_characters() -> None:
    prepared = prepare(tables({"name": "diary"}))
    assert prepared.recipe.text.target.kind == "characters"
    assert "text: characters: the years of valid and test are not in train" in prepared.notes


@pytest.mark.parametrize("preset", ["transformer-small", "transformer-lm-small"])
def test_the_hidden_units_of_a_transformer_are_its_size(data: Table, preset: str) -> None:
    assert compose(data, preset=preset, common={"hidden": 32})["model"]["size"] == 32
