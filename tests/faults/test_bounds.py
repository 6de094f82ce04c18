"""A setting that one engine refuses is refused by the other: bounds are checked once, before either of them."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from regarde import config
from regarde.attention import (
    AdditiveConfig,
    ConcatConfig,
    CoverageConfig,
    DotConfig,
    GaussianConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    LocationConfig,
    MonotonicConfig,
    MultiHeadConfig,
)
from regarde.errors import ConfigError, FolderError, RegardeError
from regarde.folder import model as folder
from regarde.folder.loading import EngineName, load
from regarde.folder.model import Blueprint
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
from regarde.models.classifier import NEVER
from regarde.models.encoders import BidirectionalConfig
from regarde.models.transformer import SelfAttentiveConfig
from regarde.native import library
from regarde.search import Beam, Rules, Sampling, Search
from regarde.tasks import OF_MODEL, TRANSLATION
from regarde.text import TextConfig
from regarde.training.step import seeded

native = pytest.mark.skipif(not library.available(), reason="the native library was not built")
SMALL: dict[str, Any] = {"embedding": 5, "hidden": 6}
ADDITIVE = AdditiveConfig(size=3)
MODELS: dict[str, ModelConfig] = {
    "sutskever": SutskeverConfig(**SMALL, layers=2),
    "cho": ChoConfig(**SMALL, maxout=4),
    "deep cho": ChoConfig(**SMALL, maxout=4, cell="gru", layers=2, residual_from=2),
    "bahdanau": BahdanauConfig(**SMALL, maxout=4, attention=GlobalConfig(score=ADDITIVE)),
    "conditional": ConditionalConfig(**SMALL, maxout=4, attention=CoverageConfig(score=ADDITIVE)),
    "luong": LuongConfig(**SMALL, layers=2, attention=LocalMConfig(score=ConcatConfig(size=4), window=2)),
    "location": LuongConfig(**SMALL, layers=1, attention=GlobalConfig(score=LocationConfig(length=9))),
    "predicted": LuongConfig(**SMALL, layers=2, attention=LocalPConfig(score=DotConfig(), window=2)),
    "gaussian": LuongConfig(**SMALL, layers=1, attention=GlobalConfig(score=GaussianConfig(learned=False))),
    "monotonic": BahdanauConfig(
        **SMALL, maxout=4, encoder=BidirectionalConfig(layers=2), attention=MonotonicConfig(score=ADDITIVE)
    ),
    "heads": BahdanauConfig(**SMALL, maxout=4, attention=MultiHeadConfig(heads=2)),
    "gnmt": GNMTConfig(**SMALL, layers=3, start="project", attention=GlobalConfig(score=ADDITIVE)),
    "transformer": TransformerConfig(size=8, layers=1, heads=2, feed_forward=10, tying="two-way"),
    "learned": TransformerConfig(
        size=8, layers=1, heads=2, feed_forward=10, tying="none", positions="learned", longest=30, norm="pre"
    ),
    "classifier": ClassifierConfig(embedding=5, hidden=3, size=6, queries=2),
    "tagger": TaggerConfig(embedding=8, spelling=0, encoder=SelfAttentiveConfig(heads=2, feed_forward=6)),
    "recurrent language model": RecurrentLanguageConfig(**SMALL, layers=2),
    "attentive language model": AttentiveLanguageConfig(**SMALL, parts=3, window=2, score=ADDITIVE),
    "Transformer language model": TransformerLanguageConfig(size=8, layers=1, heads=2, feed_forward=10, longest=30),
}
RULES = Rules(max_ratio=1.0, max_extra=3)
SEARCHES: dict[str, Search] = {
    "bahdanau": Beam(size=3, n_best=2, beta=0.1, rules=RULES),
    "transformer": Sampling(n_best=2, top_k=5, top_p=0.9, temperature=0.8, rules=RULES),
}
NASTY: list[Any] = [
    *(-1, 0, 1, 2, 3, 7, 65_537, 10**18, 10**25, -(10**18), 0.5, 1.5, -0.5, 1e300, -1e300, 1e-300),
    *(math.nan, math.inf, -math.inf, True, False, "", "+2", " 2", "2", "2.0", "0x2", "true", "x", [], [2], {}),
]
TEXTS = ["abc", "cab b", "a"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bounds")
    text = TextConfig().train([("abc ", "wxyz"), ("cba", "zyx")])
    for name, model in MODELS.items():
        with seeded(1):
            built = model.build(len(text.source), len(text.target))
            for parameter in built.parameters():
                parameter.data.normal_(std=0.5)
        search = SEARCHES.get(name, Beam(size=2, rules=RULES))
        blueprint = Blueprint(task=OF_MODEL.get(model.kind, TRANSLATION), model=model, search=search)
        folder.save(path / name, config.as_table(blueprint), text, built, "a card")
    return path


def changes(tables: config.Table, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each setting with each of the values, and without any; each table with a key too many."""
    for key, value in tables.items():
        if isinstance(value, dict):
            yield from changes(value, (*path, key))
        yield from (((*path, key), nasty) for nasty in [None, *NASTY])
    yield (*path, "foreign"), 1


