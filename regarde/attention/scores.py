"""Scores: how well a query matches each source state. One class for each score of the papers; higher is better.

Axes: B batch, T queries, S source, Q query size, D state size, K key size, A alignment size.
A score has two parts: `keys` is called once per sentence, `forward` for each query. Everything that depends only on the
source belongs in `keys`. `formula` is for the studio: e_{t,j} as a function of the query q_t and the state h_j, in
LaTeX.

    Dot             q . k                              Luong et al. 2015, section 3.1
    ScaledDot       q . k / sqrt(Q)                    Vaswani et al. 2017, equation 1
    General         q W k                              Luong et al. 2015, section 3.1
    Additive        v . tanh(W q + U k)                Bahdanau et al. 2015, appendix A.1.2
    NormedAdditive  g v/|v| . tanh(W q + U k + b)      Salimans & Kingma 2016, as tf/nmt applies it to GNMT
    Concat          v . tanh(W [q; k])                 Luong et al. 2015, section 3.1
    Location        W q                                Luong et al. 2015, equation 8
    Gaussian        -|q - k|^2 / 2 w^2                 Nadaraya 1964, Watson 1964: kernel regression
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regarde.config import Positive, Size
from regarde.errors import ConfigError
from regarde.native.decoders import ScoreParameters
from regarde.native.functions import additive_scores, usable


class Score(nn.Module, ABC):
    """keys(states) once per sentence, then forward(query, keys) -> scores."""

    formula: ClassVar[str] = ""
    """For the studio, which shows the name of the score if it has no formula."""
    content: bool = True
    """Whether it uses the keys. If not, the weights align the predicted word (Luong et al. 2015, footnote 14)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width  # K, of the keys

    def keys(self, states: Tensor) -> Tensor:
        """What depends only on the source.  (B, S, D) -> (B, S, K)"""
        return states

    def kernel_parameters(self) -> ScoreParameters | None:
        """What a native decoder needs to compute this score; None if it does not implement it."""
        return None

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """(B, T, Q), (B, S, K) -> (B, T, S); -inf for positions that must get no weight"""


class Dot(Score):
    """Luong et al. 2015, section 3.1 (dot): q . k"""

    formula = r"e_{t,j} = q_t^\top h_j"

    def __init__(self, query: int, state: int) -> None:
        super().__init__(width=state)
        _need_equal("A dot product", query, state)

    def kernel_parameters(self) -> ScoreParameters:
        return ScoreParameters()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)  # (B, T, S)


class ScaledDot(Score):
    """Vaswani et al. 2017, equation 1: q . k / sqrt(Q), so that wide queries do not saturate the softmax."""

    formula = r"e_{t,j} = \frac{q_t^\top h_j}{\sqrt{d}}"

    def __init__(self, query: int, state: int) -> None:
        super().__init__(width=state)
        _need_equal("A dot product", query, state)
        self.scale = 1.0 / math.sqrt(query)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return (query * self.scale) @ keys.transpose(1, 2)  # (B, T, S)


class General(Score):
    """Luong et al. 2015, section 3.1 (general): q W k"""

    formula = r"e_{t,j} = q_t^\top W h_j"

    def __init__(self, query: int, state: int) -> None:
        super().__init__(width=query)
        self.W = nn.Linear(state, query, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        keys: Tensor = self.W(states)
        return keys  # (B, S, Q)

    def kernel_parameters(self) -> ScoreParameters:
        return ScoreParameters()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)  # (B, T, S)


