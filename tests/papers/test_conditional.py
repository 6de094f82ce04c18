"""Sennrich et al. 2017 (Nematus), the conditional GRU: against a slow float64 loop written from the paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate
from regarde.models import ConditionalConfig, Model
from regarde.training import recipe as recipes
from regarde.training.presets import preset
from regarde.training.step import seeded

E, H, A, M = 3, 4, 5, 2
SOURCE, TARGET = [7, 5, 8], [6, 4]
ATTENTION = GlobalConfig(score=AdditiveConfig(size=A))
Cell = Callable[[str, np.ndarray, np.ndarray], np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def build(**options: object) -> Model:
    with seeded(11):
        model = ConditionalConfig(embedding=E, hidden=H, maxout=M, attention=ATTENTION, **options).build(9, 10)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.double().eval()


class Paper:
    """The encoder, both transitions and the attention between them."""

    def __init__(self, model: Model) -> None:
        self.p = {name: value.numpy() for name, value in model.state_dict().items()}

    def matrices(self, name: str) -> tuple[np.ndarray, ...]:
        W, b, U_gates = (self.p[f"{name}.{part}"] for part in ("W.0.weight", "W.0.bias", "U_gates.weight"))
        return W[:H], b[:H], U_gates[:H], W[H : 2 * H], b[H : 2 * H], U_gates[H:], W[2 * H :], b[2 * H :]

    def gates(self, name: str, x: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W_r, b_r, U_r, W_z, b_z, U_z, _, _ = self.matrices(name)
        return sigmoid(W_r @ x + b_r + U_r @ s), sigmoid(W_z @ x + b_z + U_z @ s)

    def gru(self, name: str, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        """s~ = tanh(W x + r o (U s)), s = (1 - z) o s~ + z o s_prev, with the biases that the paper leaves out."""
        *_, W, b = self.matrices(name)
        U, b_U = self.p[f"{name}.U.weight"], self.p[f"{name}.U.bias"]
        r, z = self.gates(name, x, s)
        candidate = np.tanh(W @ x + b + r * (U @ s + b_U))
        return (1 - z) * candidate + z * s

    def bahdanau(self, name: str, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        """s~ = tanh(W x + U (r o s)), s = (1 - z) o s_prev + z o s~"""
        *_, W, b = self.matrices(name)
        r, z = self.gates(name, x, s)
        return (1 - z) * s + z * np.tanh(W @ x + b + self.p[f"{name}.U.weight"] @ (r * s))

    def encode(self, cell: Cell, ids: list[int]) -> np.ndarray:
        e = [self.p["encoder.embedding.table.weight"][word] for word in ids]
        both = []
        for name, inputs in (("forwards", e), ("backwards", e[::-1])):
            state, states = np.zeros(H), []
            for x in inputs:
                state = cell(f"encoder.layers.0.{name}", x, state)
                states.append(state)
            both.append(states if name == "forwards" else states[::-1])
        return np.array([np.concatenate(pair) for pair in zip(*both, strict=True)])

    def decode(self, cell: Cell, source: list[int], target: list[int]) -> tuple[np.ndarray, np.ndarray]:
        p, h = self.p, self.encode(cell, [*source, 3])
        s = np.tanh(p["decoder.W_s.weight"] @ (sum(h) / len(h)) + p["decoder.W_s.bias"])
        W, U, v = (p[f"decoder.attention.score.{n}"] for n in ("W.weight", "U.weight", "v"))
        logits, weights = [], []
        for word in [2, *target]:
            e = p["decoder.embedding.table.weight"][word]
            half = cell("decoder.first", e, s)
            scores = np.array([v @ np.tanh(W @ half + U @ h_j) for h_j in h])
            a = np.exp(scores) / np.exp(scores).sum()
            c = a @ h
            s = cell("decoder.second", c, half)
            O = [p[f"decoder.readout.maps.{i}.weight"] for i in range(3)]
            total = O[0] @ s + O[1] @ e + O[2] @ c + p["decoder.readout.maps.0.bias"]
            out = np.array([max(total[2 * k], total[2 * k + 1]) for k in range(M)])  # maxout is ours
            logits.append(p["decoder.W_o.weight"] @ out + p["decoder.W_o.bias"])
            weights.append(a)
        return np.array(logits), np.array(weights)


@torch.no_grad()
@pytest.mark.parametrize(("options", "cell"), [({}, Paper.gru), ({"cell": "gru"}, Paper.bahdanau)])
def test_the_whole_model_equals_the_paper_or_has_the_cell_of_bahdanau(options: dict[str, str], cell: Cell) -> None:
    model = build(**options)
    found = model(collate([SOURCE], [TARGET]))
    paper = Paper(model)
    logits, weights = paper.decode(lambda name, x, s: cell(paper, name, x, s), SOURCE, TARGET)
    np.testing.assert_allclose(found.logits[0].numpy(), logits, atol=1e-12)
    np.testing.assert_allclose(found.attention[0, 0, 0].numpy(), weights, atol=1e-12)


def test_the_recipe_has_the_cell_of_the_paper() -> None:
    assert recipes.parse(preset("conditional-small").recipe).model.cell == ConditionalConfig().cell == "torch-gru"


def test_a_model_folder_states_its_cell() -> None:
    """So one that was made when the default was another means what it meant."""
    assert 'cell = "torch-gru"' in configs.dump(ConditionalConfig())
    older = configs.as_table(ConditionalConfig(cell="gru"))
    assert configs.parse(ConditionalConfig, older).cell == "gru"


@torch.no_grad()
def test_the_update_gate_keeps_the_old_state() -> None:
    cell = build().decoder.first
    cell.W[0].bias[H : 2 * H] = 50.0  # z = 1
    before = torch.randn(1, H, dtype=torch.float64)
    torch.testing.assert_close(cell(cell.share(0, torch.ones(1, E, dtype=torch.float64)), before), before)
