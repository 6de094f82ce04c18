"""Vinyals, Fortunato, Jaitly 2015, and spans, clause by clause, against a slow float64 loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate
from regarde.models import Model, PointerNetworkConfig, SpanConfig
from regarde.text.tokenizers import CONTROLS, EOS
from regarde.training.step import seeded

E, H = 3, 4
FIRST = len(CONTROLS)
SCORE = GlobalConfig(score=AdditiveConfig(size=5))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


class Loop:
    """The parameters of a model, and cells over them, one step at a time."""

    def __init__(self, model: Model) -> None:
        self.p = {name: value.numpy() for name, value in model.state_dict().items()}

    def lstm(self, name: str, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, n = self.p, len(h)
        total = p[f"{name}.W.0.bias"] + p[f"{name}.U.weight"] @ h + p[f"{name}.W.0.weight"] @ x
        i, f, o, g = (total[k * n : (k + 1) * n] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def run(self, name: str, xs: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """All outputs, and the last state [h ; c]."""
        h, c, found = np.zeros(H), np.zeros(H), []
        for x in xs:
            h, c = self.lstm(name, x, h, c)
            found.append(h)
        return found, np.concatenate([h, c])

    def both(self, name: str, xs: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        ahead, last = self.run(f"{name}.forwards", xs)
        back, first = self.run(f"{name}.backwards", xs[::-1])
        return [np.concatenate(pair) for pair in zip(ahead, back[::-1], strict=True)], np.concatenate([last, first])

    def scores(self, name: str, query: np.ndarray, states: list[np.ndarray]) -> np.ndarray:
        """u_j = v . tanh(W_1 e_j + W_2 d)"""
        p = self.p
        W_1, W_2, v = (p[f"{name}.score.{letter}"] for letter in ("U.weight", "W.weight", "v"))
        return np.array([v @ np.tanh(W_1 @ state + W_2 @ query) for state in states])


def built(config: PointerNetworkConfig | SpanConfig) -> Model:
    with seeded(11):
        model = config.build(10, FIRST).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model


@pytest.mark.parametrize("once", [False, True])
def test_pointer_networks(once: bool) -> None:
    model = built(PointerNetworkConfig(embedding=E, hidden=H, attention=SCORE, once=once))
    loop, source, target = Loop(model), [7, 5, 8], [2, 0]  # points at the last, then at the first
    x = [loop.p["encoder.encoder.embedding.table.weight"][word] for word in [*source, EOS]]
    e, final = loop.run("encoder.encoder.stack.layers.0", x)
    h, c = final[:H], final[H:]  # the decoder starts where the encoder ends
    decoded = model(collate([source], [[FIRST + place for place in target]]))
    for i, place in enumerate([None, *target]):
        h, c = loop.lstm("decoder.stack.layers.0", loop.p["decoder.begin"] if place is None else x[place], h, c)
        u = loop.scores("decoder.attention", h, e)
        if once:
            u[target[:i]] = -np.inf
        p = softmax(u)
        np.testing.assert_allclose(decoded.attention[0, 0, 0, i].detach().numpy(), p, atol=1e-12)
        said = decoded.logits[0, i].softmax(dim=-1).detach().numpy()
        np.testing.assert_allclose(said, [0, 0, 0, p[3], *p[:3]], atol=1e-12)


def test_spans() -> None:
    config = SpanConfig(embedding=E, hidden=H, spelling=0, question=SCORE, attention=SCORE, dropout=0.0)
    model = built(config)
    loop, passage, question, span = Loop(model), [7, 5, 8, 6], [9, 4], (1, 2)
    ids = [*passage, EOS, *question]
    x = [loop.p["encoder.encoder.embedding.table.weight"][word] for word in [*ids, EOS]]
    h, _ = loop.both("encoder.encoder.layers.0", x)
    asked = h[5:]  # the question and its EOS
    looked = [softmax(loop.scores("encoder.attention", state, asked)) for state in h]
    context = [sum(a * state for a, state in zip(row, asked, strict=True)) for row in looked]
    joined = [np.concatenate(pair) for pair in zip(h, context, strict=True)]
    g, final = loop.both("encoder.again", joined)
    start = np.tanh(loop.p["decoder.bridge.W.weight"] @ final + loop.p["decoder.bridge.W.bias"])
    state = start[:H], start[H:]
    batch = collate([ids], [[FIRST + place for place in span]])
    np.testing.assert_allclose(model.encode(batch.source).looked[0, 0, :, 5:].detach().numpy(), looked, atol=1e-12)
    decoded = model(batch)
    for i, given in enumerate([loop.p["decoder.begin"], g[span[0]]]):
        state = loop.lstm("decoder.stack.layers.0", given, *state)
        u = loop.scores("decoder.attention", state[0], g[: len(passage)])
        u[: span[0] if i else 0] = -np.inf  # no span ends before it begins
        p = softmax(u)
        said = decoded.logits[0, i].softmax(dim=-1).detach().numpy()
        np.testing.assert_allclose(said[FIRST : FIRST + len(passage)], p, atol=1e-12)
        assert said[:FIRST].sum() + said[FIRST + len(passage) :].sum() == 0
    assert decoded.logits[0, 2].softmax(dim=-1)[EOS] == 1
