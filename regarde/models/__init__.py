"""Models: encoder -> attention -> decoder, one file for each paper.

sutskever    Sutskever, Vinyals, Le 2014    deep sequence to sequence, no attention
cho          Cho et al. 2014                the summary at every step, no attention
bahdanau     Bahdanau, Cho, Bengio 2015     RNNsearch: attention before the step
conditional  Sennrich et al. 2017           attention inside the cell
luong        Luong, Pham, Manning 2015      attention after the step
gnmt         Wu et al. 2016                 attention from the bottom layer
transformer  Vaswani et al. 2017            only attention, with many heads
"""

from regarde.models.bahdanau import BahdanauConfig
from regarde.models.cho import ChoConfig
from regarde.models.conditional import ConditionalConfig
from regarde.models.gnmt import GNMTConfig
from regarde.models.interface import Decoded, Decoder, Encoder, Encoding, Model, State
from regarde.models.luong import LuongConfig
from regarde.models.sutskever import SutskeverConfig
from regarde.models.transformer import TransformerConfig

ModelConfig = (
    SutskeverConfig | ChoConfig | BahdanauConfig | ConditionalConfig | LuongConfig | GNMTConfig | TransformerConfig
)

__all__ = [
    "BahdanauConfig",
    "ChoConfig",
    "ConditionalConfig",
    "Decoded",
    "Decoder",
    "Encoder",
    "Encoding",
    "GNMTConfig",
    "LuongConfig",
    "Model",
    "ModelConfig",
    "State",
    "SutskeverConfig",
    "TransformerConfig",
]
