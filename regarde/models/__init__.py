"""encoder -> attention -> decoder: one file = one paper.

bahdanau    Bahdanau, Cho, Bengio 2015     RNNsearch
sutskever   Sutskever, Vinyals, Le 2014    deep sequence to sequence, no attention
"""

from regarde.models.bahdanau import BahdanauConfig
from regarde.models.interface import Decoded, Decoder, Encoder, Encoding, Model, State
from regarde.models.sutskever import SutskeverConfig

ModelConfig = BahdanauConfig | SutskeverConfig

__all__ = [
    "BahdanauConfig",
    "Decoded",
    "Decoder",
    "Encoder",
    "Encoding",
    "Model",
    "ModelConfig",
    "State",
    "SutskeverConfig",
]
