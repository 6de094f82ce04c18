"""Symbols keep their numbers, whatever they are."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.errors import FolderError
from regarde.text import BOS, CONTROLS, EOS, PAD, UNK, Vocabulary


def test_frequent_symbols_come_first_and_ties_follow_the_symbols() -> None:
    vocabulary = Vocabulary.build(["b", "a", "c", "c", "b", "a", "d"], size=3)
    assert vocabulary.symbols == ("a", "b", "c")
    assert len(vocabulary) == 4 + 3


def test_controls_have_the_first_four_ids() -> None:
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert [Vocabulary(["x"]).symbol(i) for i in range(5)] == [*CONTROLS, "x"]


def test_a_control_name_is_never_matched_against_text() -> None:
    assert [Vocabulary(["x"]).id(name) for name in CONTROLS] == [UNK] * 4
    assert Vocabulary(["</s>"]).id("</s>") == 4


def test_symbols_that_a_line_cannot_hold_are_left_out() -> None:
    assert Vocabulary.build(["a\nb", "", "\ud800", "ok"], size=9).symbols == ("ok",)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1).filter(r"\n".__ne__),
        unique=True,
        min_size=1,
    )
)
def test_saving_and_loading_changes_nothing(tmp_path_factory: pytest.TempPathFactory, symbols: list[str]) -> None:
    path = tmp_path_factory.mktemp("v") / "source.vocab"
    Vocabulary(symbols).save(path)
    assert Vocabulary.load(path).symbols == tuple(symbols)


def test_lines_end_at_newline_only(tmp_path: Path) -> None:
    symbols = (" ", "\r", "\u2028", "\n", "\u0085", "\v", "\f", "\x1c", "a\r")
    Vocabulary(symbols).save(tmp_path / "v")
    assert (tmp_path / "v").read_bytes().count(b"\n") == len(symbols)
    assert Vocabulary.load(tmp_path / "v").symbols == symbols


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a\n\nb\n", "line 2: blank"),
        (b"a\nb\n\n", "line 3: blank"),
        (b"a\n\\n\n\\n\n", "line 3: '\\n' is also on line 2"),
        (b"a\nb\na\n", "line 3: 'a' is also on line 1"),
        (b"a\n\xff\n", "line 2: not valid UTF-8"),
        (b"", "empty"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "source.vocab"
    path.write_bytes(content)
    with pytest.raises(FolderError) as raised:
        Vocabulary.load(path)
    assert complaint in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="not readable"):
        Vocabulary.load(tmp_path / "source.vocab")
