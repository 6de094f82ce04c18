"""What encoders and decoders are made of: embeddings, recurrent cells and stacks of them, the readout."""

from regarde.layers.cells import CELLS, GRU, LSTM, Cell, CellName, Simple, TorchGRU, reversed_tokens, run
from regarde.layers.initial import InitName, draw, quiet_padding
from regarde.layers.pointwise import Dropout, Embedding, Maxout
from regarde.layers.stack import Stack

__all__ = [
    "CELLS",
    "GRU",
    "LSTM",
    "Cell",
    "CellName",
    "Dropout",
    "Embedding",
    "InitName",
    "Maxout",
    "Simple",
    "Stack",
    "TorchGRU",
    "draw",
    "quiet_padding",
    "reversed_tokens",
    "run",
]
