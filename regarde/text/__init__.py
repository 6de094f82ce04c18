"""Text -> tokens: vocabularies, tokenizers, and which tokenizer suits a corpus."""

from regarde.text.inference import Inference, infer
from regarde.text.schemes import CharactersConfig, FieldsConfig, WordsConfig
from regarde.text.sentencepieces import SentencepieceConfig
from regarde.text.sides import Text, TextConfig, TokenizerConfig, load_text
from regarde.text.tokenizers import NO_WORD, UNKNOWN, Tokenizer
from regarde.text.vocabulary import BOS, CONTROLS, EOS, PAD, UNK, Vocabulary

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
