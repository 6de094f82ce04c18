"""Bahdanau, Cho, Bengio 2015, clause by clause, against slow float64 loops written from the paper's appendix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate
from regarde.models import BahdanauConfig, Model
from regarde.training.step import seeded

E, H, A, M = 3, 4, 5, 2  # embedding, hidden, alignment, maxout
SOURCE, TARGET = [7, 5, 8], [6, 4]
ATTENTION = GlobalConfig(score=AdditiveConfig(size=A))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def build(**options: object) -> Model:
    config = BahdanauConfig(embedding=E, hidden=H, maxout=M, attention=ATTENTION, init="torch", **options)
    with seeded(11):
        model = config.build(9, 10)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.double().eval()


class Paper:
    """The equations of appendix A, one scalar sum at a time where it matters."""

    def __init__(self, model: Model) -> None:
        self.p = {name: value.numpy() for name, value in model.state_dict().items()}

    def gru(self, name: str, inputs: list[np.ndarray], s: np.ndarray) -> np.ndarray:
        """r and z gates, then the candidate with r INSIDE the recurrent product, then (1 - z) o s + z o candidate."""
        W = [self.p[f"{name}.W.{i}.weight"] for i in range(len(inputs))]
        x = sum(w @ v for w, v in zip(W, inputs, strict=True)) + self.p[f"{name}.W.0.bias"]
        U_r, U_z = self.p[f"{name}.U_gates.weight"][:H], self.p[f"{name}.U_gates.weight"][H:]
        U = self.p[f"{name}.U.weight"]
        r = sigmoid(x[:H] + U_r @ s)
        z = sigmoid(x[H : 2 * H] + U_z @ s)
        candidate = np.tanh(x[2 * H :] + U @ (r * s))
        return np.array([(1 - z[i]) * s[i] + z[i] * candidate[i] for i in range(H)])

    def annotations(self, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
        e = [self.p["encoder.embedding.table.weight"][i] for i in ids]
        ahead, back = [], []
        s = np.zeros(H)
        for x in e:
            s = self.gru("encoder.layers.0.forwards", [x], s)
            ahead.append(s)
        s = np.zeros(H)
        for x in reversed(e):
            s = self.gru("encoder.layers.0.backwards", [x], s)
            back.insert(0, s)
        return np.array([np.concatenate(pair) for pair in zip(ahead, back, strict=True)]), back[0]

    def align(self, s: np.ndarray, h: np.ndarray) -> np.ndarray:
        W, U, v = (self.p[f"decoder.attention.score.{n}"] for n in ("W.weight", "U.weight", "v"))
        e = np.array([sum(v[k] * np.tanh(W[k] @ s + U[k] @ h_j) for k in range(A)) for h_j in h])
        return np.exp(e - e.max()) / np.exp(e - e.max()).sum()

    def decode(self, source: list[int], target: list[int], *, current: bool = False) -> tuple[np.ndarray, np.ndarray]:
        h, first_back = self.annotations([*source, 3])
        s = np.tanh(self.p["decoder.W_s.weight"] @ first_back + self.p["decoder.W_s.bias"])
        logits, weights = [], []
        for y in [2, *target]:
            e = self.p["decoder.embedding.table.weight"][y]
            a = self.align(s, h)
            c = sum(a[j] * h[j] for j in range(len(h)))
            after = self.gru("decoder.cell", [e, c], s)
            shown = after if current else s
            U_o, V_o, C_o = (self.p[f"decoder.readout.maps.{i}.weight"] for i in range(3))
            t = U_o @ shown + V_o @ e + C_o @ c + self.p["decoder.readout.maps.0.bias"]
            maxout = np.array([max(t[2 * k], t[2 * k + 1]) for k in range(M)])
            logits.append(self.p["decoder.W_o.weight"] @ maxout + self.p["decoder.W_o.bias"])
            weights.append(a)
            s = after
        return np.array(logits), np.array(weights)


@pytest.fixture(scope="module")
def model() -> Model:
    return build()


@torch.no_grad()
def test_the_whole_model_equals_the_paper(model: Model) -> None:
    decoded = model(collate([SOURCE], [TARGET]))
    logits, weights = Paper(model).decode(SOURCE, TARGET)
    np.testing.assert_allclose(decoded.logits[0].numpy(), logits, atol=1e-12)
    np.testing.assert_allclose(decoded.attention[0, 0, 0].numpy(), weights, atol=1e-12)


@torch.no_grad()
def test_equation_4_reads_out_the_current_state() -> None:
    model = build(readout="current")
    logits, _ = Paper(model).decode(SOURCE, TARGET, current=True)
    np.testing.assert_allclose(model(collate([SOURCE], [TARGET])).logits[0].numpy(), logits, atol=1e-12)


@torch.no_grad()
def test_the_decoder_starts_from_the_backward_state_of_the_first_word(model: Model) -> None:
    encoding = model.encode(collate([SOURCE], [TARGET]).source)
    torch.testing.assert_close(encoding.final[:, -1, model.encoder.last], encoding.states[:, 0, H:])
    start = torch.tanh(model.decoder.W_s(encoding.states[:, 0, H:]))
    torch.testing.assert_close(model.decoder.start(encoding).cell, start)


@torch.no_grad()
def test_the_reset_gate_acts_before_the_recurrent_product(model: Model) -> None:
    cell = model.decoder.cell
    shares, state = torch.randn(2, 3 * H, dtype=torch.float64), torch.randn(2, H, dtype=torch.float64)
    reset, update = torch.sigmoid(shares[:, : 2 * H] + state @ cell.U_gates.weight.T).chunk(2, dim=1)
    before = torch.tanh(shares[:, 2 * H :] + (reset * state) @ cell.U.weight.T)
    after = torch.tanh(shares[:, 2 * H :] + reset * (state @ cell.U.weight.T))
    torch.testing.assert_close(cell(shares, state), (1 - update) * state + update * before)
    assert not torch.allclose(before, after)


@torch.no_grad()
def test_an_open_update_gate_takes_the_candidate(model: Model) -> None:
    """z = 1 replaces the state, z = 0 keeps it: opposite to torch's GRU."""
    cell = model.decoder.cell
    state = torch.randn(1, H, dtype=torch.float64)
    shares = torch.zeros(1, 3 * H, dtype=torch.float64)
    shares[:, H : 2 * H] = -1e3
    torch.testing.assert_close(cell(shares, state), state)


