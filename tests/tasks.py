"""Tiny models of each task with random weights, saved as a run is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch

from regarde import config
from regarde.folder.model import Blueprint, save
from regarde.models import BahdanauConfig, ModelConfig, PointerNetworkConfig, SpanConfig
from regarde.models.classifier import ClassifierConfig
from regarde.models.language import AttentiveLanguageConfig, RecurrentLanguageConfig, TransformerLanguageConfig
from regarde.models.tagger import TaggerConfig
from regarde.models.transformer import TransformerConfig
from regarde.search import Greedy, Rules
from regarde.tasks import TASKS, ClassificationTask, ModelingTask
from regarde.text import CharactersConfig, TextConfig, TokenizerConfig
from regarde.text.labels import LabelsConfig, TagsConfig
from regarde.text.pointing import PositionsConfig
from regarde.text.spelled import SpelledConfig
from regarde.text.tokenizers import WordsConfig
from regarde.training.step import seeded

LINES = ["the cat sat on the mat", "a cat", "the mat", "on monday the cat sat"]


@dataclass(frozen=True)
class TinyModel:
    """A model, its tokenizers, and the pairs that they are learned from."""

    task: str
    model: ModelConfig
    pairs: tuple[tuple[str, str], ...]
    source: TokenizerConfig = field(default_factory=CharactersConfig)
    target: TokenizerConfig = field(default_factory=CharactersConfig)


_TEXTS = tuple(("", line) for line in LINES)
LANGUAGE_MODELS = {
    "recurrent": TinyModel("modeling", RecurrentLanguageConfig(embedding=6, hidden=7, layers=1), _TEXTS),
    "attentive": TinyModel("modeling", AttentiveLanguageConfig(embedding=6, hidden=9, window=3), _TEXTS),
    "transformer": TinyModel(
        "modeling", TransformerLanguageConfig(size=8, layers=2, heads=2, feed_forward=10, positions="rotary"), _TEXTS
    ),
}
TRANSFORMER = TinyModel(
    "translation",
    TransformerConfig(size=8, layers=1, heads=2, feed_forward=10, tying="two-way"),
    (("the cat", "le chat"), ("the mat", "le tapis")),
)
CLASSIFIER = TinyModel(
    "classification",
    ClassifierConfig(embedding=5, hidden=4, size=6),
    (("the cat", "animal"), ("the mat", "place"), ("on monday", "time")),
    target=LabelsConfig(),
)
LABEL_SETS = TinyModel(
    "classification",
    ClassifierConfig(embedding=5, hidden=4, size=6, queries=2, several=True),
    (("the cat", "animal,old"), ("the mat", "place"), ("on monday", "time,old")),
    target=LabelsConfig(several=True),
)
TAGGER = TinyModel(
    "tagging",
    TaggerConfig(embedding=5, spelling=3, characters=2, hidden=4),
    (("the cat sat", "O B-ANIMAL O"), ("on the mat", "O B-PLACE I-PLACE")),
    source=SpelledConfig(),
    target=TagsConfig(),
)
QUESTIONS = TinyModel(
    "questions",
    BahdanauConfig(embedding=5, hidden=4, maxout=3, init="torch"),
    (("Ada goes. Hugo stays.\tWho goes?", "Ada"), ("Edda has a map.\tWhat has Edda?", "a map")),
    source=WordsConfig(marks=True),
    target=WordsConfig(marks=True),
)
SPAN = TinyModel(
    "questions",
    SpanConfig(embedding=5, hidden=4, spelling=3, characters=2),
    QUESTIONS.pairs,
    source=SpelledConfig(marks=True),
    target=PositionsConfig(spans=True),
)
POINTER = TinyModel(
    "translation",
    PointerNetworkConfig(embedding=5, hidden=4, once=True),
    (("cab", "abc"), ("ba", "ab")),
    target=PositionsConfig(),
)


def saved(
    folder: Path,
    tiny: TinyModel,
    tokenizer: TokenizerConfig | None = None,
    *,
    seed: int = 3,
    columns: str = "",
    context: int = 0,
) -> Path:
    """Write the model into a folder; `tokenizer`, if given, is that of both sides."""
    shared = tiny.task == "modeling"
    source, target = (tokenizer, tokenizer) if tokenizer else (tiny.source, tiny.target)
    texts = TextConfig(source=source, target=target, shared=shared)
    with seeded(seed):
        text = texts.train(tiny.pairs)
        model = tiny.model.build(len(text.source), len(text.target))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.7)
    search = Greedy(rules=Rules(max_ratio=1.0, max_extra=8))
    task = ModelingTask(context=context) if context else TASKS[tiny.task]
    if tiny == LABEL_SETS:
        task = ClassificationTask(several=True)
    blueprint = Blueprint(task=task, text=texts, search=search, model=tiny.model)
    save(folder, config.as_table(blueprint) | {"data": {"columns": columns}}, text, model, "")
    return folder