def changed(tables: config.Table, path: tuple[str, ...], value: Any) -> config.Table:
    key, *rest = path
    inner = dict(tables)
    if rest:
        inner[key] = changed(tables[key], tuple(rest), value)
    elif value is None:
        del inner[key]
    else:
        inner[key] = value
    return inner


def vouched(model: Path, content: bytes) -> None:
    """Give a folder another configuration, and a manifest that vouches for it."""
    (model / "config.toml").write_bytes(content)
    manifest = json.loads((model / "manifest.json").read_text())
    manifest["files"]["config.toml"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (model / "manifest.json").write_text(json.dumps(manifest))


Said = list[tuple[str, float]]


def outcome(model: Path, engine: EngineName) -> Said | Exception:
    try:
        return [(t.text, t.score) for t in load(model, engine=engine).translate(TEXTS)]
    except Exception as error:
        return error


def difference(by_torch: Said | Exception, by_kernels: Said | Exception) -> str:
    """Nothing, or what the engines do not agree on."""
    for one in (by_torch, by_kernels):
        if isinstance(one, Exception) and not isinstance(one, RegardeError):
            return "an error without a name"
    if isinstance(by_torch, Exception):
        return "" if isinstance(by_kernels, Exception) else "the native engine alone answers"
    if isinstance(by_kernels, Exception):
        return "" if "does not support" in str(by_kernels) else "torch alone answers"
    # a label that must be longer than it is has ends that are all as impossible, in any order
    same = all(a == b or score < NEVER / 2 for (a, score), (b, _) in zip(by_torch, by_kernels, strict=True))
    close = all(
        math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3) for (_, a), (_, b) in zip(by_torch, by_kernels, strict=True)
    )
    return "" if same and close else "another answer"


def sweep(models: Path, share: float, seed: int = 1) -> dict[str, int]:
    """What both engines made of a share of all single changes; whatever they disagree on fails."""
    draw, found = random.Random(seed), {"answered": 0, "refused": 0, "narrower": 0}
    wrong = []
    for name in MODELS:
        model = models / name
        whole = (model / "config.toml").read_bytes()
        tables = config.read(model / "config.toml")
        for path, value in changes(tables):
            if draw.random() >= share:
                continue
            vouched(model, tomli_w.dumps(changed(tables, path, value)).encode())
            by_torch, by_kernels = outcome(model, "torch"), outcome(model, "native")
            if problem := difference(by_torch, by_kernels):
                wrong.append(f"{name} {'.'.join(path)} = {value!r}: {problem}: {by_torch} {by_kernels}")
            refused = [isinstance(one, Exception) for one in (by_torch, by_kernels)]
            found["refused" if all(refused) else "narrower" if any(refused) else "answered"] += 1
        vouched(model, whole)
    assert not wrong, f"{len(wrong)} of {sum(found.values())}:\n" + "\n".join(wrong)
    return found


@pytest.mark.parametrize("engine", ["torch", pytest.param("native", marks=native)])
@pytest.mark.parametrize(
    ("name", "path", "value", "told"),
    [
        ("luong", "model.attention.window", -1, "from 1 to 65536"),
        ("gaussian", "model.attention.score.width", math.nan, "a value from"),
        ("monotonic", "model.attention.start", 1e300, "from -100 to 100"),
        ("bahdanau", "model.hidden", "+6", "expected a whole number, got a string"),
        ("transformer", "model.dropout", "0.1", "expected a number, got a string"),
        ("bahdanau", "search.alpha", 1e12, "from 0 to 10"),
        ("bahdanau", "search.rules.min_length", 10**12, "from 0 to 1000000"),
        ("transformer", "search.temperature", 1e-9, "from 0.001 to 1000"),
        ("transformer", "search.top_k", 10**12, "from 0 to 1000000"),
    ],
)
def test_a_setting_out_of_bounds_is_named_by_either_engine(
    name: str, path: str, value: Any, told: str, engine: EngineName, models: Path
) -> None:
    tables, whole = config.read(models / name / "config.toml"), (models / name / "config.toml").read_bytes()
    vouched(models / name, tomli_w.dumps(changed(tables, tuple(path.split(".")), value)).encode())
    try:
        with pytest.raises(FolderError, match=f"{re.escape(path)} = .*{told}"):
            load(models / name, engine=engine)
    finally:
        vouched(models / name, whole)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: Rules(min_length=10**12),
        lambda: Rules(max_ratio=math.inf),
        lambda: Rules(max_extra=0),
        lambda: Beam(alpha=1e12),
        lambda: Beam(beta=-1.0),
        lambda: Beam(size=10**9),
        lambda: Sampling(temperature=math.nan),
        lambda: Sampling(top_p=1.5),
        lambda: Sampling(top_k=-1),
        lambda: Sampling(n_best=10**6),
    ],
)
def test_a_search_out_of_bounds_cannot_be_made_in_python(asked: Callable[[], Search]) -> None:
    with pytest.raises(ConfigError, match=r"^\w+ = .*: expected a value from"):
        asked()


@native
def test_no_changed_setting_is_answered_by_one_engine_alone(models: Path) -> None:
    found = sweep(models, share=0.004)
    assert found["answered"] > 2
    assert found["refused"] > 20


@native
@pytest.mark.slow
def test_none_of_all_single_changes_is_answered_by_one_engine_alone(models: Path) -> None:
    print(sweep(models, share=1.0))
