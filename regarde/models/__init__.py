"""Models: encoder -> attention -> decoder, one file for each paper.

sutskever    Sutskever, Vinyals, Le 2014    deep sequence to sequence, no attention
cho          Cho et al. 2014                the summary at every step, no attention
bahdanau     Bahdanau, Cho, Bengio 2015     RNNsearch: attention before the step
conditional  Sennrich et al. 2017           attention inside the cell
luong        Luong, Pham, Manning 2015      attention after the step
gnmt         Wu et al. 2016                 attention from the bottom layer
transformer  Vaswani et al. 2017            only attention, with many heads

pointer      Vinyals et al. 2015            the answer is positions of the source

Models for other tasks than translation:

classifier   Yang et al. 2016               a label for a text: a learned query attends to it
tagger       Lample et al. 2016             a tag for each word, with a conditional random field
span         Wang and Jiang 2017            the answer to a question as a span of its passage
language     Mikolov et al. 2010 and later  the next word of a text: recurrent, with attention to its past, Transformer
deepar       Salinas et al. 2020            the next value of a series, as a distribution
forecaster   Luong et al. 2015, of numbers  the same, with attention to the past
"""

from regarde.models.bahdanau import BahdanauConfig
from regarde.models.cho import ChoConfig
from regarde.models.classifier import ClassifierConfig
from regarde.models.conditional import ConditionalConfig
from regarde.models.deepar import DeepARConfig
from regarde.models.forecaster import ForecasterConfig
from regarde.models.forecasting import ForecastModel
from regarde.models.gnmt import GNMTConfig
from regarde.models.interface import Decoded, Decoder, Encoder, Encoding, Model, State, Trainable
from regarde.models.language import AttentiveLanguageConfig, RecurrentLanguageConfig, TransformerLanguageConfig
from regarde.models.luong import LuongConfig
from regarde.models.pointer import PointerNetworkConfig
from regarde.models.span import SpanConfig
from regarde.models.sutskever import SutskeverConfig
from regarde.models.tagger import TaggerConfig
from regarde.models.transformer import TransformerConfig

ModelConfig = (
    SutskeverConfig
    | ChoConfig
    | BahdanauConfig
    | ConditionalConfig
    | LuongConfig
    | GNMTConfig
    | TransformerConfig
    | ClassifierConfig
    | TaggerConfig
    | RecurrentLanguageConfig
    | AttentiveLanguageConfig
    | TransformerLanguageConfig
    | PointerNetworkConfig
    | SpanConfig
)
ForecastModelConfig = DeepARConfig | ForecasterConfig
AnyModelConfig = ModelConfig | ForecastModelConfig

__all__ = [
    "AnyModelConfig",
    "AttentiveLanguageConfig",
    "BahdanauConfig",
    "ChoConfig",
    "ClassifierConfig",
    "ConditionalConfig",
    "Decoded",
    "Decoder",
    "DeepARConfig",
    "Encoder",
    "Encoding",
    "ForecastModel",
    "ForecastModelConfig",
    "ForecasterConfig",
    "GNMTConfig",
    "LuongConfig",
    "Model",
    "ModelConfig",
    "PointerNetworkConfig",
    "RecurrentLanguageConfig",
    "SpanConfig",
    "State",
    "SutskeverConfig",
    "TaggerConfig",
    "Trainable",
    "TransformerConfig",
    "TransformerLanguageConfig",
]
