"""Sutskever, Vinyals, Le 2014, clause by clause, against a slow float64 loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.data.batch import collate
from regarde.layers.cells import reversed_tokens
from regarde.models import Model, SutskeverConfig
from regarde.models.encoders import UnidirectionalConfig
from regarde.training import recipe as recipes
from regarde.training.presets import preset
from regarde.training.step import seeded

H, LAYERS = 4, 3
SOURCE, TARGET = [7, 5, 8], [6, 4]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def build(**options: object) -> Model:
    with seeded(11):
        config = SutskeverConfig(embedding=3, hidden=H, layers=LAYERS, init="torch", **options)
        return config.build(9, 10).double().eval()


def lstm(p: dict[str, np.ndarray], name: str, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    total = p[f"{name}.W.0.weight"] @ x + p[f"{name}.W.0.bias"] + p[f"{name}.U.weight"] @ h
    i, f, o, g = (total[k * H : (k + 1) * H] for k in range(4))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def paper(model: Model, source: list[int], target: list[int]) -> np.ndarray:
    p = {name: value.numpy() for name, value in model.state_dict().items()}
    state = [(np.zeros(H), np.zeros(H)) for _ in range(LAYERS)]

    def read(side: str, word: int) -> np.ndarray:
        x = p[f"{side}.embedding.table.weight"][word]
        for layer in range(LAYERS):
            state[layer] = lstm(p, f"{side}.stack.layers.{layer}", x, *state[layer])
            x = state[layer][0]
        return x

    for word in [*source[::-1], 3]:
        read("encoder", word)
    return np.array([p["decoder.W.weight"] @ read("decoder", y) + p["decoder.W.bias"] for y in [2, *target]])


@torch.no_grad()
def test_the_whole_model_equals_the_paper() -> None:
    model = build()
    found = model(collate([SOURCE], [TARGET])).logits[0].numpy()
    np.testing.assert_allclose(found, paper(model, SOURCE, TARGET), atol=1e-12)


def test_the_source_is_reversed_and_eos_stays_last() -> None:
    ids = torch.tensor([[5, 6, 7, 3, 0], [8, 3, 0, 0, 0], [4, 5, 6, 7, 3]])
    expected = torch.tensor([[7, 6, 5, 3, 0], [8, 3, 0, 0, 0], [7, 6, 5, 4, 3]])
    assert reversed_tokens(ids, ids.ne(0)).equal(expected)
    assert reversed_tokens(expected, ids.ne(0)).equal(ids)


@torch.no_grad()
def test_the_decoder_starts_where_each_layer_of_the_encoder_ended() -> None:
    model = build()
    encoding = model.encode(collate([SOURCE], [TARGET]).source)
    assert model.decoder.start(encoding).cells.equal(encoding.final)
    assert encoding.final.shape == (1, LAYERS, 2 * H)


def test_encoder_and_decoder_share_no_parameter() -> None:
    model = build()
    ours = {id(p) for p in model.encoder.parameters()}
    assert ours.isdisjoint(id(p) for p in model.decoder.parameters())


def test_there_is_no_attention() -> None:
    assert build()(collate([SOURCE], [TARGET])).attention.shape == (1, 0, 0, 3, 4)


def test_the_defaults_are_the_sizes_of_the_paper() -> None:
    config = SutskeverConfig()
    assert (config.layers, config.hidden, config.embedding) == (4, 1000, 1000)
    assert config.encoder == UnidirectionalConfig(layers=0, reverse=True)


def test_every_parameter_starts_uniform_within_008() -> None:
    with seeded(1):
        model = SutskeverConfig(embedding=30, hidden=40).build(50, 60)
    for parameter in model.parameters():
        assert parameter.abs().max() <= 0.08
    assert model.decoder.W.weight.std().item() == pytest.approx(0.08 / 3**0.5, rel=0.05)


def test_the_rate_halves_each_half_epoch_after_5_of_7_and_a_half() -> None:
    recipe = recipes.parse(preset("sutskever-4").recipe)
    schedule = recipe.training.schedule
    assert recipe.training.epochs == 8
    epochs = [0, 4.9, 5.0, 5.4, 5.51, 6.01, 7.01]
    assert [schedule.at(round(epoch * 100), 800) for epoch in epochs] == [1, 1, 0.5, 0.5, 0.25, 0.125, 0.03125]
