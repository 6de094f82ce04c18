"""Attention against gold links over a test set."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.alignment.links import Link
from regarde.evaluation.attention import attention_quality
from regarde.translation import Translation


def translation(weights: list[list[float]], offset: int = 0) -> Translation:
    T, S = len(weights), len(weights[0])
    heads = np.array(weights)[None, None]
    tokens, source = tuple("t" * T), tuple("s" * S)
    return Translation("s", "t", 0.0, source, tokens, (0.0,) * T, heads, offset, tuple(range(S)), tuple(range(T)))


def test_the_mass_is_averaged_over_all_tokens_with_gold() -> None:
    one = translation([[0.9, 0.1], [0.5, 0.5]])
    two = translation([[0.2, 0.8]])
    quality = attention_quality([one, two], [[Link(0, 0), Link(1, 1)], [Link(1, 0), Link(0, 0)]])
    assert quality.rows == 3
    assert quality.share == pytest.approx((0.9 + 0.5 + 1.0) / 3)


def test_links_past_the_end_of_a_short_translation_are_left_out() -> None:
    assert attention_quality([translation([[1.0, 0.0]])], [[Link(0, 0), Link(1, 1), Link(1, 5)]]).rows == 1


def test_a_model_without_attention_has_no_mass() -> None:
    plain = Translation("s", "t", 0.0, ("s",), ("t",), (0.0,), np.zeros((0, 0, 1, 1)), 0, (0,), (0,))
    assert attention_quality([plain], [[Link(0, 0)]]).rows == 0
