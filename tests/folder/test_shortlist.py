"""A shortlist: what is learned, how it is kept, and what a search makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import regarde
from regarde import config as configs
from regarde.data.batch import collate
from regarde.engines.native import NativeEngine
from regarde.errors import DataError, FolderError, UsageError
from regarde.folder import manifest
from regarde.folder import shortlist as shortlists
from regarde.folder.precision import in_bytes
from regarde.folder.shortlist import Shortlist
from regarde.models import BahdanauConfig, Model, ModelConfig, SutskeverConfig, TransformerConfig
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from regarde.search.settings import Prefix
from regarde.training.step import seeded

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")

V, W = 13, 27
MODELS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=5, hidden=7, maxout=4, init="torch"),
    "sutskever": SutskeverConfig(embedding=5, hidden=7, layers=2, init="torch"),
    "transformer": TransformerConfig(size=8, layers=2, heads=2, feed_forward=10, tying="two-way", dropout=0.0),
}
RULES = Rules(max_ratio=1.0, max_extra=6)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, top_k=6, top_p=0.9, temperature=1.5, rules=RULES),
}
SOURCES = [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11]]


def built(name: str, *, int8: bool = False) -> tuple[NativeEngine, Model]:
    with seeded(3):
        model = MODELS[name].build(V, W)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    tensors = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    settings = flattened({"model": configs.as_table(MODELS[name]), "vocabulary": {"source": V, "target": W}})
    return NativeEngine(settings, in_bytes(tensors) if int8 else tensors), model.eval()


def lists(*per_token: list[int], frequent: list[int]) -> Shortlist:
    rows = [*per_token, *([] for _ in range(V - len(per_token)))]
    starts = np.cumsum([0, *(len(row) for row in rows)])
    return Shortlist(np.array(frequent), starts, np.array([i for row in rows for i in row], dtype=np.int64))


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", [*MODELS, "ensemble"])
def test_a_shortlist_of_all_words_changes_nothing(name: str, search: str, int8: bool) -> None:
    def engine() -> NativeEngine:
        if name != "ensemble":
            return built(name, int8=int8)[0]
        return built("bahdanau", int8=int8)[0].joined([built("transformer", int8=int8)[0]], [0, 0])

    plain, short = engine(), engine()
    short.shorten(lists(frequent=list(range(W))))
    for one, other in zip(
        plain.decode(SOURCES, SEARCHES[search]), short.decode(SOURCES, SEARCHES[search]), strict=True
    ):
        assert [h.ids for h in one] == [h.ids for h in other]
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.token_scores, b.token_scores, atol=1e-5)
            np.testing.assert_allclose(a.heads, b.heads, atol=1e-5)


SHORT = lists(*([i, i + 1, 20] for i in range(4, 4 + V)), frequent=[9, 25])  # by source token, counted from 0


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_a_sentence_says_its_own_words_scored_among_them(name: str, search: str) -> None:
    engine, model = built(name)
    engine.shorten(SHORT)
    for source, found in zip(SOURCES, engine.decode(SOURCES, SEARCHES[search]), strict=True):
        words = sorted({0, 1, 2, 3, 9, 25, *(w for token in (*source, 3) for w in SHORT.of(token))})
        for hypothesis in found:
            assert set(hypothesis.ids) <= set(words)
            said = list(hypothesis.ids[:-1] if hypothesis.finished else hypothesis.ids)
            with torch.no_grad():
                logits = model(collate([source], [said])).logits[0, : len(hypothesis.ids)]
            scores = logits[:, words].log_softmax(dim=-1)
            expected = [float(scores[t, words.index(word)]) for t, word in enumerate(hypothesis.ids)]
            np.testing.assert_allclose(hypothesis.token_scores, expected, atol=1e-4)


def test_neighbors_and_threads_change_nothing_of_a_shortlist() -> None:
    engine, _ = built("bahdanau")
    engine.shorten(SHORT)
    alone = [next(engine.decode([source], SEARCHES["beam"])) for source in SOURCES]
    engine.threads, engine.rows = 2, 7
    for found, expected in zip(engine.decode(SOURCES * 4, SEARCHES["beam"]), alone * 4, strict=True):
        assert [h.ids for h in found] == [h.ids for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-5)


def test_a_prefix_may_be_said_and_forced_words_are_scored_among_all() -> None:
    engine, _ = built("bahdanau")
    before = engine.forced([[5]], [[22, 3]])[0]
    engine.shorten(SHORT)
    ((found, *_),) = engine.decode([[5]], Greedy(rules=RULES), [Prefix((22, 23), np.array([9, 4]))])
    assert found.ids[:2] == (22, 23)
    assert found.ids[2] != 9
    np.testing.assert_array_equal(engine.forced([[5]], [[22, 3]])[0].token_scores, before.token_scores)
    steps, _ = engine.trace([5], Beam(size=2, rules=RULES), 30)
    words = {1, 3, 9, 25, *SHORT.of(5), *SHORT.of(3)}
    assert {c.id for c in steps[0].branches[0].candidates} == words


@pytest.mark.parametrize("search", [Greedy, Beam, Sampling])
def test_who_may_say_nothing_but_the_end_says_it(search: type[Search]) -> None:
    engine, _ = built("bahdanau")
    engine.shorten(lists(frequent=[]))
    rules = Rules(max_ratio=1.0, max_extra=6, min_length=3, allow_unknown=False)
    ((found,),) = engine.decode([[5, 6]], search(rules=rules))
    assert found.ids == (3,)
    assert np.isfinite(found.score)


def test_the_shortlist_of_an_ensemble_is_not_that_of_its_members() -> None:
    engine, other = built("bahdanau")[0], built("transformer")[0]
    inner = other.joined([built("sutskever")[0]], [0, 0])
    before = [[h.ids for h in found] for found in other.decode(SOURCES, SEARCHES["beam"])]
    engine.shorten(SHORT)
    outer = engine.joined([other, inner], [0, 0, 0])
    for source, found in zip(SOURCES, outer.decode(SOURCES, SEARCHES["beam"]), strict=True):
        words = {1, 3, 9, 25, *SHORT.of(3), *(word for token in source for word in SHORT.of(token))}
        assert {word for h in found for word in h.ids} <= words
    assert [[h.ids for h in found] for found in other.decode(SOURCES, SEARCHES["beam"])] == before


def test_the_likeliest_words_are_those_of_ibm_model_1() -> None:
    draw = np.random.default_rng(2)
    pairs = [tuple((draw.zipf(1.5, size) % 9 + 4).tolist() for size in draw.integers(1, 6, 2)) for _ in range(60)]
    t = {(e, f): 1.0 for sources, targets in pairs for e in sources for f in targets}  # t(f|e)
    for _ in range(shortlists.ROUNDS):
        counts = dict.fromkeys(t, 0.0)
        for sources, targets in pairs:
            for f in set(targets):
                total = sum(t[e, f] for e in set(sources))
                for e in set(sources):
                    counts[e, f] += t[e, f] / total
        t = {(e, f): count / sum(c for (one, _), c in counts.items() if one == e) for (e, f), count in counts.items()}
    learned = shortlists.learn(pairs, (13, 13), best=3, frequent=0)
    for e in range(4, 13):
        best = sorted((likely for (one, _), likely in t.items() if one == e), reverse=True)[:3]
        assert [t[e, f] for f in learned.of(e)] == pytest.approx(best)


def test_words_that_go_together_are_learned_and_kept() -> None:
    draw = np.random.default_rng(1)
    sources = [draw.integers(4, 40, size=draw.integers(1, 9)) for _ in range(400)]
    pairs = [(source.tolist(), ((source - 4 + 7) % 36 + 4).tolist()) for source in sources]
    learned = shortlists.learn(pairs, (40, 50), best=3, frequent=5)
    assert [learned.of(e)[0] for e in range(4, 40)] == [(e - 4 + 7) % 36 + 4 for e in range(4, 40)]
    assert max(len(learned.of(e)) for e in range(40)) == 3
    assert len(learned.frequent) == 5
    again = shortlists.read(Path("file"), learned.as_text().encode(), (40, 50))
    for one, other in ((learned.frequent, again.frequent), (learned.starts, again.starts), (learned.ids, again.ids)):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(DataError, match="no pairs"):
        shortlists.learn([([], [5])], (40, 50), best=3, frequent=5)


@pytest.mark.parametrize(
    "content",
    [b"", b"regarde shortlist 2\nfrequent\t\n", b"regarde shortlist 1\n4\t5\n", b"\xff\n", b"regarde shortlist 1\n\n"]
    + [b"regarde shortlist 1\nfrequent\t" + row + b"\n" for row in (b"x", b"5  6", b"50", b"-1", b"4\n4\t5\n4\t6")]
    + [b"regarde shortlist 1\nfrequent\t5\n40\t5\n", b"regarde shortlist 1\nfrequent\t5\n4\t50\n", b"a" * 99],
)
def test_what_is_no_shortlist_is_refused(content: bytes) -> None:
    with pytest.raises(FolderError, match=r"file: .* Learn it again"):
        shortlists.read(Path("file"), content, (40, 50))


def test_a_shortlist_is_part_of_its_folder(tmp_path: Path) -> None:
    settings = ["model.hidden=8", "model.embedding=8", "training.steps=4", "training.valid_pairs=5"]
    run = regarde.train("copy", settings=settings, out=tmp_path / "run").folder
    with pytest.raises(UsageError, match="has no shortlist"):
        regarde.load(run, shortlist=True)
    sizes = (len(regarde.load(run).text.source), len(regarde.load(run).text.target))
    everything = Shortlist(np.arange(sizes[1]), np.zeros(sizes[0] + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    for shortlist in (Shortlist(np.array([5]), everything.starts, everything.ids), everything):  # one replaces another
        manifest.add_file(run, shortlists.NAME, shortlist.as_text().encode())
        manifest.verify(run)
    texts = ["abc", "hello"]
    short, plain = (regarde.load(run, shortlist=asked).translate(texts, beam=3) for asked in (True, False))
    assert [t.text for t in short] == [t.text for t in plain]
    staging = run / ".new"  # a better model takes the place of this one, and the shortlist stays
    staging.mkdir()
    for name in json.loads((run / "manifest.json").read_text())["files"]:
        if name != shortlists.NAME:
            (staging / name).write_bytes((run / name).read_bytes())
    manifest.replace_files(run, staging)
    assert regarde.load(run, shortlist=True).engine.name == "native"
    (run / shortlists.NAME).write_text("regarde shortlist 1\n")
    with pytest.raises(FolderError, match=r"shortlist\.txt"):
        regarde.load(run, shortlist=True)
    with pytest.raises(UsageError, match="A shortlist needs the native engine"):
        regarde.load(run, engine="torch", shortlist=True)
