"""Attention trained on given links: Chen et al. 2016, "Guided Alignment Training for Topic-Aware NMT".

Axes: B batch, T target, S source, L attention layers, N heads.

The loss has a second term, the cross-entropy between the links of each target token, normalized to sum to one, and its
attention. A token without links adds nothing.

    loss = - log p(y | x)  -  weight * sum_t sum_s A_ts log a_ts
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.alignment.gold import read_gold
from regarde.alignment.links import Link, pharaoh
from regarde.config import Count, NonNegative
from regarde.data.batch import Batch
from regarde.data.formats import Pair
from regarde.errors import ConfigError, DataError, counted
from regarde.text import Text, Tokenizer

AUTO = "auto"
SMALLEST = 1e-6  # of attention, before the logarithm: weights of local attention and sparsemax can be zero


@dataclass(frozen=True)
class GuidedConfig:
    """A file of links, and the weight of their loss."""

    # File of links in Pharaoh format, a line for each pair, that attention learns from; auto: the pairs are aligned by
    # their statistics first, as by regarde align without a model; empty: none.
    links: str = ""
    unit: Literal["words", "tokens"] = "words"  # Unit that links refer to.
    weight: NonNegative = 0.1  # Weight of the attention's loss.
    layer: Count = 0  # Attention layer that learns from links, counted from 1; 0: the mean of all.
    head: Count = 0  # Attention head that learns from links, counted from 1; 0: the mean of all.
    sha256: str = ""  # SHA-256 of the file of links; the run records it.


@dataclass(frozen=True, eq=False)
class Guide:
    """Links between the tokens of each training pair."""

    config: GuidedConfig
    links: NDArray[np.int32]  # (all links, 2) source and target token
    starts: NDArray[np.int64]  # where those of each row begin; one more than there are rows

    def gold(self, rows: Sequence[int], batch: Batch) -> Tensor:
        """(B, T, S): the wanted attention of each target token; a row sums to one, or to zero without links."""
        B, T = batch.target_ids.shape
        found = np.zeros((B, T, batch.source.ids.shape[1]), dtype=np.float32)
        for place, row in enumerate(rows):
            links = self.links[self.starts[row] : self.starts[row + 1]]
            found[place, links[:, 1], links[:, 0]] = 1.0
        sums = found.sum(axis=2, keepdims=True)
        return torch.from_numpy(found / np.maximum(sums, 1.0)).to(batch.target_ids.device)

    def loss(self, attention: Tensor, gold: Tensor, offset: int) -> Tensor:
        """The cross-entropy summed over the batch, times its weight.  (B, L, N, T, S), (B, T, S)"""
        L, N = attention.shape[1:3]
        chosen = attention[:, _chosen("layer", self.config.layer, L), _chosen("head", self.config.head, N)]
        weights = chosen.float().mean(dim=(1, 2))  # (B, T, S)
        T = weights.shape[1] - offset  # row t belongs to token t - offset
        return -self.config.weight * (gold[:, :T] * weights[:, offset:].clamp_min(SMALLEST).log()).sum()


def read_guide(config: GuidedConfig, pairs: Sequence[Pair], chosen: Sequence[int], text: Text) -> Guide:
    """The links of the chosen pairs, counted from 0, as links between their tokens; with their digest."""
    every, sha256 = _aligned(config, pairs, text) if config.links == AUTO else _read(Path(config.links), pairs)
    links = [_tokens(config, number, every[number], pairs[number], text) for number in chosen]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in links], dtype=np.int64)])
    flat = np.array([link for one in links for link in one], dtype=np.int32).reshape(-1, 2)
    return Guide(replace(config, sha256=sha256), flat, starts)


def _read(path: Path, pairs: Sequence[Pair]) -> tuple[Sequence[Collection[Link]], str]:
    """The links in a file, and its SHA-256."""
    file = read_gold(path)
    if len(file.pairs) != len(pairs):
        counts = f"{path} has links for {counted(len(file.pairs), 'pair')}, and the data has {len(pairs):,}"
        raise DataError(f"{counts}, expected equally many. Give a line for each pair, in their order.")
    return [gold.possible for gold in file.pairs], hashlib.sha256(path.read_bytes()).hexdigest()


def _aligned(config: GuidedConfig, pairs: Sequence[Pair], text: Text) -> tuple[Sequence[Collection[Link]], str]:
    """The links that the statistics of the pairs give, and the SHA-256 of their lines."""
    from regarde.alignment.statistical import Aligner, Gibbs
    from regarde.alignment.symmetrize import agreed

    units = [
        Pair(*(" ".join(_units(tokenizer, text.prepare(side), config.unit)) for tokenizer, side in sides))
        for pair in pairs
        for sides in [((text.source, pair.source), (text.target, pair.target))]
    ]
    if config.unit == "words" and not any(" " in source or " " in target for source, target in units):
        given = "training.guided_alignment.links = auto: no text has more than one word"
        raise ConfigError(f"{given}. Align tokens: training.guided_alignment.unit=tokens")
    links = [agreed(found.forward, found.backward) for found in Aligner(Gibbs()).align(units)]
    return links, hashlib.sha256("".join(f"{pharaoh(one)}\n" for one in links).encode()).hexdigest()


def _units(tokenizer: Tokenizer, text: str, unit: Literal["words", "tokens"]) -> list[str]:
    """What links count of a text; tokens as they are shown, without spaces."""
    return text.split() if unit == "words" else tokenizer.pieces(tokenizer.encode(text))


def _tokens(config: GuidedConfig, number: int, links: Collection[Link], pair: Pair, text: Text) -> list[Link]:
    """Every token of a source word with every token of the target words it is linked to."""
    source, target = (
        _members(tokenizer, text.prepare(side), config.unit)
        for tokenizer, side in ((text.source, pair.source), (text.target, pair.target))
    )
    for link in links:
        if link.source not in source or link.target not in target:
            given = f"link {link.source}-{link.target} lies outside {len(source)} source and {len(target)} target"
            remedy = "Give links of these pairs, or set their unit: training.guided_alignment.unit"
            raise DataError(f"{config.links}, line {number + 1:,}: {given} {config.unit}. {remedy}.")
    return sorted({Link(s, t) for i, j in links for s in source[i] for t in target[j]})


def _members(tokenizer: Tokenizer, text: str, unit: Literal["words", "tokens"]) -> dict[int, list[int]]:
    """The tokens of each word."""
    ids = tokenizer.encode(text)
    words = tokenizer.words(ids, tokenizer.unknown(text)) if unit == "words" else range(len(ids))
    members: dict[int, list[int]] = defaultdict(list)
    for token, word in enumerate(words):
        if word >= 0:
            members[word].append(token)
    return dict(members)


def _chosen(name: str, wanted: int, there: int) -> slice:
    if wanted > there:
        given = f"training.guided_alignment.{name} = {wanted}"
        raise ConfigError(f"{given}: this model has {there}. Choose from 1 to {there}, or 0 for the mean of all.")
    return slice(None) if not wanted else slice(wanted - 1, wanted)
