"""What the native engine does with folders that are not what they say, and without torch."""

from __future__ import annotations

import hashlib
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regarde
from regarde import config as configs
from regarde.data.batch import collate, collate_source
from regarde.engines.native import NativeEngine, Unfit
from regarde.engines.reference import forced
from regarde.errors import RegardeError, UsageError
from regarde.folder import model as folder
from regarde.folder.loading import EngineName
from regarde.folder.model import Blueprint
from regarde.folder.precision import in_bytes
from regarde.models import (
    AttentiveLanguageConfig,
    BahdanauConfig,
    ChoConfig,
    ClassifierConfig,
    ConditionalConfig,
    GNMTConfig,
    LuongConfig,
    ModelConfig,
    RecurrentLanguageConfig,
    SutskeverConfig,
    TaggerConfig,
    TransformerConfig,
    TransformerLanguageConfig,
)
from regarde.models.copying import MappedConfig, PointerConfig
from regarde.models.transformer import SelfAttentiveConfig
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Rules
from regarde.search.settings import Prefix
from regarde.tasks import OF_MODEL, TRANSLATION
from regarde.text import EOS, TextConfig
from regarde.training.step import seeded
from regarde.translation import Translation

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")

MODELS: dict[str, ModelConfig] = {
    "sutskever": SutskeverConfig(embedding=5, hidden=6, layers=2),
    "cho": ChoConfig(embedding=5, hidden=6, maxout=4),
    "deep cho": ChoConfig(embedding=5, hidden=6, maxout=4, cell="gru", layers=2),
    "bahdanau": BahdanauConfig(embedding=5, hidden=6, maxout=4),
    "conditional": ConditionalConfig(embedding=5, hidden=6, maxout=4),
    "luong": LuongConfig(embedding=5, hidden=6, layers=2),
    "gnmt": GNMTConfig(embedding=5, hidden=6, layers=3, start="project"),
    "transformer": TransformerConfig(size=8, layers=2, heads=2, feed_forward=10, tying="two-way"),
    "copying": LuongConfig(embedding=5, hidden=6, layers=1, copying=PointerConfig()),
    "copying, mapped": TransformerConfig(
        size=8, layers=2, heads=2, feed_forward=10, tying="two-way", copying=MappedConfig(layer=1, head=2)
    ),
    "classifier": ClassifierConfig(embedding=5, hidden=3, size=7, queries=2),
    "classifier by the mean": ClassifierConfig(embedding=5, hidden=3, pooling="mean"),
    "tagger": TaggerConfig(embedding=8, spelling=0, encoder=SelfAttentiveConfig(heads=2, feed_forward=6)),
    "recurrent-lm": RecurrentLanguageConfig(embedding=6, hidden=6, tied=True),
    "attentive-lm": AttentiveLanguageConfig(embedding=5, hidden=6, parts=2, window=2),
    "transformer-lm": TransformerLanguageConfig(size=8, layers=2, heads=2, feed_forward=10, longest=30),
}
SIZES = {"source": 9, "target": 11}


