"""Text -> tokens: vocabularies, tokenizers, and which tokenizer fits a corpus."""

from regarde.text.inference import Inference, infer
from regarde.text.sentencepieces import SentencepieceConfig
from regarde.text.sides import Text, TextConfig, TokenizerConfig, load_text
from regarde.text.tokenizers import (
    BOS,
    CONTROLS,
    EOS,
    NO_WORD,
    PAD,
    UNK,
    UNKNOWN,
    CharactersConfig,
    FieldsConfig,
    Tokenizer,
    Vocabulary,
    WordsConfig,
)

__all__ = [
    "BOS",
    "CONTROLS",
    "EOS",
    "NO_WORD",
    "PAD",
    "UNK",
    "UNKNOWN",
    "CharactersConfig",
    "FieldsConfig",
    "Inference",
    "SentencepieceConfig",
    "Text",
    "TextConfig",
    "Tokenizer",
    "TokenizerConfig",
    "Vocabulary",
    "WordsConfig",
    "infer",
    "load_text",
]
