"""The layers of encoders and decoders: embeddings, recurrent cells and stacks of them, maxout, Transformer blocks."""

from regarde.layers.cells import CELLS, GRU, LSTM, Cell, CellName, Simple, TorchGRU, reversed_tokens, run
from regarde.layers.initial import InitName, draw, normal_and_orthogonal
from regarde.layers.pointwise import Dropout, Embedding, Maxout
from regarde.layers.stack import RecurrentShape, Stack

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
    "RecurrentShape",
    "Simple",
    "Stack",
    "TorchGRU",
    "draw",
    "normal_and_orthogonal",
    "reversed_tokens",
    "run",
]
