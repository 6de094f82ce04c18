"""Forecasting with numpy and the native kernels, without torch: the models of models/deepar.py and forecaster.py.

Axes: N series, C history, T horizon, P paths of each series, R = N P rows, I inputs, H hidden, L layers, S = C.

Cells run in the native kernel that training uses too (native/source/recurrent.h), over the whole past or a single step
of all paths; without the library, in numpy. Paths of a series share its past, so its keys and values exist once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regarde.data.windows import WindowArrays
from regarde.engines import draws
from regarde.engines.native import Unfit
from regarde.native import library

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
_GATES = {"lstm": 4, "gru": 3, "simple": 1}
_KINDS = {"simple": 0, "gru": 1, "lstm": 2}  # as in native/source/arguments.h


@dataclass(frozen=True)
class NextValue:
    """The distribution of the next value of each path, and the attention weights."""

    given: NDArray[np.float64]  # (R, P)
    weights: Floats  # (R, S); S = 0 without attention


class PathWalk(Protocol):
    """All paths of some series, computed step by step."""

    def repeat(self, paths: int) -> None:
        """Copy the state of each series `paths` times, copies next to each other."""

    def step(self, inputs: Floats) -> NextValue:
        """(R, I)"""


class ForecastEngine(Protocol):
    """Reads the past of series and computes the distributions of the values that follow."""

    name: str
    likelihood: str

    def start(self, windows: WindowArrays, history: int) -> PathWalk: ...


class NumpyCell:
    """One recurrent cell, in single precision."""

    def __init__(self, weights: Weights, prefix: str, kind: str) -> None:
        self.kind = kind
        self.W, self.b = weights[f"{prefix}.W.0.weight"], weights[f"{prefix}.W.0.bias"]
        self.U = np.ascontiguousarray(weights[f"{prefix}.U.weight"])
        self.U_gates = np.ascontiguousarray(weights[f"{prefix}.U_gates.weight"]) if kind == "gru" else None
        self.hidden = self.U.shape[1]

    @property
    def state_size(self) -> int:
        return int(self.hidden) * (2 if self.kind == "lstm" else 1)

    def run(self, x: Floats, mask: NDArray[np.bool_] | None, state: Floats) -> tuple[Floats, Floats]:
        """(B, T, I), (B, T), (B, K) -> outputs (B, T, H), the last state (B, K)"""
        shares = x @ self.W.T + self.b
        if library.available():
            return self._native(np.ascontiguousarray(shares, dtype=np.float32), mask, state)
        outputs = []
        for t in range(shares.shape[1]):
            after = self._step(shares[:, t], state)
            state = after if mask is None else np.where(mask[:, t, None], after, state)
            outputs.append(state[:, : self.hidden])
        return np.stack(outputs, axis=1), state

    def _native(self, shares: Floats, mask: NDArray[np.bool_] | None, state: Floats) -> tuple[Floats, Floats]:
        (B, T, _), H = shares.shape, self.hidden
        shown, carried = np.ascontiguousarray(state[:, :H]), np.ascontiguousarray(state[:, H:])
        outputs, gates = np.empty((B, T, H), np.float32), np.empty_like(shares)
        carry = np.empty((B, T, H), np.float32) if self.kind == "lstm" else None
        reset = np.empty((B, T, H), np.float32) if self.kind == "gru" else None
        seen = None if mask is None else np.ascontiguousarray(mask).view(np.uint8)
        arguments = library.RecurrentArguments(
            B, T, H, _KINDS[self.kind], False, 1, _pointer(seen), _pointer(self.U_gates), _pointer(self.U),
            _pointer(shares), _pointer(shown), _pointer(carried), _pointer(outputs), _pointer(carry), _pointer(gates),
            _pointer(reset),
        )  # fmt: skip
        library.call("recurrent_forward", arguments)
        last = outputs[:, -1] if carry is None else np.concatenate((outputs[:, -1], carry[:, -1]), axis=1)
        return outputs, last

    def _step(self, shares: Floats, state: Floats) -> Floats:
        H = self.hidden
        if self.kind == "simple":
            found: Floats = np.tanh(shares + state @ self.U.T)
            return found
        if self.kind == "gru":
            assert self.U_gates is not None
            gates = _sigmoid(shares[:, : 2 * H] + state @ self.U_gates.T)
            candidate: Floats = np.tanh(shares[:, 2 * H :] + (gates[:, :H] * state) @ self.U.T)
            return (state + gates[:, H:] * (candidate - state)).astype(np.float32)
        total = shares + state[:, :H] @ self.U.T
        gates = _sigmoid(total[:, : 3 * H])
        c = gates[:, H : 2 * H] * state[:, H:] + gates[:, :H] * np.tanh(total[:, 3 * H :])
        return np.concatenate((gates[:, 2 * H :] * np.tanh(c), c), axis=1)


def _pointer(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


def _sigmoid(x: Floats) -> Floats:
    return (1 / (1 + np.exp(-x))).astype(np.float32)


class NumpyStack:
    """A stack of cells."""

    def __init__(self, weights: Weights, prefix: str, settings: Any) -> None:
        if settings.cell not in _GATES:
            raise Unfit(f"the cell {settings.cell}")
        self.cells = [NumpyCell(weights, f"{prefix}.layers.{i}", settings.cell) for i in range(settings.layers)]

    def rest(self, rows: int) -> list[Floats]:
        return [np.zeros((rows, cell.state_size), np.float32) for cell in self.cells]

    def run(self, x: Floats, mask: NDArray[np.bool_] | None, states: list[Floats]) -> tuple[Floats, list[Floats]]:
        """(B, T, I), (B, T), a state of each layer -> top (B, T, H), the states after it"""
        after = []
        for cell, state in zip(self.cells, states, strict=True):
            x, last = cell.run(x, mask, state)
            after.append(last)
        return x, after


class NumpyEngine:
    """The common part of both models: the vector of each series and the last linear layer."""

    name = "native"

    def __init__(self, settings: Any, weights: Weights) -> None:
        self.likelihood: str = settings.likelihood
        self.weights, self.skip = weights, settings.skip
        self.embedding = weights["embedding.vectors.weight"] if settings.embedding else None

    def embedded(self, series: NDArray[np.int64]) -> Floats:
        """(N,) -> (N, E)"""
        return np.zeros((len(series), 0), np.float32) if self.embedding is None else self.embedding[series]

    def theta(self, top: Floats, inputs: Floats) -> NDArray[np.float64]:
        top = np.concatenate((top, inputs), axis=1) if self.skip else top
        return draws.parameters(self.likelihood, top @ self.weights["theta.weight"].T + self.weights["theta.bias"])

    @abstractmethod
    def start(self, windows: WindowArrays, history: int) -> PathWalk: ...


class DeepAREngine(NumpyEngine):
    def __init__(self, settings: Any, weights: Weights) -> None:
        super().__init__(settings, weights)
        self.stack = NumpyStack(weights, "stack", settings)

    def start(self, windows: WindowArrays, history: int) -> PathWalk:
        embedded = self.embedded(windows.series)
        x = _beside(windows.inputs[:, :history], embedded)
        _, states = self.stack.run(x, windows.inside[:, :history], self.stack.rest(len(x)))
        return _DeepARWalk(self, embedded, states)


class _DeepARWalk:
    def __init__(self, engine: DeepAREngine, embedded: Floats, states: list[Floats]) -> None:
        self.engine, self.embedded, self.states = engine, embedded, states

    def repeat(self, paths: int) -> None:
        self.embedded = np.repeat(self.embedded, paths, axis=0)
        self.states = [np.repeat(state, paths, axis=0) for state in self.states]

    def step(self, inputs: Floats) -> NextValue:
        x = _beside(inputs[:, None], self.embedded)
        top, self.states = self.engine.stack.run(x, None, self.states)
        return NextValue(self.engine.theta(top[:, 0], inputs), np.zeros((len(inputs), 0), np.float32))


class Scores(Protocol):
    """How well the state of each path matches each step of the past."""

    def __init__(self, weights: Weights) -> None: ...

    def keys(self, memory: Floats) -> Floats: ...

    def scores(self, queries: Floats, keys: Floats) -> Floats: ...


class GeneralScores:
    """Luong et al. 2015: q W m"""

    def __init__(self, weights: Weights) -> None:
        self.W = weights["attention.score.W.weight"]

    def keys(self, memory: Floats) -> Floats:
        return memory @ self.W.T

    def scores(self, queries: Floats, keys: Floats) -> Floats:
        """(N, P, H), (N, S, H) -> (N, P, S)"""
        return queries @ keys.transpose(0, 2, 1)


class AdditiveScores:
    """Bahdanau et al. 2015: v . tanh(W q + U m)"""

    def __init__(self, weights: Weights) -> None:
        self.W, self.U, self.v = (weights[f"attention.score.{part}"] for part in ("W.weight", "U.weight", "v"))

    def keys(self, memory: Floats) -> Floats:
        return memory @ self.U.T

    def scores(self, queries: Floats, keys: Floats) -> Floats:
        projected = queries @ self.W.T  # (N, P, A)
        return np.stack([np.tanh(projected[:, p, None] + keys) @ self.v for p in range(projected.shape[1])], axis=1)


SCORES: dict[str, type[Scores]] = {"general": GeneralScores, "additive": AdditiveScores}


class AttentiveEngine(NumpyEngine):
    """The decoder that attends to the past: global attention, one head."""

    def __init__(self, settings: Any, weights: Weights) -> None:
        super().__init__(settings, weights)
        attention = settings.attention
        if attention.kind != "global" or attention.normalizer != "softmax":
            raise Unfit(f"{attention.kind} attention to the past")
        if attention.score.kind not in SCORES:
            raise Unfit(f"the score {attention.score.kind} of numbers")
        self.attend_last = attention.attend_eos
        self.score = SCORES[attention.score.kind](weights)
        self.encoder = NumpyStack(weights, "encoder", settings)
        self.decoder = NumpyStack(weights, "decoder", settings)

    def start(self, windows: WindowArrays, history: int) -> PathWalk:
        embedded, inside = self.embedded(windows.series), windows.inside[:, :history].copy()
        read = windows.inputs[:, :history].copy()
        read[..., 0], read[..., 1] = windows.values[:, :history], windows.observed[:, :history]
        states, cells = self.encoder.run(_beside(read, embedded), inside, self.encoder.rest(len(read)))
        inside[:, -1] |= ~inside.any(axis=1)
        return _AttentiveWalk(self, embedded, cells, np.concatenate((states, read), axis=2), self._seen(inside))

    def _seen(self, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The steps that attention may use; without the last one if `attend_eos` is false, unless there is no other."""
        if self.attend_last:
            return inside
        others = inside.copy()
        others[:, -1] = False
        return np.where(others.any(axis=1, keepdims=True), others, inside)


