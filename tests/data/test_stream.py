"""Running text: each token once in an epoch, in an order that is a pure function of seed and epoch."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.data.formats import Pair
from regarde.data.stream import EncodedStream
from regarde.text import CharactersConfig, TextConfig
from regarde.text.tokenizers import BOS, EOS, PAD

LINES = ["One line,\n", "\n", "another one, longer than that\n", "x\n", "and the last.\n"]
WHOLE = "".join(LINES)


def stream(*, carries: bool, context: int = 4) -> EncodedStream:
    pairs = [Pair("", line) for line in LINES]
    text = TextConfig(source=CharactersConfig(), target=CharactersConfig(), shared=True).train(pairs)
    return EncodedStream.running(pairs, text, context=context, carries=carries)


def ring(encoded: EncodedStream) -> list[int]:
    return [*encoded.targets.ids.tolist(), EOS]


def is_part_of_ring(encoded: EncodedStream, ids: list[int]) -> bool:
    twice = "".join(map(chr, ring(encoded) * 2))
    return "".join(map(chr, ids)) in twice


@pytest.mark.parametrize("carries", [True, False])
@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("pairs", [1, 3, 7, 1000])
def test_every_token_is_predicted_once_in_an_epoch(carries: bool, epoch: int, pairs: int) -> None:
    encoded = stream(carries=carries)
    predicted: list[int] = []
    for rows in encoded.epoch(seed=5, epoch=epoch, pairs=pairs, tokens=0):
        batch = encoded.batch(rows)
        predicted += batch.target_ids[batch.target_mask].tolist()
        assert encoded.count(rows) == int(batch.target_mask.sum())
        assert len(batch.source.ids) == len(batch.previous) <= pairs
    assert sorted(predicted) == sorted(ring(encoded))


def test_a_carried_row_goes_on_where_the_batch_before_ended() -> None:
    encoded = stream(carries=True)
    batches = [encoded.batch(rows) for rows in encoded.epoch(seed=5, epoch=0, pairs=3, tokens=0)]
    assert [batch.starts for batch in batches] == [True] + [False] * (len(batches) - 1)
    for row in range(3):
        wanted = [int(y) for batch in batches for y in batch.target_ids[row] if y != PAD]
        read = [int(y) for batch in batches for y in batch.previous[row]][: len(wanted)]
        assert read == [BOS, *wanted[:-1]]
        assert is_part_of_ring(encoded, wanted)


def test_a_window_begins_with_bos_at_position_0() -> None:
    encoded = stream(carries=False)
    for rows in encoded.epoch(seed=5, epoch=0, pairs=3, tokens=0):
        batch = encoded.batch(rows)
        assert batch.starts
        for previous, target, mask in zip(batch.previous, batch.target_ids, batch.target_mask, strict=True):
            wanted = target[mask].tolist()
            assert previous.tolist()[: len(wanted)] == [BOS, *wanted[:-1]]
            assert is_part_of_ring(encoded, wanted)


@pytest.mark.parametrize("carries", [True, False])
def test_the_order_is_a_function_of_seed_and_epoch(carries: bool) -> None:
    encoded = stream(carries=carries)

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [rows.tolist() for rows in encoded.epoch(seed=seed, epoch=epoch, pairs=3, tokens=0)]

    assert order(5, 2) == order(5, 2)
    assert order(5, 2) != order(5, 1)
    assert order(5, 2) != order(6, 2)


def test_a_limit_of_tokens_holds() -> None:
    encoded = stream(carries=False)
    assert all(encoded.positions(rows) <= 12 for rows in encoded.epoch(seed=1, epoch=0, pairs=0, tokens=12))


@pytest.mark.parametrize("carries", [True, False])
def test_validation_reads_the_text_in_order_without_its_end(carries: bool) -> None:
    encoded = stream(carries=carries)
    found = [encoded.batch(rows) for rows in encoded.in_order(pairs=2, tokens=100)]
    predicted = [y for batch in found for y in batch.target_ids[batch.target_mask].tolist()]
    assert predicted == encoded.targets.ids.tolist()


def test_a_batch_names_its_lines() -> None:
    encoded = stream(carries=False, context=1)
    starts = np.cumsum([0, *map(len, LINES)])
    for rows in encoded.epoch(seed=1, epoch=0, pairs=1, tokens=0):
        place = int(rows[0, 1])
        expected = [line for line in range(len(LINES)) if starts[line] <= place < starts[line + 1]]
        assert encoded.origin(rows) == expected  # none for the end of the text
