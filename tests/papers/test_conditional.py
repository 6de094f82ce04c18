"""The conditional GRU: two transitions with attention between them, against a slow float64 loop."""

from __future__ import annotations

import numpy as np
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate
from regarde.models import ConditionalConfig
from regarde.training.step import seeded

E, H, A, M = 3, 4, 5, 2
SOURCE, TARGET = [7, 5, 8], [6, 4]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@torch.no_grad()
def test_the_whole_decoder_equals_the_equations() -> None:
    attention = GlobalConfig(score=AdditiveConfig(size=A))
    with seeded(11):
        model = ConditionalConfig(embedding=E, hidden=H, maxout=M, attention=attention).build(9, 10).double().eval()
    p = {name: value.numpy() for name, value in model.state_dict().items()}

    def gru(name: str, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        total = p[f"{name}.W.0.weight"] @ x + p[f"{name}.W.0.bias"]
        r, z = (
            sigmoid(total[k * H : (k + 1) * H] + p[f"{name}.U_gates.weight"][k * H : (k + 1) * H] @ s) for k in (0, 1)
        )
        return (1 - z) * s + z * np.tanh(total[2 * H :] + p[f"{name}.U.weight"] @ (r * s))

    batch = collate([SOURCE], [TARGET])
    h = model.encode(batch.source).states[0].numpy()
    s = np.tanh(p["decoder.W_s.weight"] @ h.mean(axis=0) + p["decoder.W_s.bias"])
    W, U, v = (p[f"decoder.attention.score.{n}"] for n in ("W.weight", "U.weight", "v"))
    found = model(batch)
    for t, word in enumerate([2, *TARGET]):
        e = p["decoder.embedding.table.weight"][word]
        half = gru("decoder.first", e, s)
        scores = np.array([v @ np.tanh(W @ half + U @ h_j) for h_j in h])
        a = np.exp(scores) / np.exp(scores).sum()
        c = a @ h
        s = gru("decoder.second", c, half)
        O = [p[f"decoder.readout.maps.{i}.weight"] for i in range(3)]
        total = O[0] @ s + O[1] @ e + O[2] @ c + p["decoder.readout.maps.0.bias"]
        out = np.array([max(total[2 * k], total[2 * k + 1]) for k in range(M)])
        np.testing.assert_allclose(
            found.logits[0, t], p["decoder.W_o.weight"] @ out + p["decoder.W_o.bias"], atol=1e-12
        )
        np.testing.assert_allclose(found.attention[0, 0, 0, t], a, atol=1e-12)