class _AttentiveWalk:
    def __init__(
        self, engine: AttentiveEngine, embedded: Floats, cells: list[Floats], memory: Floats, seen: NDArray[np.bool_]
    ) -> None:
        self.engine, self.embedded, self.cells = engine, embedded, cells
        self.keys = engine.score.keys(memory)  # (N, S, Q)
        self.memory, self.barred = memory, ~seen[:, None, :]  # (N, S, D), (N, 1, S)

    def repeat(self, paths: int) -> None:
        self.embedded = np.repeat(self.embedded, paths, axis=0)
        self.cells = [np.repeat(state, paths, axis=0) for state in self.cells]

    def step(self, inputs: Floats) -> NextValue:
        engine, N = self.engine, len(self.memory)
        x = _beside(inputs[:, None], self.embedded)
        top, self.cells = engine.decoder.run(x, None, self.cells)
        queries = top[:, 0].reshape(N, -1, top.shape[2])  # (N, P, H)
        scores = engine.score.scores(queries, self.keys)  # (N, P, S)
        scores = np.where(self.barred, -np.inf, scores)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        context = (weights @ self.memory).reshape(len(inputs), -1)  # (R, D)
        readout = np.tanh(np.concatenate((context, top[:, 0]), axis=1) @ engine.weights["W_c.weight"].T)
        return NextValue(engine.theta(readout, inputs), weights.reshape(len(inputs), -1))


