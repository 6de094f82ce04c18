"""A Hugging Face folder as a model folder: what transformers computes is what both engines compute."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regarde.data.batch import collate
from regarde.folder.loading import EngineName, load
from regarde.interop.hub import HubFolder
from regarde.interop.huggingface import import_folder
from regarde.interop.tokens import AdoptedSide, Languages, adopt
from regarde.native import library
from regarde.search import Greedy
from regarde.text import EOS
from regarde.translate import Translator
from tests.interop import theirs
from tests.interop.theirs import transformers

ENGINES = ["torch", pytest.param("native", marks=pytest.mark.skipif(not library.available(), reason="not built"))]
LANGUAGES = {"mbart": Languages("de_DE", "en_XX"), "m2m_100": Languages("de", "en"), "bart": Languages()}
LANGUAGES |= {"mbart50": Languages("de_DE", "uk_UA"), "nllb": Languages("deu_Latn", "eng_Latn")}
CLASSES = {"marian": "MarianMTModel", "bart": "BartForConditionalGeneration", "mbart": "MBartForConditionalGeneration"}
CLASSES |= {"m2m_100": "M2M100ForConditionalGeneration", "mbart50": CLASSES["mbart"]}
CLASSES |= {"nllb": CLASSES["m2m_100"]}
LANGUAGE_FIRST = {"mbart50": "uk_UA", "m2m_100": "__en__", "nllb": "eng_Latn"}  # what answers begin with
TEXTS = [
    *theirs.sentences(190, seed=5),
    *["Straße", "x?!", "ein  Haus", "Ünïcödé 漢字", "HAUS", "a b c d", "1 2 3", "—", "é", "läuft."],
]


@dataclass(frozen=True)
class Pair:
    """The same model twice."""

    theirs: Any
    tokenizer: Any
    run: Path
    source: AdoptedSide
    target: AdoptedSide
    never: tuple[int, ...]

    def ours(self, engine: EngineName) -> Translator:
        return loaded(self.run, engine)

    def inputs(self, texts: list[str]) -> Any:
        return self.tokenizer(texts, return_tensors="pt", padding=True)

    @functools.cache  # noqa: B019  # it lives as long as the tests
    def answers(self, beams: int) -> list[list[int]]:
        """What their search says of all texts, as our ids, up to its end."""
        rows = self.theirs.generate(**self.inputs(TEXTS), num_beams=beams).tolist()
        found = ([self.target.ours(i) for i in row[1:]] for row in rows)
        return [ids[: ids.index(EOS) + 1] if EOS in ids else ids for ids in found]

    def forced(self, number: int) -> tuple[str, list[int], Any]:
        """A text, its greedy answer with an end, and what their model computes along it."""
        text, answer = TEXTS[number], [i for i in self.answers(1)[number] if i != EOS]
        start = self.theirs.generation_config.decoder_start_token_id
        ids = torch.tensor([[start, *(self.target.rows[i] for i in answer)]])
        with torch.no_grad():
            return (
                text,
                [*answer, EOS],
                self.theirs(**self.inputs([text]), decoder_input_ids=ids, output_attentions=True),
            )


@functools.cache
def loaded(run: Path, engine: EngineName) -> Translator:
    return load(run, engine=engine)


@functools.cache
def pair(name: str, folder: Path) -> Pair:
    path, languages = folder / name, LANGUAGES.get(name, Languages())
    theirs.MODELS[name](path)
    model = getattr(transformers, CLASSES[name]).from_pretrained(path, attn_implementation="eager").eval()
    options = {} if not languages.source else {"src_lang": languages.source, "tgt_lang": languages.target}
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, **options)
    import_folder(path, folder / f"{name}-run", languages)
    if name in LANGUAGE_FIRST:
        model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids(LANGUAGE_FIRST[name])
    given = adopt(HubFolder.read(path), languages)
    return Pair(model, tokenizer, folder / f"{name}-run", given.source, given.target, given.never)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("hub")
    for cached in (loaded, pair, Pair.answers):
        cached.cache_clear()


@pytest.fixture(params=theirs.MODELS)
def both(request: pytest.FixtureRequest, folder: Path) -> Pair:
    return pair(request.param, folder)


def test_texts_have_the_same_tokens(both: Pair) -> None:
    translator = both.ours("torch")
    end = translator.model.encoder.end
    for text, expected in zip(TEXTS, both.tokenizer(TEXTS)["input_ids"], strict=True):
        ids = [*translator.text.source_ids(text), EOS if end is None else end]
        assert [both.source.rows[i] for i in ids] == expected, text


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_attention_are_theirs(both: Pair, engine: EngineName) -> None:
    model = both.ours(engine)
    for number in range(0, 200, 9):
        text, said, expected = both.forced(number)
        (found,) = model.engine.forced([model.tokens(text).ids], [said])
        rows = torch.tensor([both.target.rows[i] for i in said])
        scores = expected.logits[0].log_softmax(-1).gather(1, rows[:, None])[:, 0].numpy()
        np.testing.assert_allclose(found.token_scores, scores, atol=1e-4)
        heads = torch.stack(expected.cross_attentions, dim=1)[0].numpy()  # (L, N, T, S)
        np.testing.assert_allclose(found.heads, heads, atol=1e-4)


def test_all_logits_are_theirs(both: Pair) -> None:
    translator = both.ours("torch")
    text, said, expected = both.forced(0)
    batch = collate([list(translator.tokens(text).ids)], [said[:-1]])
    ours = translator.model(batch).logits[0].detach()
    kept = [i for i in range(len(both.target.rows)) if i not in both.never]
    torch.testing.assert_close(
        ours[:, kept], expected.logits[0][:, [both.target.rows[i] for i in kept]], atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("beams", [1, 5])
def test_200_answers_are_theirs(both: Pair, engine: EngineName, beams: int) -> None:
    model = both.ours(engine)
    search = model.search if beams > 1 else Greedy(rules=model.search.rules)
    expected = both.answers(beams)
    sources = [model.tokens(text).ids for text in TEXTS]
    found = [list(hypotheses[0].ids) for hypotheses in model.engine.decode(sources, search)]
    assert len({tuple(ids) for ids in expected}) > 20
    ended = sum(ids[-1] == EOS for ids in expected)
    assert beams == 1 or 60 < ended < 200  # some end, and some reach the limit
    assert found == expected


def test_texts_are_read_back(both: Pair) -> None:
    text = both.ours("torch").text
    for sentence in theirs.sentences(20, seed=9):
        assert text.target.decode(text.target.encode(sentence)) == sentence
