"""Validation during training: the loss over all validation pairs, the metric over some of them.

All processes share the work, and each gets the same result.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch

from regarde.data.batch import Batch
from regarde.engines.reference import TorchEngine
from regarde.evaluation.metrics import MetricName, count
from regarde.models.interface import Model, State
from regarde.search import Greedy
from regarde.text import PAD, UNK
from regarde.training.distributed import World
from regarde.training.loss import batch_loss, word_loss
from regarde.translate import Translator

if TYPE_CHECKING:
    from regarde.training.prepare import PreparedTexts


@torch.no_grad()
def validation_loss(prepared: PreparedTexts, model: Model, device: torch.device | str, world: World) -> float:
    """Per target token, without smoothing. Rows with a label never seen in training have no likelihood: left out."""
    model.eval()
    valid, closed = prepared.valid, prepared.text.target.closed
    total, tokens = 0.0, 0
    state: State | None = None
    batches = valid.in_order(pairs=256, tokens=8192)
    for rows in batches[world.rank :: world.size]:
        batch = _seen(valid.batch(rows), closed).to(device)
        if valid.carries:
            logits, state = model.carry(batch, None if batch.starts else state)
            total += float(word_loss(logits, batch.target_ids))
        else:
            total += float(batch_loss(model, batch))
        tokens += int(batch.target_mask.sum())
    shares = world.gather([total, tokens])
    return float(sum(loss for loss, _ in shares) / sum(count for _, count in shares))


def _seen(batch: Batch, closed: bool) -> Batch:
    """The batch without rows that hold a label never seen in training, if its targets are labels."""
    unseen = (batch.target_ids == UNK).any(dim=1, keepdim=True) & closed  # (B, 1)
    target_ids = batch.target_ids.masked_fill(unseen, PAD)
    return replace(batch, target_ids=target_ids, target_mask=target_ids.ne(PAD))


def validation_metric(prepared: PreparedTexts, model: Model, world: World, loss: float) -> float:
    """The run's metric: of greedy answers, or of the loss alone."""
    recipe, text = prepared.recipe, prepared.text
    if recipe.training.metric == "perplexity":
        return math.exp(min(loss, 100.0))
    chosen = prepared.valid_pairs[: recipe.training.valid_pairs]
    translator = Translator(
        text=text,
        engine=TorchEngine(model),
        search=Greedy(rules=recipe.search.rules),
        offset=model.decoder.offset,
        task=recipe.task,
        longest=10**9,
    )
    mine = chosen[world.rank :: world.size]
    given = [translator.tokens(pair.source) for pair in mine]
    shares = world.gather([found.text for found in translator.stream(given, translator.search)])
    texts = [shares[i % world.size][i // world.size] for i in range(len(chosen))]
    references = [[text.prepare(answer) for answer in pair.accepted] for pair in chosen]
    metric = cast(MetricName, recipe.training.metric)
    return count(metric, texts, references, several_labels=text.target.several).value()
