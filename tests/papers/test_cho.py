"""Cho et al. 2014, clause by clause, against a slow float64 loop written from appendix A."""

from __future__ import annotations

import numpy as np
import torch

from regarde.data.batch import collate
from regarde.models import ChoConfig, Model
from regarde.training.presets import preset
from regarde.training.step import seeded

E, H, M = 3, 4, 2
SOURCE, TARGET = [7, 5, 8], [6, 4]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def build() -> Model:
    with seeded(11):
        model = ChoConfig(embedding=E, hidden=H, maxout=M, init="torch").build(9, 10)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.double().eval()


def paper(model: Model, source: list[int], target: list[int]) -> np.ndarray:
    p = {name: value.numpy() for name, value in model.state_dict().items()}
    h = np.zeros(H)
    for word in [*source, 3]:
        x = p["encoder.cell.W.0.weight"] @ p["encoder.embedding.table.weight"][word] + p["encoder.cell.W.0.bias"]
        U_r, U_z = p["encoder.cell.U_gates.weight"][:H], p["encoder.cell.U_gates.weight"][H:]
        r, z = sigmoid(x[:H] + U_r @ h), sigmoid(x[H : 2 * H] + U_z @ h)
        candidate = np.tanh(x[2 * H :] + p["encoder.cell.U.weight"] @ (r * h))  # reset BEFORE the product
        h = z * h + (1 - z) * candidate  # z keeps the OLD state
    c = np.tanh(p["decoder.V.weight"] @ h + p["decoder.V.bias"])
    s = np.tanh(p["decoder.V_start.weight"] @ c + p["decoder.V_start.bias"])
    W, U, C = (p[f"decoder.cell.{name}.weight"] for name in "WUC")
    logits = []
    for word in [2, *target]:
        e = p["decoder.embedding.table.weight"][word]
        x = W @ e + p["decoder.cell.W.bias"]
        r = sigmoid(x[:H] + U[:H] @ s + C[:H] @ c)
        z = sigmoid(x[H : 2 * H] + U[H : 2 * H] @ s + C[H : 2 * H] @ c)
        candidate = np.tanh(x[2 * H :] + r * (U[2 * H :] @ s + C[2 * H :] @ c))  # reset AFTER, over the summary too
        s = z * s + (1 - z) * candidate
        O_h, O_y, O_c = (p[f"decoder.readout.maps.{i}.weight"] for i in range(3))
        t = O_h @ s + O_y @ e + O_c @ c + p["decoder.readout.maps.0.bias"]
        out = np.array([max(t[2 * k], t[2 * k + 1]) for k in range(M)])
        logits.append(p["decoder.G.weight"] @ out + p["decoder.G.bias"])
    return np.array(logits)


@torch.no_grad()
def test_the_whole_model_equals_the_paper() -> None:
    model = build()
    found = model(collate([SOURCE], [TARGET])).logits[0].numpy()
    np.testing.assert_allclose(found, paper(model, SOURCE, TARGET), atol=1e-12)


@torch.no_grad()
def test_the_summary_enters_every_step_and_the_output() -> None:
    model = build()
    encoding = model.encode(collate([SOURCE], [TARGET]).source)
    state, memory = model.decoder.start(encoding), model.decoder.remember(encoding)
    previous = torch.tensor([[2, 6, 4]])
    logits, _ = model.decoder.unroll(previous, state, memory)
    silent = type(memory)(c=memory.c, share=torch.zeros_like(memory.share))
    unread = type(memory)(c=torch.zeros_like(memory.c), share=memory.share)
    for changed in (silent, unread):
        other, _ = model.decoder.unroll(previous, state, changed)
        assert ((other - logits).abs().amax(dim=-1) > 1e-6).all()


def test_the_defaults_are_the_sizes_of_the_paper() -> None:
    config = ChoConfig()
    assert (config.embedding, config.hidden, config.maxout) == (100, 1000, 500)


def test_the_clip_that_the_paper_does_not_have_is_stated() -> None:
    for name in ("cho", "cho-small"):
        chosen = preset(name)
        assert chosen.recipe["training"]["clip"] == 1.0
        assert "does not mention clipping" in chosen.about.differs


def test_recurrent_matrices_start_orthogonal_and_the_rest_small() -> None:
    with seeded(1):
        model = ChoConfig(embedding=30, hidden=40, maxout=20).build(50, 60)
    for square in [*model.encoder.cell.recurrent(), *model.decoder.cell.U.weight.chunk(3)]:
        torch.testing.assert_close(square @ square.T, torch.eye(40), atol=1e-5, rtol=0)
    assert 0.009 < model.decoder.G.weight.std() < 0.011
