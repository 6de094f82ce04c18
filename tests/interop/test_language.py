"""GPT-2 as our language model, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regarde.folder.loading import EngineName, load
from regarde.interop import formats
from regarde.interop.huggingface import import_folder
from regarde.interop.tokens import Languages
from regarde.search import Greedy
from regarde.text import EOS
from tests.interop import theirs
from tests.interop.test_export import equal
from tests.interop.test_import import ENGINES
from tests.interop.theirs import transformers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("gpt2")
    theirs.gpt2(made / "hub")
    import_folder(made / "hub", made / "run", Languages())
    return made


@pytest.mark.parametrize("engine", ENGINES)
def test_a_prompt_is_continued_as_theirs(folder: Path, engine: EngineName) -> None:
    model = transformers.GPT2LMHeadModel.from_pretrained(folder / "hub", attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "hub")
    ours = load(folder / "run", engine=engine)
    for prompt in ["", "das Haus", "the tree", "über  die", "a"]:
        ids = [tokenizer.bos_token_id, *tokenizer(prompt)["input_ids"]]
        expected = _continued(model, ids)
        given = ours.prompt(prompt)
        (found,) = next(iter(ours.engine.decode([()], Greedy(rules=ours.search.rules), [given.prefix])))
        told = [EOS if i == tokenizer.eos_token_id else i + 4 for i in expected]  # it is the last token
        assert told == list(found.ids)[: len(told)]
        with torch.no_grad():
            states = model(torch.tensor([[ids[0], *expected]]), output_attentions=True)
        scores = (
            states.logits[0].log_softmax(-1)[len(ids) - 1 : -1].gather(1, torch.tensor(expected)[len(ids) - 1 :, None])
        )
        np.testing.assert_allclose(found.token_scores[len(ids) - 1 : len(told)], scores[:, 0].numpy(), atol=1e-4)
        heads = torch.stack(states.attentions, dim=1)[0].numpy()
        T = len(told)
        np.testing.assert_allclose(found.heads[:, :, :T, :T], heads[:, :, :T, :T], atol=1e-4)


def _continued(model: Any, ids: list[int]) -> list[int]:
    """Without the first token, whose id they would take for padding."""
    given = torch.tensor([ids])
    (found,) = model.generate(given, attention_mask=torch.ones_like(given), do_sample=False, max_length=30).tolist()
    return found[1:]


def test_the_whole_text_is_read_back(folder: Path) -> None:
    text = load(folder / "run").text
    for sentence in [*theirs.sentences(20), "Ünïcödé 漢字 😀\n  two  spaces ", "<|endoftext|>"]:
        assert text.target.decode(text.target.encode(sentence)) == sentence


def test_it_goes_back_and_comes_again(folder: Path) -> None:
    formats.export(folder / "run", "huggingface", folder / "out")
    one, other = (transformers.GPT2LMHeadModel.from_pretrained(folder / name) for name in ("hub", "out"))
    for name, parameter in one.state_dict().items():
        assert torch.equal(parameter, other.state_dict()[name]), name
    tokenizers = [transformers.AutoTokenizer.from_pretrained(folder / name) for name in ("hub", "out")]
    texts = theirs.sentences(20)
    assert tokenizers[0](texts)["input_ids"] == tokenizers[1](texts)["input_ids"]
    import_folder(folder / "out", folder / "back", Languages())
    assert len(equal(folder / "run", folder / "back")) == 6
