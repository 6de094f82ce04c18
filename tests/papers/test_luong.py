"""Luong, Pham, Manning 2015, clause by clause, against a slow float64 loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import GeneralConfig, LocationConfig
from regarde.data.batch import collate
from regarde.errors import ConfigError
from regarde.models import LuongConfig, Model
from regarde.models.encoders import BidirectionalConfig
from regarde.training.step import seeded

E, H, LAYERS = 3, 4, 2
SOURCE, TARGET = [7, 5, 8], [6, 4]
GENERAL = GlobalConfig(score=GeneralConfig(), attend_eos=False)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def build(**options: object) -> Model:
    settings = {"embedding": E, "hidden": H, "layers": LAYERS, "attention": GENERAL, "init": "torch", **options}
    with seeded(11):
        return LuongConfig(**settings).build(9, 10).double().eval()


def paper(model: Model, source: list[int], target: list[int], *, feeding: bool) -> tuple[np.ndarray, np.ndarray]:
    p = {name: value.numpy() for name, value in model.state_dict().items()}
    state = [(np.zeros(H), np.zeros(H)) for _ in range(LAYERS)]

    def lstm(name: str, inputs: list[np.ndarray], h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = p[f"{name}.W.0.bias"] + p[f"{name}.U.weight"] @ h
        total = total + sum(p[f"{name}.W.{i}.weight"] @ x for i, x in enumerate(inputs))
        i, f, o, g = (total[k * H : (k + 1) * H] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def climb(side: str, inputs: list[np.ndarray]) -> np.ndarray:
        for layer in range(LAYERS):
            state[layer] = lstm(f"{side}.stack.layers.{layer}", inputs, *state[layer])
            inputs = [state[layer][0]]
        return inputs[0]

    tops = [climb("encoder", [p["encoder.embedding.table.weight"][word]]) for word in [*source[::-1], 3]]
    h_s = np.array(tops[: len(source)][::-1])  # back in the order of the source; EOS is not attended
    fed = np.zeros(H)
    logits, weights = [], []
    for word in [2, *target]:
        e = p["decoder.embedding.table.weight"][word]
        h_t = climb("decoder", [e, fed] if feeding else [e])
        scores = np.array([h_t @ p["decoder.attention.score.W.weight"] @ h for h in h_s])
        a = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        c = sum(a[s] * h_s[s] for s in range(len(h_s)))
        fed = np.tanh(p["decoder.W_c.weight"] @ np.concatenate([c, h_t]))
        logits.append(p["decoder.W_s.weight"] @ fed + p["decoder.W_s.bias"])
        weights.append([*a, 0.0])
    return np.array(logits), np.array(weights)


@pytest.mark.parametrize("feeding", [True, False])
@torch.no_grad()
def test_the_whole_model_equals_the_paper(feeding: bool) -> None:
    model = build(feeding=feeding)
    decoded = model(collate([SOURCE], [TARGET]))
    logits, weights = paper(model, SOURCE, TARGET, feeding=feeding)
    np.testing.assert_allclose(decoded.logits[0].numpy(), logits, atol=1e-12)
    np.testing.assert_allclose(decoded.attention[0, 0, 0].numpy(), weights, atol=1e-12)


def test_input_feeding_makes_the_first_layer_twice_as_wide() -> None:
    fed, plain = build(embedding=H), build(embedding=H, feeding=False)
    assert sum(W.weight.shape[1] for W in fed.decoder.stack.cells[0].W) == 2 * H
    assert sum(W.weight.shape[1] for W in plain.decoder.stack.cells[0].W) == H


def test_weights_belong_to_the_word_read_for_content_scores_and_to_the_word_said_for_location() -> None:
    assert build().decoder.offset == 1
    assert build(footnote_14=False).decoder.offset == 0
    assert build(attention=GlobalConfig(score=LocationConfig(length=8))).decoder.offset == 0


def test_a_bidirectional_encoder_starts_the_decoder_by_a_projection() -> None:
    build(encoder=BidirectionalConfig(), start="project")
    with pytest.raises(ConfigError, match=r'set model\.start = "project"'):
        build(encoder=BidirectionalConfig())


def test_the_defaults_are_the_settings_of_the_paper() -> None:
    config = LuongConfig()
    assert (config.layers, config.hidden, config.dropout, config.feeding) == (4, 1000, 0.2, True)
    assert config.encoder.reverse


def test_every_parameter_starts_uniform_within_01() -> None:
    with seeded(1):
        model = LuongConfig(embedding=20, hidden=30, layers=2).build(40, 50)
    assert max(parameter.abs().max() for parameter in model.parameters()) <= 0.1
    assert model.decoder.W_s.weight.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.06)
