"""`regarde align` and `regarde aer`: links of given pairs, and what they are worth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import regarde as package
from regarde.alignment.links import Link, parse_pharaoh
from regarde.alignment.symmetrize import symmetrize, turned
from regarde.native import library
from tests.bitexts import invented


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("abc\tabc\nhg fe\thg fe\na\taéb\n")
    return path


def lines(done) -> list[list[Link]]:  # type: ignore[no-untyped-def]
    assert (done.code, done.error) == (0, "")
    return [parse_pharaoh(line) for line in done.out.decode().splitlines()]


def test_links_are_those_of_forced_decoding(cli, wordy: Path) -> None:
    files = ["--source", wordy / "test.src", "--target", wordy / "test.trg"]
    texts = (wordy / "test.src").read_text().splitlines()
    found = lines(cli("align", wordy / "run", *files))
    scored = package.load(wordy / "run", engine="torch").score(zip(texts, texts, strict=True))
    assert found == [sorted(out.word_links()) for out in scored]
    assert all(
        {link.target for link in links} == set(range(len(t.split()))) for links, t in zip(found, texts, strict=True)
    )


def test_tokens_and_words_are_counted_each_by_themselves(cli, tiny: Path, pairs: Path) -> None:
    words, tokens = lines(cli("align", tiny, "--data", pairs)), lines(cli("align", tiny, "--data", pairs, "--tokens"))
    assert [{link.target for link in links} for links in words] == [{0}, {0, 1}, {0}]
    assert [{link.target for link in links} for links in tokens] == [set(range(3)), set(range(5)), set(range(3))]


def test_a_row_may_speak_of_the_token_before(cli, tiny: Path, pairs: Path, tmp_path: Path) -> None:
    own, moved = tmp_path / "own.npz", tmp_path / "moved.npz"
    lines(cli("align", tiny, "--data", pairs, "--tokens", "--matrices", own))
    lines(cli("align", tiny, "--data", pairs, "--tokens", "--offset", "1", "--matrices", moved))
    with np.load(own) as before, np.load(moved) as after:
        for name in before:
            np.testing.assert_array_equal(after[name][:-1], before[name][1:])


def test_pairs_of_fast_align_are_pairs_like_others(cli, tiny: Path, pairs: Path) -> None:
    (pairs.parent / "text.a-b").write_text(pairs.read_text().replace("\t", " ||| "))
    assert cli("align", tiny, "--data", pairs.parent / "text.a-b").out == cli("align", tiny, "--data", pairs).out


def test_both_directions_are_symmetrized(cli, tiny: Path, pairs: Path) -> None:
    texts = [line.split("\t") for line in pairs.read_text().splitlines()]
    (pairs.parent / "turned.tsv").write_text("".join(f"{t}\t{s}\n" for s, t in texts))
    forward = lines(cli("align", tiny, "--data", pairs))
    backward = lines(cli("align", tiny, "--data", pairs.parent / "turned.tsv"))
    for method in ("intersection", "union", "grow-diag-final-and"):
        both = lines(cli("align", tiny, "--data", pairs, "--reverse", tiny, "--symmetrize", method))
        wanted = [symmetrize(f, turned(b), method) for f, b in zip(forward, backward, strict=True)]  # type: ignore[arg-type]
        assert both == wanted


def test_matrices_and_json_say_the_same_as_the_links(cli, tiny: Path, pairs: Path, tmp_path: Path) -> None:
    done = cli("align", tiny, "--data", pairs, "--json", "--matrices", tmp_path / "soft.npz")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["source_words"] for record in records] == [["abc"], ["hg", "fe"], ["a"]]
    assert records[2]["target_words"] == ["aéb"]
    with np.load(tmp_path / "soft.npz") as loaded:
        for name, record in zip(loaded, records, strict=True):
            matrix = loaded[name]
            assert matrix.shape == (len(record["target_words"]), len(record["source_words"]))
            heaviest = [[int(row.argmax()), t] for t, row in enumerate(matrix)]
            assert sorted(heaviest) == record["links"]


def test_pairs_are_answered_while_more_are_to_come(start, tiny: Path) -> None:
    with start("align", tiny, "--data", "-") as process:
        process.stdin.write(b"abc\tabc\n" * 600)
        process.stdin.flush()
        assert process.stdout.readline() == process.stdout.readline() != b""
        process.stdin.close()
        assert process.stdout.read().count(b"\n") == 598
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--layer", "2"], 2, "--layer 2: this model has 1"),
        (["--threshold", "1.5"], 2, "--threshold"),
        (["--matrices", "soft.txt"], 2, "expected a name that ends in .npz"),
        (["--symmetrize", "sum"], 2, "--symmetrize"),
        (["--reverse", "nowhere"], 4, "nowhere: no such folder"),
    ],
)
def test_a_mistake_is_one_line(cli, tiny: Path, pairs: Path, options: list[str], code: int, message: str) -> None:
    assert message in cli("align", tiny, "--data", pairs, *options).fails(code)


def test_a_model_without_attention_aligns_nothing(cli, plain: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("001\t001\n")
    assert "without attention" in cli("align", plain, "--data", tmp_path / "pairs.tsv").fails(2)


def test_a_pair_that_is_too_long_is_named_and_no_half_of_an_archive_is_left(cli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\n" * 600 + f"a\t{'b' * 1001}\n")
    done = cli("align", tiny, "--data", tmp_path / "pairs.tsv", "--matrices", tmp_path / "soft.npz")
    assert "Pair 601: A sentence of 1001 tokens" in done.fails(3)
    assert done.out
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


@pytest.fixture(scope="module")
def bitext(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bitext") / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in invented(200)[0]))
    return path


needs_native = pytest.mark.skipif(not library.built(), reason="needs the native library")


@needs_native
def test_without_a_model_pairs_are_aligned_by_their_statistics(cli, bitext: Path) -> None:
    found = lines(cli("align", "--data", bitext))
    assert len(found) == 200
    assert sum(one == gold for one, gold in zip(found, invented(200)[1], strict=True)) > 190
    assert lines(cli("align", "--data", bitext, "--threads", "1")) == found


@needs_native
def test_statistics_have_json_matrices_and_a_picture(cli, bitext: Path, tmp_path: Path) -> None:
    files = ["--matrices", tmp_path / "soft.npz", "--picture", tmp_path / "one.svg", "--pair", "2"]
    done = cli("align", "--data", bitext, "--json", "--symmetrize", "forward", *files)
    record = json.loads(done.out.splitlines()[1])
    assert (record["source"], record["target"]) == tuple(invented(200)[0][1])
    assert record["source_words"] == record["source"].split()
    with np.load(tmp_path / "soft.npz") as loaded:
        assert sorted([int(row.argmax()), t] for t, row in enumerate(loaded["1"])) == record["links"]
    assert record["target_words"][0] in (tmp_path / "one.svg").read_text()


@needs_native
def test_a_saved_lexicon_is_used_for_other_pairs(cli, bitext: Path, tmp_path: Path) -> None:
    lines(cli("align", "--data", bitext, "--save-lexicon", tmp_path / "one.npz"))
    (tmp_path / "new.tsv").write_text("s7 s8\tt7 t8\ns3 s2 s1\tt3 t1 t2\n")
    found = lines(cli("align", "--data", tmp_path / "new.tsv", "--lexicon", tmp_path / "one.npz"))
    assert found == [parse_pharaoh("0-0 1-1"), parse_pharaoh("0-0 1-2 2-1")]
    (tmp_path / "bad.npz").write_text("none")
    assert "no lexicon" in cli("align", "--data", bitext, "--lexicon", tmp_path / "bad.npz").fails(3)
    again = ["--save-lexicon", tmp_path / "one.npz"]
    assert "not overwritten" in cli("align", "--data", bitext, *again).fails(2)


@pytest.mark.parametrize("option", ["--layer", "--head", "--offset"])
def test_options_of_a_model_need_one(cli, bitext: Path, option: str) -> None:
    assert f"{option}: for pairs that are aligned with a model" in cli("align", "--data", bitext, option, "1").fails(2)


@pytest.mark.parametrize("option", [["--method", "hmm"], ["--seed", "2"], ["--lexicon", "x.npz"]])
def test_options_of_statistics_do_not_go_with_a_model(cli, tiny: Path, pairs: Path, option: list[str]) -> None:
    assert "aligned without a model" in cli("align", tiny, "--data", pairs, *option).fails(2)


# aer


@pytest.fixture
def said(tmp_path: Path) -> Path:
    path = tmp_path / "said"
    path.write_text("0-0 1-2 2-2 3-3\n0-0\n")
    return path


def test_the_error_rate_is_printed_and_given_as_json(cli, said: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text("0-0 1-1 1?2 2?2\n0-0\n")
    found = json.loads(cli("aer", said, gold, "--json").out)
    assert found["aer"] == pytest.approx(1 - (2 + 4) / (5 + 3))
    assert (found["precision"], found["recall"]) == (4 / 5, 2 / 3)
    assert (found["pairs"], found["links"], found["sure"], found["possible"]) == (2, 5, 3, 5)
    assert found["low"] <= found["aer"] <= found["high"]
    assert "AER        25.0%" in cli("aer", said, gold).out.decode()


def test_gold_may_count_from_one_and_go_the_other_way(cli, said: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text("1-1 3-2 3-3 4-4\n1-1\n")
    assert json.loads(cli("aer", said, gold, "--one-based", "--turn", "--json").out)["aer"] == 0
    assert json.loads(cli("aer", said, gold, "--one-based", "--samples", 0, "--json").out)["aer"] > 0


def test_files_that_do_not_belong_together_are_refused(cli, said: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text("0-0\n")
    assert "expected equally many" in cli("aer", said, gold).fails(3)
    gold.write_text("0?0\n0?0\n")
    assert "no sure links, so recall is undefined" in cli("aer", said, gold).fails(3)
    assert "not readable" in cli("aer", said, tmp_path / "none").fails(3)


def test_a_pair_is_drawn_with_the_links_of_people(cli, tiny: Path, pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0\n0-0 1?1\n0-0\n")
    plain = cli("align", tiny, "--data", pairs)
    for name, options in {
        "second.svg": ["--pair", "2", "--gold", tmp_path / "gold"],
        "heads.pdf": ["--heads", "--values"],
        "tokens.png": ["--tokens", "--dark", "--pair", "3"],
    }.items():
        done = cli("align", tiny, "--data", pairs, "--picture", tmp_path / name, *options)
        assert (done.code, done.error) == (0, f"regarde: wrote {tmp_path / name}\n")
        assert done.out == plain.out or "--tokens" in options  # the links are printed all the same
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "told", "code"),
    [
        (["--pair", "2"], "Add --picture FILE.", 2),
        (["--picture", "a.svg", "--heads", "--layer", "1"], "Leave out one.", 2),
        (["--picture", "a.svg", "--pair", "4"], "--pair 4: the data has 3 pairs", 3),
        (["--picture", "a.svg", "--gold", "nowhere"], "nowhere: not readable", 3),
    ],
)
def test_what_makes_no_picture_is_said(
    cli,
    tiny: Path,
    pairs: Path,
    options: list[str],
    told: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in cli("align", tiny, "--data", pairs, *options).fails(code)
    assert not list(tmp_path.iterdir())


def test_an_option_keeps_the_spelling_of_version_0_1(cli, tiny: Path, pairs: Path) -> None:
    new, old = (cli("align", tiny, "--data", pairs, "--reverse", tiny, f"--symmetri{s}e=union") for s in "zs")
    assert (new.code, new.out) == (0, old.out)