@torch.no_grad()
def test_the_context_enters_both_gates_and_the_candidate(model: Model) -> None:
    share = model.decoder.cell.share(1, torch.ones(2 * H, dtype=torch.float64))
    assert (share.reshape(3, H).abs().sum(dim=1) > 0).all()
    assert share.shape == (3 * H,)


def test_both_directions_share_one_source_embedding(model: Model) -> None:
    assert sum(name.endswith("table.weight") for name, _ in model.encoder.named_parameters()) == 1


@torch.no_grad()
def test_the_keys_are_computed_once_per_sentence(model: Model) -> None:
    encoding = model.encode(collate([SOURCE], [TARGET]).source)
    memory = model.decoder.remember(encoding)
    torch.testing.assert_close(memory.keys, encoding.states @ model.decoder.attention.score.U.weight.T)


def test_the_defaults_are_the_sizes_of_the_paper() -> None:
    config = BahdanauConfig()
    assert (config.embedding, config.hidden, config.maxout, config.attention.score.size) == (620, 1000, 500, 1000)


@pytest.fixture(scope="module")
def untrained() -> Model:
    """A model as appendix B.1 starts it."""
    with seeded(1):
        wide = GlobalConfig(score=AdditiveConfig(size=60))
        return BahdanauConfig(embedding=40, hidden=50, maxout=30, attention=wide).build(200, 300)


def test_recurrent_matrices_are_orthogonal(untrained: Model) -> None:
    for cell in (*untrained.encoder.layers[0].children(), untrained.decoder.cell):
        for square in cell.recurrent():
            torch.testing.assert_close(square @ square.T, torch.eye(50), atol=1e-5, rtol=0)


def test_alignment_matrices_are_a_tenth_as_wide_as_the_rest(untrained: Model) -> None:
    score = untrained.decoder.attention.score
    for matrix in (score.W.weight, score.U.weight):
        assert matrix.std().item() == pytest.approx(0.001, rel=0.1)
    for matrix in (untrained.decoder.W_o.weight, untrained.decoder.W_s.weight, untrained.decoder.cell.W[1].weight):
        assert matrix.std().item() == pytest.approx(0.01, rel=0.1)


def test_v_and_the_biases_are_zero(untrained: Model) -> None:
    assert untrained.decoder.attention.score.v.abs().sum() == 0
    assert all(p.abs().sum() == 0 for name, p in untrained.named_parameters() if name.endswith("bias"))


@torch.no_grad()
def test_attention_starts_uniform(untrained: Model) -> None:
    attention = untrained(collate([SOURCE], [TARGET])).attention
    torch.testing.assert_close(attention, torch.full_like(attention, 1 / 4))
