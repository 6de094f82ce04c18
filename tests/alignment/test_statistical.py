"""Alignment by statistics: each probability against a slow loop in float64, written from the model; and known links."""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from regarde.alignment import statistical
from regarde.alignment.lexicon import FERTILITY_PRIOR, FURTHEST, JUMP_PRIOR, JUMPS, MOST, Lexicon, LinkCounts
from regarde.alignment.links import Link
from regarde.alignment.statistical import ALIKE, LEXICAL, NONE, PREFIX, Aligner, Gibbs, Posterior
from regarde.alignment.symmetrize import agreed
from regarde.data.formats import Pair
from regarde.errors import DataError
from regarde.native import library
from tests.bitexts import invented

pytestmark = pytest.mark.skipif(not library.built(), reason="needs the native library")

PAIRS = [
    Pair("the house", "la maison"),
    Pair("the green house is here", "la maison verte est ici"),
    Pair("house", "maison maison la"),
    Pair("is the minister here ?", "le ministre est il ici ?"),
    Pair("", "rien"),
    Pair("green", ""),
]


class Slow:
    """The sampler once more: plain loops, float64, all counts taken anew for each draw."""

    def __init__(self, pairs: list[Pair], seed: int) -> None:
        self.pairs = [(["", *pair.source.casefold().split()], pair.target.casefold().split()) for pair in pairs]
        self.links: list[list[int | None]] = [[None] * len(target) for _, target in self.pairs]
        self.targets = {word for _, target in self.pairs for word in target}
        self.state = (seed * 0xD1342543DE82EF95 + 1) % 2**64

    def dice(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return ((z ^ z >> 31) >> 40) / 2**24

    def alike(self, e: str, f: str) -> bool:
        return bool(e) and (e == f or (len(e) >= PREFIX and len(f) >= PREFIX and e[:PREFIX] == f[:PREFIX]))

    def estimate(self) -> None:
        self.jumps = np.full(JUMPS, JUMP_PRIOR)
        self.fertilities: dict[str, np.ndarray] = {}
        for (source, _), links in zip(self.pairs, self.links, strict=True):
            if not links or links[0] is None:
                continue
            path = [0, *(i for i in links if i), len(source)]
            for here, there in itertools.pairwise(path):
                self.jumps[there - here + FURTHEST] += 1
            for i, e in enumerate(source[1:], start=1):
                self.fertility(e)[links.count(i)] += 1
        self.jumps /= self.jumps.sum()

    def fertility(self, e: str) -> np.ndarray:
        return self.fertilities.setdefault(e, np.full(MOST + 1, FERTILITY_PRIOR))

    def draw(self, model: int) -> list[np.ndarray]:
        """One sweep, and the probabilities (T, 1 + S) of each pair."""
        found = []
        for (source, target), links in zip(self.pairs, self.links, strict=True):
            rows = np.zeros((len(target), len(source)))
            for j, f in enumerate(target):
                links[j] = None
                counts = Counter(
                    (s[i], word)
                    for (s, t), each in zip(self.pairs, self.links, strict=True)
                    for word, i in zip(t, each, strict=True)
                    if i is not None
                )
                before = next((i for i in reversed(links[:j]) if i), 0)
                after = next((i for i in links[j + 1 :] if i), len(source))
                for i, e in enumerate(source):
                    prior = {word: LEXICAL + ALIKE * self.alike(e, word) for word in self.targets}
                    total = sum(count for (one, _), count in counts.items() if one == e)
                    weight = (counts[e, f] + prior[f]) / (total + sum(prior.values()))
                    weight *= NONE if i == 0 else 1 - NONE
                    if model == 0:
                        weight *= 1 if i == 0 else 1 / (len(source) - 1)
                    elif i == 0:
                        weight *= self.jumps[after - before + FURTHEST]
                    else:
                        weight *= self.jumps[i - before + FURTHEST] * self.jumps[after - i + FURTHEST]
                    if model == 2 and i:
                        born = links.count(i)
                        weight *= self.fertility(e)[born + 1] / self.fertility(e)[born]
                    rows[j, i] = weight
                rows[j] /= rows[j].sum()
                links[j] = min(int(np.searchsorted(np.cumsum(rows[j]), self.dice(), side="right")), len(source) - 1)
            found.append(rows)
        return found


@pytest.mark.parametrize("model", [0, 1, 2])
def test_every_probability_is_that_of_the_slow_loop(model: int) -> None:
    pairs = [pair for pair in PAIRS if pair.source]  # without, model 1 is not defined
    slow = Slow(pairs, seed=5)
    lexicon = Lexicon()
    sides = [
        statistical._Sentences.of([text.split() for text in texts], known)
        for texts, known in zip(zip(*pairs, strict=True), (lexicon.source, lexicon.target), strict=True)
    ]
    with ThreadPoolExecutor(1) as threads:
        one = statistical._Direction(*sides, LinkCounts(), Gibbs(seed=5, chains=1), threads)
        for _ in range(3):
            one.swept(model)()
            slow.estimate()
            slow.draw(model)
        read = list(one.probabilities(0, len(pairs), model, 1))
    for fast, wanted in zip(read, slow.draw(model), strict=True):  # with the jumps of the last sweep
        np.testing.assert_allclose(fast, wanted[:, 1:], atol=1e-5)


def links(found: list[Posterior]) -> list[list[Link]]:
    return [agreed(each.forward, each.backward) for each in found]


def test_the_links_of_an_invented_language_are_found() -> None:
    pairs, gold = invented(200)
    found = links(list(Aligner(Gibbs()).align(pairs)))
    right = sum(len(set(one) & set(other)) for one, other in zip(found, gold, strict=True))
    assert right > 0.97 * sum(map(len, gold))
    assert right > 0.97 * sum(map(len, found))


def test_threads_change_nothing_and_the_seed_does() -> None:
    pairs, _ = invented(20)
    one, again = (list(Aligner(Gibbs(seed=2), threads=n).align(pairs)) for n in (1, 3))
    other = list(Aligner(Gibbs(seed=3)).align(pairs))
    for a, b in zip(one, again, strict=True):
        np.testing.assert_array_equal(a.forward, b.forward)
        np.testing.assert_array_equal(a.backward, b.backward)
    assert any((a.forward != c.forward).any() for a, c in zip(one, other, strict=True))


@pytest.mark.parametrize("model", ["ibm1", "hmm", "fertility"])
def test_probabilities_are_no_more_than_one_and_of_the_size_of_the_pair(model: statistical.Model) -> None:
    found = list(Aligner(Gibbs(model)).align(PAIRS))
    assert [(len(each.target), len(each.source)) for each in found] == [each.forward.shape for each in found]
    assert [each.forward.shape for each in found] == [each.backward.T.shape for each in found]
    for each in found:
        for weights in (each.forward, each.backward):
            assert (weights >= 0).all()
            assert (weights.sum(axis=1) < 1 + 1e-5).all()
    assert found[-1].links() == ([], [])


def test_case_is_ignored_and_words_are_kept_as_they_are() -> None:
    aligner = Aligner(Gibbs(sweeps=4))
    found = list(aligner.align([Pair("The HOUSE", "La Maison"), Pair("the house", "la maison")]))
    assert found[0].source == ("The", "HOUSE")
    assert list(aligner.lexicon.source) == ["the", "house"]


def test_every_pair_is_read_once_however_few_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, _ = invented(20)
    whole = list(Aligner(Gibbs(chains=1)).align(pairs))
    monkeypatch.setattr(statistical, "BLOCK", 60)
    found = list(Aligner(Gibbs(chains=1)).align(pairs))
    assert [each.source for each in found] == [tuple(pair.source.split()) for pair in pairs]
    assert [each.forward.shape for each in found] == [each.forward.shape for each in whole]
    assert all((each.forward.sum(axis=1) < 1 + 1e-5).all() for each in found)


def test_parts_learn_from_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, gold = invented(120)
    monkeypatch.setattr(statistical, "PART", 100)
    found = links(list(Aligner(Gibbs()).align(pairs)))
    assert len(found) == 120
    alone = links(list(Aligner(Gibbs()).align(pairs[100:])))

    def right(these: list[list[Link]]) -> int:
        return sum(len(set(one) & set(other)) for one, other in zip(these, gold[100:], strict=True))

    assert right(found[100:]) > right(alone)


def test_a_saved_lexicon_aligns_a_single_pair(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pairs, gold = invented(200)
    first = Aligner(Gibbs())
    list(first.align(pairs[1:]))
    first.lexicon.save(tmp_path / "one.npz")
    lexicon = Lexicon.load(tmp_path / "one.npz")
    assert lexicon.source == first.lexicon.source
    np.testing.assert_array_equal(lexicon.forward.counts, first.lexicon.forward.counts)
    assert links(list(Aligner(Gibbs(), lexicon=lexicon).align(pairs[:1]))) == gold[:1]


def _damage(path, **arrays: object) -> None:  # type: ignore[no-untyped-def]
    with np.load(path) as file:
        np.savez(path, **({name: file[name] for name in file.files} | arrays))


@pytest.mark.parametrize(
    "arrays",
    [
        {"forward_sources": np.array([1000], np.int32)},
        {"forward_counts": np.array([np.nan], np.float32)},
        {"backward_jumps": np.ones(3, np.float32)},
        {"forward_fertilities": np.ones((2, 17), np.float32)},
        {"backward_counts": np.ones(1)},
        {"source": np.array([255], np.uint8)},
        {"format": np.array(2)},
        {"format": np.array(["x"])},
    ],
)
def test_a_damaged_lexicon_is_refused_in_one_line(tmp_path, arrays: dict[str, object]) -> None:  # type: ignore[no-untyped-def]
    aligner = Aligner(Gibbs(sweeps=4))
    list(aligner.align(PAIRS))
    path = tmp_path / "one.npz"
    aligner.lexicon.save(path)
    _damage(path, **arrays)
    with pytest.raises(DataError, match=r"one\.npz"):
        Lexicon.load(path)


def test_a_file_that_is_no_lexicon_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "one.npz"
    with pytest.raises(DataError, match="not readable"):
        Lexicon.load(path)
    for content in (b"", b"PK\x03\x04 not quite", b"text"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="lexicon"):
            Lexicon.load(path)


def test_a_sentence_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistical, "LONGEST", 3)
    with pytest.raises(DataError, match="Pair 2: more than 3 words"):
        list(Aligner(Gibbs()).align(PAIRS))
