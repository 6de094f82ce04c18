"""What encoders and decoders are made of: embeddings, recurrent cells, the readout."""

from regarde.layers.cells import CELLS, GRU, Cell, CellName, reversed_tokens, run
from regarde.layers.embedding import Embedding
from regarde.layers.readout import Maxout

__all__ = ["CELLS", "GRU", "Cell", "CellName", "Embedding", "Maxout", "reversed_tokens", "run"]