def _beside(inputs: Floats, embedded: Floats) -> Floats:
    """(B, T, I), (B, E) -> (B, T, I + E)"""
    if not embedded.shape[1]:
        return inputs
    shape = (*inputs.shape[:2], embedded.shape[1])
    return np.concatenate((inputs, np.broadcast_to(embedded[:, None], shape)), axis=2)


def shapes_of(settings: Any, series: int, inputs: int) -> dict[str, tuple[int, ...]]:
    """The tensors that a model of these settings has; Unfit if it has a part that is not implemented here."""
    if settings.kind not in ENGINES:
        raise Unfit(f"the model {settings.kind}")
    H, E = settings.hidden, settings.embedding
    found: dict[str, tuple[int, ...]] = {"embedding.vectors.weight": (series, E)} if E else {}
    for stack in ("stack",) if settings.kind == "deepar" else ("encoder", "decoder"):
        for layer in range(settings.layers):
            found |= _cell_shapes(f"{stack}.layers.{layer}", settings.cell, H, H if layer else inputs + E)
    if settings.kind == "forecaster":
        score, D = settings.attention.score, H + inputs
        if score.kind == "general":
            found["attention.score.W.weight"] = (H, D)
        elif score.kind == "additive":
            found["attention.score.W.weight"], found["attention.score.U.weight"] = (score.size, H), (score.size, D)
            found["attention.score.v"] = (score.size,)
        else:
            raise Unfit(f"the score {score.kind} of numbers")
        found["W_c.weight"] = (H, D + H)
    P = 3 if settings.likelihood == "student-t" else 2
    return found | {"theta.weight": (P, H + settings.skip * inputs), "theta.bias": (P,)}


def _cell_shapes(prefix: str, cell: str, H: int, inputs: int) -> dict[str, tuple[int, ...]]:
    if cell not in _GATES:
        raise Unfit(f"the cell {cell}")
    G = _GATES[cell] * H
    found = {f"{prefix}.W.0.weight": (G, inputs), f"{prefix}.W.0.bias": (G,)}
    found[f"{prefix}.U.weight"] = (H if cell == "gru" else G, H)
    return found | ({f"{prefix}.U_gates.weight": (2 * H, H)} if cell == "gru" else {})


ENGINES: dict[str, type[NumpyEngine]] = {"deepar": DeepAREngine, "forecaster": AttentiveEngine}  # by kind of model


def engine_of(settings: Any, weights: Weights) -> NumpyEngine:
    """The engine of a model, by its settings; Unfit if it has a part that is not implemented here."""
    if settings.kind not in ENGINES:
        raise Unfit(f"the model {settings.kind}")
    return ENGINES[settings.kind](settings, weights)
