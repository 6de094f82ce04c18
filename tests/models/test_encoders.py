"""Recurrent encoders against slow float64 loops: residual connections, one dropout mask a sentence, no idle option."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from regarde.data.batch import Source, collate_source
from regarde.errors import ConfigError
from regarde.layers import Embedding, RecurrentShape
from regarde.models import LuongConfig, SutskeverConfig
from regarde.models.encoders import (
    BidirectionalConfig,
    BottomBidirectionalConfig,
    EncoderConfig,
    RecurrentEncoder,
    UnidirectionalConfig,
)
from regarde.training.step import seeded

E, H = 3, 4
SENTENCES = [[5, 7, 4, 6], [8], [4, 4]]
Rows = list[np.ndarray]


def built(config: EncoderConfig, *, dropout: float = 0.0, variational: bool = False, cell: str = "lstm") -> Any:
    with seeded(5):
        shared = RecurrentShape(hidden=H, layers=4, cell=cell, dropout=dropout, variational=variational)
        return config.build(Embedding(9, E), shared).double()


def source() -> Source:
    return collate_source(SENTENCES)


class Slow:
    """An encoder's equations, one sentence and one word at a time."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        self.p = {name: value.numpy() for name, value in encoder.state_dict().items()}

    def embed(self, ids: Sequence[int]) -> Rows:
        return [self.p["embedding.table.weight"][i] for i in ids]

    def lstm(self, name: str, xs: Rows) -> Rows:
        h, c, outputs = np.zeros(H), np.zeros(H), []
        for x in xs:
            total = self.p[f"{name}.W.0.weight"] @ x + self.p[f"{name}.W.0.bias"] + self.p[f"{name}.U.weight"] @ h
            i, f, o = (1 / (1 + np.exp(-total[k * H : (k + 1) * H])) for k in range(3))
            c = f * c + i * np.tanh(total[3 * H :])
            h = o * np.tanh(c)
            outputs.append(h)
        return outputs

    def both(self, name: str, xs: Rows) -> Rows:
        """[->h_j ; <-h_j]"""
        back = self.lstm(f"{name}.backwards", xs[::-1])[::-1]
        return [np.concatenate(pair) for pair in zip(self.lstm(f"{name}.forwards", xs), back, strict=True)]

    def bidirectional(self, ids: Sequence[int], layers: int, residual_from: int, noise: Rows) -> np.ndarray:
        """`noise` is what multiplies the input of layers 2, 3, …"""
        x = self.embed(ids)
        for l in range(1, layers + 1):
            h = self.both(f"layers.{l - 1}", x if l == 1 else [noise[l - 2] * word for word in x])
            x = [a + b for a, b in zip(h, x, strict=True)] if residual_from and l >= residual_from else h
        return np.array(x)

    def bottom_bidirectional(self, ids: Sequence[int], layers: int, noise: Rows) -> np.ndarray:
        """Residual from the third layer on."""
        x = self.both("bottom", self.embed(ids))
        for l in range(2, layers + 1):
            h = self.lstm(f"stack.layers.{l - 2}", [noise[l - 2] * word for word in x])
            x = [a + b for a, b in zip(h, x, strict=True)] if l >= 3 else h
        return np.array(x)


