"""How weights move: the papers' optimisers, by torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn import Parameter
from torch.optim import Optimizer

from regarde.config import NonNegative, Positive, Share


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015. Vaswani et al. use beta2 = 0.98, epsilon = 1e-9."""

    kind: Literal["adam"] = "adam"
    rate: Positive = 1e-3
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        betas = (self.beta1, self.beta2)
        return torch.optim.Adam(parameters, lr=self.rate, betas=betas, eps=self.epsilon, fused=True)


@dataclass(frozen=True)
class AdamW:
    """Loshchilov and Hutter 2019: Adam with weight decay apart from the gradient."""

    kind: Literal["adamw"] = "adamw"
    rate: Positive = 1e-3
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8
    decay: NonNegative = 0.01

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        betas = (self.beta1, self.beta2)
        return torch.optim.AdamW(
            parameters, lr=self.rate, betas=betas, eps=self.epsilon, weight_decay=self.decay, fused=True
        )


@dataclass(frozen=True)
class Adadelta:
    """Zeiler 2012; the defaults are those of Bahdanau et al. 2015, appendix B.2."""

    kind: Literal["adadelta"] = "adadelta"
    rate: Positive = 1.0
    rho: Share = 0.95
    epsilon: Positive = 1e-6

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.Adadelta(parameters, lr=self.rate, rho=self.rho, eps=self.epsilon)


@dataclass(frozen=True)
class SGD:
    """Plain gradient descent; Sutskever et al. 2014 use rate 0.7 without momentum."""

    kind: Literal["sgd"] = "sgd"
    rate: Positive = 0.7
    momentum: Share = 0.0

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.SGD(parameters, lr=self.rate, momentum=self.momentum)


OptimiserConfig = Adam | AdamW | Adadelta | SGD