def tanh_scores(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """v . tanh(q + k) for each query and key.  (B, T, A), (B, S, A), (A,) -> (B, T, S)

    The backward pass computes the tanh again, so that (B, T, S, A) is never stored.
    """
    if usable(query, keys, v):
        return additive_scores(query, keys, v)
    scores: Tensor = _TanhScores.apply(query, keys, v)  # type: ignore[no-untyped-call]
    return scores


class _TanhScores(torch.autograd.Function):
    """Query by query, in torch."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, v)
        return torch.stack([torch.tanh(q.unsqueeze(1) + keys) @ v for q in query.unbind(1)], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, v = ctx.saved_tensors
        d_query, d_keys, d_v = [], torch.zeros_like(keys), torch.zeros_like(v)
        for q, d_scores in zip(query.unbind(1), given[0].unbind(1), strict=True):
            tanh = torch.tanh(q.unsqueeze(1) + keys)  # (B, S, A)
            d_v += torch.einsum("bs,bsa->a", d_scores, tanh)
            inside = d_scores.unsqueeze(2) * v * (1 - tanh.square())
            d_query.append(inside.sum(dim=1))
            d_keys += inside
        return torch.stack(d_query, dim=1), d_keys, d_v


class Additive(Score):
    """Bahdanau et al. 2015, appendix A.1.2: v . tanh(W q + U k)"""

    formula = r"e_{t,j} = v^\top \tanh(W q_t + U h_j)"

    def __init__(self, query: int, state: int, size: int) -> None:
        super().__init__(width=size)
        self.W = nn.Linear(query, size, bias=False)
        self.U = nn.Linear(state, size, bias=False)
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def keys(self, states: Tensor) -> Tensor:
        keys: Tensor = self.U(states)
        return keys  # (B, S, A)

    def kernel_parameters(self) -> ScoreParameters:
        return ScoreParameters(W=self.W.weight, v=self.v)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return tanh_scores(self.W(query), keys, self.v)  # (B, T, S)


class NormedAdditive(Score):
    """The additive score, with length g and direction of v learned separately: g v/|v| . tanh(W q + U k + b)

    Weight normalization (Salimans & Kingma 2016), which tf/nmt offers for GNMT.
    """

    formula = r"e_{t,j} = g \frac{v^\top}{|v|} \tanh(W q_t + U h_j + b)"

    def __init__(self, query: int, state: int, size: int) -> None:
        super().__init__(width=size)
        self.W = nn.Linear(query, size)
        self.U = nn.Linear(state, size, bias=False)
        self.g = nn.Parameter(torch.tensor(1.0 / math.sqrt(size)))
        self.direction = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def keys(self, states: Tensor) -> Tensor:
        keys: Tensor = self.U(states)
        return keys  # (B, S, A)

    @property
    def v(self) -> Tensor:
        v: Tensor = self.g * self.direction / torch.linalg.vector_norm(self.direction)
        return v

    def kernel_parameters(self) -> ScoreParameters:
        return ScoreParameters(W=self.W.weight, b=self.W.bias, v=self.v)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return tanh_scores(self.W(query), keys, self.v)  # (B, T, S)


class Concat(Score):
    """Luong et al. 2015, section 3.1 (concat): v . tanh(W [q; k])

    W is one matrix. Its halves are multiplied with query and state separately, the state's once per sentence. In the
    paper's experiments the state's half is the identity (section 5.3): `identity`.
    """

    formula = r"e_{t,j} = v^\top \tanh(W [q_t ; h_j])"

    def __init__(self, query: int, state: int, size: int, identity: bool = False) -> None:
        super().__init__(width=size)
        if identity and size != state:
            remedy = f"Set size to {state}, or identity to false."
            raise ConfigError(f"Concat with identity needs size = state size, got size={size}, state={state}. {remedy}")
        self.query_size = query
        self.identity = identity
        self.W = nn.Linear(query if identity else query + state, size, bias=False)
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def keys(self, states: Tensor) -> Tensor:
        return states if self.identity else states @ self.W.weight[:, self.query_size :].T  # (B, S, A)

    def kernel_parameters(self) -> ScoreParameters:
        return ScoreParameters(W=self.W.weight[:, : self.query_size], v=self.v)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return tanh_scores(query @ self.W.weight[:, : self.query_size].T, keys, self.v)  # (B, T, S)


class Location(Score):
    """Luong et al. 2015, equation 8 (location): W q, one score for each position, whatever token is there.

    W has `length` positions: shorter sentences use the first of them, in longer ones the other tokens get no weight.
    """

    formula = r"e_{t,j} = (W q_t)_j"
    content = False

    def __init__(self, query: int, length: int) -> None:
        super().__init__(width=0)
        self.W = nn.Linear(query, length, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        return states[..., :0]  # (B, S, 0): only their number matters

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        places, length = torch.arange(keys.shape[1], device=query.device), self.W.out_features
        scores = query @ self.W.weight[places.clamp_max(length - 1)].T  # (B, T, S)
        return scores.masked_fill(places >= length, -torch.inf)


class Gaussian(Score):
    """The logarithm of a Gaussian kernel: -|q - k|^2 / 2 w^2; the bandwidth w is `width`, or is learned from it.

    With a softmax, attention is then the kernel regression of Nadaraya 1964 and Watson 1964.
    """

    formula = r"e_{t,j} = - \frac{|q_t - h_j|^2}{2 w^2}"

    def __init__(self, query: int, state: int, width: float = 1.0, learned: bool = True) -> None:
        super().__init__(width=state)
        _need_equal("A distance", query, state)
        self.start = width
        # log(w / start): w stays positive, and starts at `start` if a model's initialization sets it near 0
        self.log_w = nn.Parameter(torch.zeros(())) if learned else None

    @property
    def bandwidth(self) -> Tensor | float:
        return self.start if self.log_w is None else self.start * self.log_w.exp()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        squares = (query.unsqueeze(2) - keys.unsqueeze(1)).square().sum(dim=-1)  # (B, T, S)
        return -squares / (2 * self.bandwidth**2)


@dataclass(frozen=True)
class DotConfig:
    kind: Literal["dot"] = "dot"

    def build(self, query: int, state: int) -> Score:
        return Dot(query, state)


@dataclass(frozen=True)
class ScaledDotConfig:
    kind: Literal["scaled-dot"] = "scaled-dot"

    def build(self, query: int, state: int) -> Score:
        return ScaledDot(query, state)


@dataclass(frozen=True)
class GeneralConfig:
    kind: Literal["general"] = "general"

    def build(self, query: int, state: int) -> Score:
        return General(query, state)


@dataclass(frozen=True)
class AdditiveConfig:
    kind: Literal["additive"] = "additive"
    size: Size = 1000  # Units of the score's hidden layer.

    def build(self, query: int, state: int) -> Score:
        return Additive(query, state, self.size)


@dataclass(frozen=True)
class NormedAdditiveConfig:
    kind: Literal["normed-additive"] = "normed-additive"
    size: Size = 1000

    def build(self, query: int, state: int) -> Score:
        return NormedAdditive(query, state, self.size)


@dataclass(frozen=True)
class ConcatConfig:
    kind: Literal["concat"] = "concat"
    size: Size = 1000
    identity: bool = False  # Fix the matrix of the source states to the identity (section 5.3).

    def build(self, query: int, state: int) -> Score:
        return Concat(query, state, self.size, self.identity)


@dataclass(frozen=True)
class LocationConfig:
    kind: Literal["location"] = "location"
    length: Size = 50  # Longest source, in tokens, that the score can attend to.

    def build(self, query: int, state: int) -> Score:
        return Location(query, self.length)


@dataclass(frozen=True)
class GaussianConfig:
    kind: Literal["gaussian"] = "gaussian"
    width: Positive = 1.0  # Width of the kernel, at first if it is learned.
    learned: bool = True  # Learn the width.

    def build(self, query: int, state: int) -> Score:
        return Gaussian(query, state, self.width, self.learned)


ScoreConfig = (
    DotConfig
    | ScaledDotConfig
    | GeneralConfig
    | AdditiveConfig
    | NormedAdditiveConfig
    | ConcatConfig
    | LocationConfig
    | GaussianConfig
)


def _need_equal(what: str, query: int, state: int) -> None:
    if query != state:
        raise ConfigError(f"{what} needs equal sizes, got query={query}, state={state}. Use General.")
