"""Texts of many scripts have the tokens that transformers gives them, by models with many languages."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regarde.interop.hub import HubFolder
from regarde.interop.tokens import Languages, adopt
from regarde.text import EOS
from tests.interop import theirs
from tests.interop.theirs import transformers

TEXTS = """
    Ünïcödé, “quotes” — ½ Ⅳ ٣ 1,000.00 | Ελληνικά και ελληνικά | русский язык и русский лес | 日本語のテキスト
    漢字仮名交じり文 | العربية لغة | हिन्दी भाषा | ภาษาไทย | 한국어 문장 | עברית שפה | ქართული ენა | አማርኛ ቋንቋ | தமிழ் மொழி
    Tiếng Việt | မြန်မာဘာသာ | ខ្មែរ | ﬁne ｆｕｌｌ width ㎏ ① | 😀👩‍👩‍👧 e\u0301 | soft\u00adhyphen zero\u200bwidth
    two  spaces | tab\tand\u00a0nbsp\u3000ideographic | don't stop | Straße läuft
""".replace("\n", "|").split("|")  # fmt: skip
TEXTS = [text.strip() for text in TEXTS] + ["▁ ▁▁a", "x", "", "ab" * 200]
LEARNED = [*TEXTS[1:17] * 20, *theirs.sentences(300)]


def learned(kind: str) -> bytes:
    """A sentencepiece model that knows most of these letters, but not all."""
    texts = random.Random(1).sample(LEARNED, len(LEARNED))
    return theirs.pieces(1, 400, model_type=kind, character_coverage=0.98, texts=texts)


def mbart50(folder: Path) -> Any:
    (folder / "sentencepiece.bpe.model").write_bytes(learned("unigram"))
    return transformers.MBart50Tokenizer.from_pretrained(folder, src_lang="fr_XX", tgt_lang="gl_ES")


def nllb(folder: Path) -> Any:
    return theirs.nllb_tokenizer(folder, learned("bpe"), ["fra_Latn", "zho_Hans"])


def m2m(folder: Path) -> Any:
    model = learned("bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *theirs.listed(model)[3:]]
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    return transformers.M2M100Tokenizer.from_pretrained(folder, src_lang="fr", tgt_lang="zu")


MADE: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "mbart50": ("mbart", mbart50),
    "nllb": ("m2m_100", nllb),
    "m2m": ("m2m_100", m2m),
}


@pytest.mark.parametrize("name", MADE)
def test_texts_of_many_scripts_have_their_tokens(name: str, tmp_path: Path) -> None:
    kind, make = MADE[name]
    tokenizer = make(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    count = len(tokenizer) + (100 if name == "m2m" else 0)  # whose languages are not counted there
    settings = {"model_type": kind, "vocab_size": count, "eos_token_id": 2, "pad_token_id": 1}
    (tmp_path / "config.json").write_text(json.dumps({**settings, "decoder_start_token_id": 2}))
    adopted = adopt(HubFolder.read(tmp_path), Languages(tokenizer.src_lang, tokenizer.tgt_lang))
    text = adopted.text
    for sentence in TEXTS:
        found = [adopted.source.rows[i] for i in [*text.source_ids(sentence), EOS]]
        assert found == tokenizer(sentence)["input_ids"], sentence
        kept = tokenizer.decode(found[1:-1])
        if 3 not in found:  # their unknown token
            assert text.source.decode(text.source_ids(sentence)) == kept.strip(), sentence
    assert adopted.first is not None
    language = tokenizer.tgt_lang if name != "m2m" else f"__{tokenizer.tgt_lang}__"
    assert adopted.target.rows[adopted.first] == tokenizer.convert_tokens_to_ids(language)


@pytest.mark.parametrize(("name", "count"), [("MBartTokenizer", 25), ("MBart50Tokenizer", 52)])
def test_languages_that_no_file_lists_are_those_of_the_class(name: str, count: int, tmp_path: Path) -> None:
    model = learned("unigram")
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model)
    tokenizer = getattr(transformers, name).from_pretrained(tmp_path)
    pieces = len(theirs.listed(model)) + 1
    settings = {"model_type": "mbart", "vocab_size": pieces + count + 1, "eos_token_id": 2, "pad_token_id": 1}
    (tmp_path / "config.json").write_text(json.dumps({**settings, "decoder_start_token_id": 2}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    last = tokenizer.convert_ids_to_tokens(pieces + count - 1)
    adopted = adopt(HubFolder.read(tmp_path), Languages("ar_AR", last))
    assert tokenizer.convert_tokens_to_ids(last) == pieces + count - 1
    for language in ("ar_AR", last):
        row = tokenizer.convert_tokens_to_ids(language)
        assert adopted.source.table.token(adopted.source.ours(row)) == language