def assert_equal(states: torch.Tensor, expected: list[np.ndarray]) -> None:
    for row, rows in zip(states, expected, strict=True):
        np.testing.assert_allclose(row[: len(rows)].numpy(), rows, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("residual_from", [0, 2, 3])
def test_stacked_layers_that_read_both_ways_are_residual_from_the_layer_named(residual_from: int) -> None:
    encoder = built(BidirectionalConfig(layers=3, residual_from=residual_from)).eval()
    states = encoder(source()).states
    assert states.shape == (3, 5, 2 * H)
    slow, no_noise = Slow(encoder), [np.ones(2 * H)] * 2
    assert_equal(states, [slow.bidirectional([*ids, 3], 3, residual_from, no_noise) for ids in SENTENCES])


def drawn(encoder: Any) -> torch.Tensor:
    """A mask as the encoder draws it.  -> (B, 2H)"""
    mask = encoder.between(torch.ones(len(SENTENCES), 5, 2 * H, dtype=torch.float64))
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    assert (mask == mask[:, :1]).all()  # the same at every word
    first: torch.Tensor = mask[:, 0]
    return first


@torch.no_grad()
def test_variational_dropout_of_stacked_layers_has_one_mask_a_sentence_and_layer() -> None:
    encoder = built(BidirectionalConfig(layers=3, residual_from=3), dropout=0.5, variational=True).train()
    with seeded(6):
        states = encoder(source()).states
    with seeded(6):
        masks = drawn(encoder), drawn(encoder)
    assert not masks[0].equal(masks[1])
    assert not masks[0][0].equal(masks[0][1])
    slow = Slow(encoder)
    expected = [
        slow.bidirectional([*ids, 3], 3, 3, [mask[b].numpy() for mask in masks]) for b, ids in enumerate(SENTENCES)
    ]
    assert_equal(states, expected)


@torch.no_grad()
def test_variational_dropout_reaches_the_way_from_the_bottom_layer_into_the_stack() -> None:
    encoder = built(BottomBidirectionalConfig(layers=4), dropout=0.5, variational=True).train()
    with seeded(6):
        states = encoder(source()).states
    with seeded(6):
        into = drawn(encoder)
        within = [mask for mask in encoder.stack.noise(into) if mask is not None]
    slow = Slow(encoder)
    expected = [
        slow.bottom_bidirectional([*ids, 3], 4, [mask[b].numpy() for mask in (into, *within)])
        for b, ids in enumerate(SENTENCES)
    ]
    assert_equal(states, expected)


@torch.no_grad()
@pytest.mark.parametrize("config", [BidirectionalConfig(layers=2), BottomBidirectionalConfig(layers=3)])
def test_ordinary_dropout_is_drawn_anew_for_every_word(config: EncoderConfig) -> None:
    encoder = built(config, dropout=0.5).train()
    with seeded(6):
        mask = encoder.between(torch.ones(2, 5, 2 * H, dtype=torch.float64))
    assert not (mask == mask[:, :1]).all()


@torch.no_grad()
@pytest.mark.parametrize("variational", [False, True])
def test_nothing_is_dropped_in_use(variational: bool) -> None:
    for config in (BidirectionalConfig(layers=2), BottomBidirectionalConfig(layers=3)):
        dropping = built(config, dropout=0.5, variational=variational).eval()
        torch.testing.assert_close(dropping(source()).states, built(config).eval()(source()).states)


BASES: dict[str, EncoderConfig] = {
    "unidirectional": UnidirectionalConfig(layers=3),
    "bidirectional": BidirectionalConfig(layers=3),
    "bottom-bidirectional": BottomBidirectionalConfig(layers=4),
}
SWITCHES: dict[str, dict[str, Any]] = {
    "unidirectional": {"layers": 2, "hidden": 5, "reverse": False, "residual_from": 2},
    "bidirectional": {"layers": 2, "hidden": 5, "residual_from": 2},
    "bottom-bidirectional": {"layers": 3, "hidden": 5, "residual_from": 0},
}


def trained(config: EncoderConfig, **options: Any) -> torch.Tensor:
    encoder = built(config, **options).train()
    with seeded(7), torch.no_grad():
        return encoder(source()).states


@pytest.mark.parametrize("kind", BASES)
def test_no_option_is_inert(kind: str) -> None:
    base = BASES[kind]
    assert set(SWITCHES[kind]) == {field.name for field in dataclasses.fields(base)} - {"kind"}
    for name, value in SWITCHES[kind].items():
        one, other = trained(base), trained(dataclasses.replace(base, **{name: value}))
        assert one.shape != other.shape or not torch.allclose(one, other), name


@pytest.mark.parametrize("kind", BASES)
def test_dropout_and_its_one_mask_a_sentence_each_change_the_computation(kind: str) -> None:
    settings: list[dict[str, Any]] = [{}, {"dropout": 0.5}, {"dropout": 0.5, "variational": True}]
    none, fresh, variational = (trained(BASES[kind], **setting) for setting in settings)
    assert not torch.allclose(none, fresh)
    assert not torch.allclose(none, variational)
    assert not torch.allclose(fresh, variational)


@pytest.mark.parametrize("encoder", [BidirectionalConfig(), BottomBidirectionalConfig(layers=2, residual_from=0)])
def test_a_shallow_encoder_leaves_variational_dropout_to_the_decoder(encoder: EncoderConfig) -> None:
    sizes = {"embedding": E, "hidden": H, "layers": 2, "encoder": encoder, "start": "project"}
    LuongConfig(**sizes, variational=True, dropout=0.5).build(9, 9)
    with pytest.raises(ConfigError, match="Raise them, or set it to false"):
        SutskeverConfig(**sizes, variational=True, dropout=0.0).build(9, 9)


@pytest.mark.parametrize("residual_from", [1, 4])
def test_a_layer_that_cannot_be_residual_is_refused(residual_from: int) -> None:
    with pytest.raises(ConfigError, match=r"of 3 layers: expected 2 \(the first takes embeddings\) up to the last"):
        built(BidirectionalConfig(layers=3, residual_from=residual_from))