def parts(name: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    model = MODELS[name].build(*SIZES.values())
    settings = flattened({"model": configs.as_table(MODELS[name]), "vocabulary": SIZES})
    return settings, {key: tensor.numpy() for key, tensor in model.state_dict().items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_tensor_of_another_shape_is_refused(name: str) -> None:
    settings, tensors = parts(name)
    NativeEngine(settings, tensors)
    for key, tensor in tensors.items():
        for shape in ((*tensor.shape, 1), *(_other(tensor.shape, axis) for axis in range(tensor.ndim))):
            with pytest.raises(Unfit):
                NativeEngine(settings, {**tensors, key: np.zeros(shape, dtype=np.float32)})
        with pytest.raises(Unfit):
            NativeEngine(settings, {other: value for other, value in tensors.items() if other != key})


def _other(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(size + (place == axis) for place, size in enumerate(shape))


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_setting_is_refused_by_both_engines_or_gives_the_same_answer(name: str, tmp_path: Path) -> None:
    text = TextConfig().train([("abcde", "stuvwxy")])
    assert (len(text.source), len(text.target)) == tuple(SIZES.values())
    with seeded(4):
        model = MODELS[name].build(*SIZES.values())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.uniform_(-1, 1)
    run = tmp_path / "model"
    blueprint = Blueprint(task=OF_MODEL.get(MODELS[name].kind, TRANSLATION), model=MODELS[name])
    folder.save(run, configs.as_table(blueprint), text, model, "a card")
    draw = random.Random(1)
    for _ in range(30):
        tables = configs.as_table(blueprint)
        table = _inner(tables["model"], draw)
        key = draw.choice(sorted(key for key, value in table.items() if not isinstance(value, dict)))
        known = [False, "lstm", "sparsemax", "torch", "current", "two-way", "none", "pre", "rotary", table[key]]
        table[key] = draw.choice([*known, "", "nonsense", "+2", -1, 0, 2, 7, 10**18, 0.5, 1e300, math.nan])
        _configure(run, configs.as_text(tables).encode())
        native, by_torch = (_said(run, engine) for engine in ("native", "torch"))
        assert (native is None) == (by_torch is None), (key, table[key])
        for one, other in zip(native or [], by_torch or [], strict=True):
            assert one.text == other.text, (key, table[key])
            np.testing.assert_allclose(one.heads, other.heads, atol=1e-4, err_msg=f"{key} = {table[key]}")
            assert one.score == pytest.approx(other.score, abs=1e-4), (key, table[key])


def _inner(table: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A table of settings, or one within it."""
    within = [value for value in table.values() if isinstance(value, dict)]
    return _inner(draw.choice(within), draw) if within and draw.random() < 0.5 else table


def _configure(run: Path, content: bytes) -> None:
    """Give a folder another configuration, which its manifest lists."""
    (run / "config.toml").write_bytes(content)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"]["config.toml"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest))


def _said(run: Path, engine: EngineName) -> list[Translation] | None:
    """The answers of a model; None if it is refused."""
    try:
        model = regarde.load(run, engine=engine)
    except RegardeError:
        return None
    return model.translate(["ab", "d", "edcba"], search=Greedy(rules=Rules(max_ratio=1.0, max_extra=4)))


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("transformer", "positions", "alibi"),
        ("transformer", "norm", "sandwich"),
        ("transformer", "attention.normalizer", "entmax"),
        ("transformer", "tying", "three-way"),
        ("bahdanau", "readout", "nonsense"),
        ("bahdanau", "attention.attend_eos", "yes"),
        ("bahdanau", "hidden", "6.9"),
        ("bahdanau", "embedding", "5abc"),
        ("bahdanau", "hiden", "6"),
        ("luong", "start", "nonsense"),
        ("luong", "encoder.reverse", "True"),
        ("luong", "encoder.residual_from", "60"),
        ("gnmt", "encoder.residual_from", "1"),
    ],
)
def test_what_torch_would_refuse_is_not_taken_for_something_else(name: str, key: str, value: str) -> None:
    settings, tensors = parts(name)
    with pytest.raises(Unfit):
        NativeEngine({**settings, f"model.{key}": value}, tensors)


def test_one_table_of_embeddings_serves_both_sides() -> None:
    config = TransformerConfig(size=8, layers=1, heads=2, feed_forward=10, tying="three-way")
    with seeded(3):
        model = config.build(11, 11).eval()
    tensors = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    sizes = {"source": 11, "target": 11}
    engine = NativeEngine(flattened({"model": configs.as_table(config), "vocabulary": sizes}), tensors)
    (found,) = engine.forced([[5, 6, 7]], [[8, 9, 3]])
    (expected,) = forced(model, collate([[5, 6, 7]], [[8, 9]]))
    np.testing.assert_allclose(found.token_scores, expected.token_scores, atol=1e-5)


def test_more_threads_than_there_are_sentences_or_room_for_do_no_harm() -> None:
    engine = NativeEngine(*parts("bahdanau"), threads=1000)
    assert len(list(engine.decode([[5, 6], [7]], Greedy()))) == 2


@pytest.mark.parametrize("name", MODELS)
def test_products_in_bytes_say_nearly_the_same(name: str) -> None:
    settings, tensors = parts(name)
    draw = np.random.default_rng(2)  # weights as they start may be so small that every word is as likely as any other
    tensors = {key: draw.normal(0, 0.3, tensor.shape).astype(np.float32) for key, tensor in tensors.items()}
    sources, targets = [[5, 6, 7], [8]], [[8, 9, 3], [4, 3]]
    exact, rough = (NativeEngine(settings, each).forced(sources, targets) for each in (tensors, in_bytes(tensors)))
    for one, other in zip(exact, rough, strict=True):
        assert not np.array_equal(one.token_scores, other.token_scores)
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=0.1)


def test_products_in_bytes_are_the_same_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, tensors = parts("bahdanau")
    found = []
    for simd in ("avx2", "portable"):
        monkeypatch.setenv("REGARDE_SIMD", simd)
        library.simd.cache_clear()
        found.append(NativeEngine(settings, in_bytes(tensors)).forced([[5, 6, 7]], [[8, 9, 3]])[0].token_scores)
    monkeypatch.undo()
    library.simd.cache_clear()
    np.testing.assert_allclose(*found, atol=1e-4)


def test_a_token_that_the_model_does_not_know_is_an_error_and_no_crash() -> None:
    engine = NativeEngine(*parts("bahdanau"))
    for wrong in (-1, 9, 10**12):
        with pytest.raises(RuntimeError, match="does not know"):
            list(engine.decode([[5, wrong]], Greedy()))
    with pytest.raises(RuntimeError, match="does not know"):
        engine.forced([[5]], [[6, 11]])


def test_many_sentences_get_what_each_gets_alone() -> None:
    settings, tensors = parts("bahdanau")
    draw = np.random.default_rng(1)
    sources = [draw.integers(4, 9, size=draw.integers(1, 40)).tolist() for _ in range(2500)]
    together = list(NativeEngine(settings, tensors, threads=2, rows=16).decode(sources, Greedy()))
    alone = NativeEngine(settings, tensors)
    for source, (found,) in list(zip(sources, together, strict=True))[::83]:
        ((expected,),) = alone.decode([source], Greedy())
        assert found.ids == expected.ids
        np.testing.assert_allclose(found.heads, expected.heads, atol=1e-5)


def test_a_beam_over_a_large_vocabulary_finds_what_torch_finds() -> None:
    config, sizes = SutskeverConfig(embedding=5, hidden=6, layers=1), {"source": 9, "target": 300}
    with seeded(4):
        model = config.build(*sizes.values()).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
    settings = flattened({"model": configs.as_table(config), "vocabulary": sizes})
    engine = NativeEngine(settings, {key: tensor.numpy() for key, tensor in model.state_dict().items()})
    search = Beam(size=5, n_best=5, rules=Rules(min_length=3, max_ratio=0.0, max_extra=6))
    for source in ([5, 6, 7], [8]):
        (expected,) = search(model, model.encode(collate_source([source])))
        (found,) = engine.decode([source], search)
        assert [h.ids for h in found] == [h.ids for h in expected]


def test_scores_too_large_for_an_exponential_are_weighed_as_torch_weighs_them() -> None:
    with seeded(5):
        model = LuongConfig(embedding=5, hidden=6, layers=1, init="torch").build(*SIZES.values()).eval()
        model.decoder.attention.score.W.weight.data.mul_(100_000)
    settings = flattened({"model": LuongConfig(embedding=5, hidden=6, layers=1), "vocabulary": SIZES})
    engine = NativeEngine(settings, {key: tensor.numpy() for key, tensor in model.state_dict().items()})
    sources, targets = [[5, 6, 7, 8, 4]], [[8, 9, 5]]
    (expected,) = forced(model, collate(sources, targets))
    (found,) = engine.forced(sources, [[*targets[0], EOS]])
    steps, _ = engine.trace(sources[0], Greedy(), 1, target=[*targets[0], EOS])
    assert np.abs(steps[0].branches[0].energies).min() > 89  # exp(89) is no float
    np.testing.assert_allclose(found.heads, expected.heads, atol=0.02)


def test_short_and_long_sources_together_get_what_each_gets_alone() -> None:
    settings, tensors = parts("bahdanau")
    draw = np.random.default_rng(3)
    tensors = {key: draw.normal(0, 0.3, tensor.shape).astype(np.float32) for key, tensor in tensors.items()}
    sources = [draw.integers(4, 9, size=length).tolist() for length in (3, 300, 255, 256, 8)]  # with EOS, 256 are few
    search = Beam(size=3, rules=Rules(min_length=4, max_ratio=0.0, max_extra=6))
    for kind in (tensors, in_bytes(tensors)):
        together = list(NativeEngine(settings, kind, rows=15).decode(sources, search))
        for source, (found, *_) in zip(sources, together, strict=True):
            ((expected, *_),) = NativeEngine(settings, kind).decode([source], search)
            assert found.ids == expected.ids
            np.testing.assert_allclose(found.heads, expected.heads, atol=1e-5)
            (scored,) = NativeEngine(settings, tensors).forced([source], [found.ids])
            np.testing.assert_allclose(found.token_scores, scored.token_scores, atol=1e-4 if kind is tensors else 0.1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "copy"
    settings = ["model.hidden=8", "model.embedding=8", "training.steps=2", "training.valid_pairs=5"]
    return regarde.train("copy", settings=settings, out=out).folder


def test_both_engines_say_the_same(run: Path) -> None:
    texts = ["abc", "hello", "", "z"]
    native, by_torch = (regarde.load(run, engine=name) for name in ("native", "torch"))
    assert native.engine.name == "native"
    for one, other in zip(native.translate(texts, beam=3), by_torch.translate(texts, beam=3), strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-4)
    with pytest.raises(UsageError, match="torch"):
        _ = native.model
    with pytest.raises(UsageError, match="expected one of"):
        regarde.load(run, engine="other")


def test_translating_never_imports_torch(run: Path) -> None:
    code = f"""
import sys, regarde
print(len(regarde.load({str(run)!r}).translate("abc").source_tokens))
print(sorted({{"torch", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["4", "[]"]


def test_a_trace_is_json_and_leads_to_what_was_said(run: Path) -> None:
    for engine in ("native", "torch"):
        model = regarde.load(run, engine=engine)
        trace = model.trace("abc", beam=3, n_best=2, top_k=5)
        said = json.loads(json.dumps(trace.as_json(), allow_nan=False))
        translation = model.translate("abc", beam=3, n_best=2)
        assert said["source_tokens"] == list(translation.source_tokens)
        assert said["source_words"] == list(translation.source_words)
        assert list(translation.words) in [h["words"] for h in said["hypotheses"]]
        assert {h["text"] for h in said["hypotheses"]} == {translation.text, translation.alternatives[0].text}
        for hypothesis in said["hypotheses"]:
            path = zip(hypothesis["path"], said["steps"], hypothesis["ids"], strict=False)
            for place, step, word in path:
                assert len(step["branches"][place]["candidates"]) <= 5
                assert (place, word) in {(c["branch"], c["id"]) for c in step["continuations"]}
        forced = model.trace("abc", target="ab")
        assert (forced.texts, forced.search) == (("ab",), {"kind": "forced"})
        with pytest.raises(UsageError, match="nothing to trace"):
            model.trace(" ")


def test_a_translation_begins_with_the_words_it_was_given(run: Path) -> None:
    for engine in ("native", "torch"):
        model = regarde.load(run, engine=engine)
        assert model.translate("abc", prefix="za", beam=2).text.startswith("za")
        texts = [found.text for found in model.translate(["abc", "x", "y"], prefix=["b", "", "yy"])]
        assert (texts[0][:1], texts[2][:2]) == ("b", "yy")
        assert texts[1] == model.translate("x").text
        assert model.trace("abc", prefix="za").texts[0].startswith("za")
        with pytest.raises(UsageError, match="which is not in the vocabulary"):
            model.translate("abc", prefix="a\N{SNOWMAN}")
        with pytest.raises(UsageError, match="2 prefixes for 1 sentence"):
            model.translate(["abc"], prefix=["a", "b"])


def test_a_prefix_holds_no_control_and_no_word_that_is_not_there() -> None:
    engine = NativeEngine(*parts("bahdanau"))
    with pytest.raises(UsageError, match="control tokens"):
        Prefix((5, 3))
    with pytest.raises(RuntimeError, match="does not know"):
        list(engine.decode([[5]], Greedy(), [Prefix((11,))]))


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_several_threads_give_one_sentence_the_same_bits_as_one(kind: str) -> None:
    small: dict[str, ModelConfig] = {
        "bahdanau": BahdanauConfig(embedding=32, hidden=64, maxout=64, init="torch"),
        "transformer": TransformerConfig(size=64, layers=1, heads=2, feed_forward=64, tying="two-way"),
    }
    sizes = {"source": 50, "target": 4099}  # large enough for products to be shared, and not a whole number of panels
    with seeded(2):
        model = small[kind].build(*sizes.values())
    tensors = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    settings = flattened({"model": configs.as_table(small[kind]), "vocabulary": sizes})
    for given in (tensors, in_bytes(tensors)):
        answers = []
        for threads in (1, 2, 3):
            engine = NativeEngine(settings, given, threads=threads)
            answers.append(list(engine.decode([[5, 6, 7, 8]], Beam(size=5, n_best=5, rules=Rules(max_extra=3)))))
        for (found,) in answers[1:]:
            for one, other in zip(found, answers[0][0], strict=True):
                assert one.ids == other.ids
                np.testing.assert_array_equal(one.token_scores, other.token_scores)
                np.testing.assert_array_equal(one.heads, other.heads)
