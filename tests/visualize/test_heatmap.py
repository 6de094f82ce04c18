"""What a picture shows of the answer of each task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regarde.folder.loading import load
from regarde.models.classifier import ClassifierConfig
from regarde.translation import Translation
from regarde.visualize.heatmap import Heatmap, probable
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TAGGER, saved


def answer(heads: np.ndarray) -> Translation:
    T, S = heads.shape[2:]
    tokens, source = tuple("wxyz"[:T]), tuple("abcd"[:S])
    return Translation("abc", "wxy", -1.0, source, tokens, (-0.1,) * T, heads, 0, (0,) * S, (0,) * T)


def test_each_head_has_its_map_and_its_name() -> None:
    heads = np.random.default_rng(3).random((2, 3, 4, 4))
    maps = Heatmap.by_head(answer(heads))
    assert [one.title for one in maps[:4]] == [
        "layer 1, head 1",
        "layer 1, head 2",
        "layer 1, head 3",
        "layer 2, head 1",
    ]
    assert (maps[4].weights == heads[1, 1]).all()
    assert [one.title for one in Heatmap.by_head(answer(heads[:, :1]))] == ["layer 1", "layer 2"]
    assert [one.title for one in Heatmap.by_head(answer(heads[:1, :1]))] == [""]


def test_a_label_is_one_row_over_the_words_with_its_probability(tmp_path: Path) -> None:
    found = load(saved(tmp_path / "run", CLASSIFIER)).predict("the cat")
    heat = Heatmap.of(found)
    assert heat.target == (found.text,)
    assert heat.source == found.source_tokens
    np.testing.assert_allclose(heat.weights[0], found.heads[0, 0, 0])
    assert found.probabilities is not None
    assert heat.title.startswith(f"the cat → {found.text} {found.probabilities[found.text]:.0%}, ")
    assert (heat.across, heat.down) == ("text", "label")


def test_each_query_of_a_label_is_a_row(tmp_path: Path) -> None:
    several = replace(CLASSIFIER, model=ClassifierConfig(embedding=5, hidden=4, size=6, queries=3))
    found = load(saved(tmp_path / "run", several)).predict("the cat")
    heat = Heatmap.of(found)
    assert heat.target == ("query 1", "query 2", "query 3")
    np.testing.assert_allclose(heat.weights, found.heads[:, 0, 0])
    (only,) = Heatmap.by_head(found)
    assert only.target == heat.target


def test_tokens_are_over_their_tags_with_probabilities(tmp_path: Path) -> None:
    found = load(saved(tmp_path / "run", TAGGER)).predict("the cat sat")
    heat, tags = Heatmap.of(found), found.text.split(" ")
    assert heat.source == ("the", "cat", "sat")
    assert heat.target == tuple(dict.fromkeys(tags))
    said = [[row for row, tag in enumerate(heat.target) if heat.weights[row, i] > 0] for i in range(3)]
    assert said == [[heat.target.index(tag)] for tag in tags]
    np.testing.assert_allclose(heat.weights.sum(axis=0), np.exp(found.token_scores[:3]), atol=1e-9)
    assert heat.scale == "probability"
    assert all(f"{span.text} {span.label}" in heat.title for span in found.spans or ())


@pytest.mark.parametrize("name", ["attentive", "transformer"])
def test_a_language_model_looks_back_at_bos_and_its_own_words(tmp_path: Path, name: str) -> None:
    found = load(saved(tmp_path / "run", LANGUAGE_MODELS[name])).predict("the ")
    heat = Heatmap.of(found)
    assert heat.source == ("<s>", *heat.target[:-1])
    assert not np.triu(heat.weights, 1).any()
    assert heat.title == found.text


def test_a_label_of_forced_decoding_has_its_own_probability(tmp_path: Path) -> None:
    translator = load(saved(tmp_path / "run", CLASSIFIER))
    found = translator.predict("the cat")
    (forced,) = translator.score([("the cat", found.text)])
    assert found.probabilities is not None
    assert probable(forced) == f"{found.text} {found.probabilities[found.text]:.0%}"
