"""Wu et al. 2016, clause by clause, against a slow float64 loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate
from regarde.errors import ConfigError
from regarde.models import GNMTConfig, Model
from regarde.models.encoders import BottomBidirectionalConfig
from regarde.training.step import seeded

E, H, A, LAYERS = 3, 4, 5, 4
SOURCE, TARGET = [7, 5, 8], [6, 4]
ATTENTION = GlobalConfig(score=AdditiveConfig(size=A))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def build(**options: object) -> Model:
    settings = {"embedding": E, "hidden": H, "layers": LAYERS, "attention": ATTENTION, "init": "torch", **options}
    with seeded(11):
        return GNMTConfig(**settings).build(9, 10).double().eval()


class Paper:
    def __init__(self, model: Model) -> None:
        self.p = {name: value.numpy() for name, value in model.state_dict().items()}

    def lstm(self, name: str, inputs: list[np.ndarray], h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = self.p[f"{name}.W.0.bias"] + self.p[f"{name}.U.weight"] @ h
        total = total + sum(self.p[f"{name}.W.{i}.weight"] @ x for i, x in enumerate(inputs))
        i, f, o, g = (total[k * H : (k + 1) * H] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def sweep(self, name: str, xs: list[np.ndarray]) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        state, outputs = (np.zeros(H), np.zeros(H)), []
        for x in xs:
            state = self.lstm(name, [x], *state)
            outputs.append(state[0])
        return outputs, state

    def encode(self, ids: list[int]) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        e = [self.p["encoder.embedding.table.weight"][word] for word in ids]
        ahead, _ = self.sweep("encoder.bottom.forwards", e)
        back, last = self.sweep("encoder.bottom.backwards", e[::-1])
        x = [np.concatenate(pair) for pair in zip(ahead, back[::-1], strict=True)]
        finals = [last]
        for layer in range(2, LAYERS + 1):
            h, final = self.sweep(f"encoder.stack.layers.{layer - 2}", x)
            x = [a + b for a, b in zip(h, x, strict=True)] if layer >= 3 else h  # residual from the third layer on
            finals.append(final)
        return np.array(x), finals

    def decode(self, source: list[int], target: list[int]) -> tuple[np.ndarray, np.ndarray]:
        x_j, state = self.encode([*source, 3])
        W, U, v = (self.p[f"decoder.attention.score.{n}"] for n in ("W.weight", "U.weight", "v"))
        logits, weights = [], []
        for word in [2, *target]:
            query = state[0][0]  # the BOTTOM layer's output of the PREVIOUS step
            scores = np.array([v @ np.tanh(W @ query + U @ x) for x in x_j])
            a = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
            context = sum(a[j] * x_j[j] for j in range(len(x_j)))
            x = self.p["decoder.embedding.table.weight"][word]
            for layer in range(1, LAYERS + 1):
                name = f"decoder.stack.layers.{layer - 1}"
                state[layer - 1] = self.lstm(name, [x, context], *state[layer - 1])  # the context reaches EVERY layer
                x = state[layer - 1][0] + x if layer >= 3 else state[layer - 1][0]
            logits.append(self.p["decoder.W.weight"] @ x + self.p["decoder.W.bias"])
            weights.append(a)
        return np.array(logits), np.array(weights)


@torch.no_grad()
def test_the_whole_model_equals_the_paper() -> None:
    model = build()
    decoded = model(collate([SOURCE], [TARGET]))
    logits, weights = Paper(model).decode(SOURCE, TARGET)
    np.testing.assert_allclose(decoded.logits[0].numpy(), logits, atol=1e-12)
    np.testing.assert_allclose(decoded.attention[0, 0, 0].numpy(), weights, atol=1e-12)


def test_the_context_reaches_every_layer() -> None:
    for cell in build().decoder.stack.cells:
        assert cell.W[1].weight.shape == (4 * H, H)


def test_only_the_bottom_layer_of_the_encoder_reads_both_ways() -> None:
    encoder = build().encoder
    assert encoder.stack.cells[0].W[0].in_features == 2 * H
    assert [cell.W[0].in_features for cell in encoder.stack.cells[1:]] == [H] * (LAYERS - 2)


def test_residual_connections_start_at_the_third_layer() -> None:
    model = build()
    assert model.decoder.stack.residual_from == 3
    assert model.encoder.stack.residual_from == 2  # the stack's first layer is the encoder's second
    with pytest.raises(ConfigError, match=r"expected 3 .* up to the last, or 0 for none"):
        build(encoder=BottomBidirectionalConfig(residual_from=2))


def test_the_defaults_are_the_settings_of_the_paper() -> None:
    config = GNMTConfig()
    assert (config.layers, config.hidden, config.embedding, config.dropout) == (8, 1024, 1024, 0.2)


def test_every_parameter_starts_uniform_within_004() -> None:
    with seeded(1):
        model = GNMTConfig(embedding=20, hidden=30, layers=3, attention=ATTENTION).build(40, 50)
    assert max(parameter.abs().max() for parameter in model.parameters()) <= 0.04
    assert model.decoder.W.weight.std().item() == pytest.approx(0.04 / 3**0.5, rel=0.06)
