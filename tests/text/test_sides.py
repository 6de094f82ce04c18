"""Source and target together."""

from pathlib import Path

import pytest

from regarde import config
from regarde.errors import ConfigError, DataError, FolderError
from regarde.text import (
    CharactersConfig,
    FieldsConfig,
    SentencepieceConfig,
    TextConfig,
    TokenizerConfig,
    WordsConfig,
    load_text,
)

PAIRS = [("un chat\tX;Y", "a cat"), ("é le chien\tX", "the dog")]


@pytest.mark.parametrize(
    "kind",
    [CharactersConfig(), WordsConfig(), SentencepieceConfig(size=40), FieldsConfig()],
    ids=lambda kind: kind.kind,
)
@pytest.mark.parametrize("shared", [False, True])
def test_saving_and_loading_changes_nothing(kind: TokenizerConfig, shared: bool, tmp_path: Path) -> None:
    settings = TextConfig(kind, kind, shared=shared)
    text = settings.train(PAIRS)
    assert text.save(tmp_path) == [tmp_path / kind.filename("source"), tmp_path / kind.filename("target")]
    loaded = load_text(settings, tmp_path)
    for source, target in PAIRS:
        assert loaded.source.encode(loaded.prepare(source)) == text.source.encode(text.prepare(source))
        assert loaded.target.encode(target) == text.target.encode(target)


@pytest.mark.parametrize("normalize", ["NFC", "NFKC"])
def test_composed_and_decomposed_text_are_the_same(normalize: str) -> None:
    text = TextConfig(normalize=normalize).train([("caf\u00e9", "x")])  # type: ignore[arg-type]
    assert text.source.encode(text.prepare("cafe\u0301")) == text.source.encode(text.prepare("caf\u00e9"))
    decomposed = TextConfig(normalize=normalize).train([("cafe\u0301", "x")])  # type: ignore[arg-type]
    assert decomposed.source.encode("caf\u00e9") == text.source.encode("caf\u00e9")


def test_no_normalization_leaves_text_alone() -> None:
    assert TextConfig(normalize="none").train(PAIRS).prepare("e\u0301ﬁ") == "e\u0301ﬁ"


def test_a_shared_vocabulary_knows_both_sides() -> None:
    text = TextConfig(shared=True).train([("ab", "cd")])
    assert text.source is text.target
    assert text.source.decode(text.source.encode("abcd")) == "abcd"


def test_a_shared_vocabulary_needs_equal_tokenizers() -> None:
    with pytest.raises(ConfigError, match="shared = true needs equal tokenizers"):
        TextConfig(CharactersConfig(), WordsConfig(), shared=True)


def test_unequal_tokenizers_are_told_in_words() -> None:
    told = "the source has characters of size 10,000, the target words of size 70."
    with pytest.raises(ConfigError, match=told):
        TextConfig(CharactersConfig(), WordsConfig(size=70), shared=True)
    with pytest.raises(ConfigError, match="sentencepiece of size 8,000, model unigram, byte_fallback true, the target"):
        TextConfig(SentencepieceConfig(byte_fallback=True), SentencepieceConfig(model="bpe"), shared=True)


def test_shared_files_that_differ_are_refused(tmp_path: Path) -> None:
    TextConfig().train(PAIRS).save(tmp_path)
    with pytest.raises(FolderError, match="differ"):
        load_text(TextConfig(shared=True), tmp_path)


def test_an_empty_corpus_is_said_plainly() -> None:
    with pytest.raises(DataError, match="no pair"):
        TextConfig().train([])


def test_a_configuration_survives_toml() -> None:
    import tomllib

    settings = TextConfig(SentencepieceConfig(size=500, model="bpe"), WordsConfig(), normalize="NFKC")
    assert config.parse(TextConfig, tomllib.loads(config.dump(settings))) == settings
    with pytest.raises(ConfigError, match=r'source\.kind = \'character\': unknown kind\. Did you mean "characters"'):
        config.parse(TextConfig, {"source": {"kind": "character"}})
    with pytest.raises(ConfigError, match="size"):
        config.parse(TextConfig, {"source": {"kind": "words", "size": 0}})
