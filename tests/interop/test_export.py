"""A model folder as a Hugging Face folder, and back."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from regarde import config
from regarde.errors import UsageError
from regarde.folder import model as folders
from regarde.folder.loading import load
from regarde.folder.model import Blueprint
from regarde.interop import formats, writing
from regarde.interop.architectures import ARCHITECTURES
from regarde.interop.huggingface import import_folder
from regarde.interop.tokens import Languages
from regarde.models import BahdanauConfig, ModelConfig, TransformerConfig, TransformerLanguageConfig
from regarde.search import Beam, Greedy, Rules
from regarde.tasks import OF_MODEL, TRANSLATION
from regarde.text import EOS, UNK, SentencepieceConfig, TextConfig, WordsConfig
from regarde.training.step import seeded
from tests.interop import theirs
from tests.interop.test_import import CLASSES, LANGUAGE_FIRST, LANGUAGES
from tests.interop.theirs import transformers

SENTENCES = theirs.sentences(200, seed=7)
PAIRS = list(zip(theirs.sentences(200, 1), theirs.sentences(200, 2), strict=True))
SMALL: dict[str, Any] = {"size": 16, "layers": 2, "decoder_layers": 1, "heads": 2, "feed_forward": 20, "dropout": 0.0}
PIECES = SentencepieceConfig(size=60)
OURS = {
    "characters": (TextConfig(), TransformerConfig(**SMALL, tying="two-way")),
    "words": (TextConfig(source=WordsConfig(), target=WordsConfig()), TransformerConfig(**SMALL, tying="none")),
    "sentencepiece": (
        TextConfig(source=PIECES, target=PIECES, shared=True),
        TransformerConfig(**SMALL, decoder_heads=4, activation="gelu-tanh", self_attention_bias=True, output_bias=True),
    ),
}
SEEDS = {"characters": 1, "words": 4, "sentencepiece": 2}  # whose answers differ and end
SEARCH = Beam(size=5, alpha=1.0, penalty="power", early=False, rules=Rules(max_ratio=0.0, max_extra=29))


def made(path: Path, text: TextConfig, model: ModelConfig, seed: int = 1) -> Path:
    """A model folder with random weights whose answers end."""
    trained = text.train(PAIRS)
    with seeded(seed):
        built = model.build(len(trained.source), len(trained.target))
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.4)
            if model.kind == "transformer" and model.norm == "post":
                table = getattr(built.decoder.vocabulary, "weight", built.decoder.entry.embed.table.weight)
                ending = table[EOS] / table[EOS].square().sum()
                built.decoder.blocks[-1].around_feed_forward.norm.bias.add_(6 * ending)
    task = OF_MODEL.get(model.kind, TRANSLATION)
    folders.save(path, config.as_table(Blueprint(task=task, model=model, text=text, search=SEARCH)), trained, built, "")
    return path


def equal(one: Path, other: Path) -> list[str]:
    """The files whose bytes are the same; the card and the manifest with its hash differ."""
    names = {path.name for path in one.iterdir()} - {"README.md", "manifest.json"}
    assert names == {path.name for path in other.iterdir()} - {"README.md", "manifest.json"}
    return sorted(name for name in names if (one / name).read_bytes() == (other / name).read_bytes())


@pytest.mark.parametrize("name", OURS)
def test_an_exported_model_says_the_same_and_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    run = made(tmp_path / "run", *OURS[name], SEEDS[name])
    formats.export(run, "huggingface", tmp_path / "hub")
    their_model = transformers.MarianMTModel.from_pretrained(tmp_path / "hub").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hub")
    ours = load(run)
    order = writing.orders(ARCHITECTURES["marian"], formats.read(run))
    inputs = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    for sentence, ids in zip(SENTENCES, tokenizer(SENTENCES)["input_ids"], strict=True):
        assert [order.source[i] for i in ids] == [*ours.tokens(sentence).ids, EOS]
    for beams in (1, 5):
        search = SEARCH if beams > 1 else Greedy(rules=SEARCH.rules)
        expected = their_model.generate(**inputs, num_beams=beams).tolist()
        texts = tokenizer.batch_decode(expected, skip_special_tokens=True)
        ended = 0
        for row, text, found in zip(expected, texts, ours.translate(SENTENCES, search=search), strict=True):
            said = [order.target[i] for i in row[1:]]
            if EOS in said:  # what reaches the limit is ranked in another way
                ended += 1
                assert list(found.tokens) == ours.text.target.pieces(said[: said.index(EOS) + 1])
                assert UNK in said or text == found.text.strip()
        assert ended > 30
    import_folder(tmp_path / "hub", tmp_path / "back", Languages())
    assert {"config.toml", "weights.safetensors"} < set(equal(run, tmp_path / "back"))
    assert len(equal(run, tmp_path / "back")) == 4


@pytest.mark.parametrize("name", theirs.MODELS)
def test_an_imported_model_goes_back_and_comes_again(name: str, tmp_path: Path) -> None:
    theirs.MODELS[name](tmp_path / "hub")
    import_folder(tmp_path / "hub", tmp_path / "run", LANGUAGES.get(name, Languages()))
    formats.export(tmp_path / "run", "huggingface", tmp_path / "out")
    one, other = (_said(tmp_path / folder, name) for folder in ("hub", "out"))
    assert one == other
    import_folder(tmp_path / "out", tmp_path / "back", Languages())
    assert len(equal(tmp_path / "run", tmp_path / "back")) == 6


def _said(folder: Path, name: str) -> list[str]:
    """What transformers makes of some texts, without our help."""
    model = getattr(transformers, CLASSES[name]).from_pretrained(folder).eval()
    languages = LANGUAGES.get(name, Languages())
    options = {"src_lang": languages.source, "tgt_lang": languages.target} if languages.source else {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
    if name in LANGUAGE_FIRST:
        model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids(LANGUAGE_FIRST[name])
    said: list[str] = tokenizer.batch_decode(
        model.generate(**tokenizer(SENTENCES[:20], return_tensors="pt", padding=True)), skip_special_tokens=True
    )
    return said


PLAIN = TextConfig(source=WordsConfig(), target=WordsConfig())


@pytest.mark.parametrize(
    ("text", "model", "reason"),
    [
        (PLAIN, BahdanauConfig(embedding=5, hidden=6, maxout=4), "model.kind = bahdanau, only Transformers"),
        (PLAIN, TransformerConfig(**SMALL, tying="two-way", norm="pre"), "model.norm = pre in a MarianMTModel"),
        (PLAIN, TransformerConfig(**SMALL, tying="two-way", positions="rotary"), "model.positions = rotary"),
        (PLAIN, TransformerConfig(**SMALL, tying="two-way", embedding_norm=True), "model.embedding_norm = true"),
        (
            dataclasses.replace(PLAIN, source=WordsConfig(marks=True)),
            TransformerConfig(**SMALL, tying="two-way"),
            "text.source.kind = words with marks",
        ),
        (
            TextConfig(shared=True),
            TransformerLanguageConfig(size=8, layers=1, heads=2, feed_forward=10),
            "model.scaled = true in a GPT2LMHeadModel",
        ),
    ],
)
def test_what_the_format_cannot_hold_is_named_and_nothing_is_written(
    text: TextConfig, model: ModelConfig, reason: str, tmp_path: Path
) -> None:
    run = made(tmp_path / "run", text, model)
    with pytest.raises(UsageError, match=f"huggingface cannot hold .*{reason}"):
        formats.export(run, "huggingface", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path / "run", *OURS["characters"])
    monkeypatch.setattr(writing, "write_tokenizers", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        formats.export(run, "huggingface", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with pytest.raises(UsageError, match="exists already"):
        formats.export(run, "huggingface", run)
