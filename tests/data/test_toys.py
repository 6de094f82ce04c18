"""The toy tasks, and the registry they are found in."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from regarde.data.datasets import DATASETS, SPLITS, dataset, digest
from regarde.data.formats import Example, Pair
from regarde.errors import DataError, UsageError

TOYS = ("copy", "reverse", "sort")
ANSWER = {"copy": str, "reverse": lambda text: text[::-1], "sort": lambda text: "".join(sorted(text))}


@pytest.fixture(scope="module", params=TOYS)
def toy(request) -> tuple[str, dict[str, list[Example]]]:
    return request.param, {split: list(DATASETS[request.param].split(split)) for split in SPLITS}


def test_every_split_is_the_one_on_record(toy):
    name, splits = toy
    assert {split: len(examples) for split, examples in splits.items()} == DATASETS[name].sizes
    assert {split: digest(examples) for split, examples in splits.items()} == DATASETS[name].digests


def test_no_source_occurs_twice(toy):
    sources = [example.source for examples in toy[1].values() for example in examples]
    assert len(set(sources)) == len(sources) == 21_500


def test_sources_are_5_to_15_letters_and_every_length_occurs(toy):
    sources = [example.source for example in toy[1]["train"]]
    assert all(re.fullmatch("[a-z]{5,15}", source) for source in sources)
    counts = [sum(len(source) == length for source in sources) for length in range(5, 16)]
    assert min(counts) > 0.9 * 20_000 / 11


def test_every_target_is_the_right_answer(toy):
    name, splits = toy
    assert all(example.target == ANSWER[name](example.source) for example in splits["test"])


def test_a_link_joins_equal_letters_and_every_letter_has_one(toy):
    for (source, target), links in toy[1]["test"]:
        assert all(source[i] == target[j] for i, j in links)
        assert [i for i, _ in links] == list(range(len(source))) == sorted(j for _, j in links)


def test_reversed_letters_are_linked_crosswise():
    example = next(DATASETS["reverse"].split("valid"))
    last = len(example.source) - 1
    assert example.links == tuple((i, last - i) for i in range(last + 1))


def test_equal_letters_keep_their_order_in_sorting():
    for example in DATASETS["sort"].split("valid"):
        places = dict(example.links)
        for i, first in enumerate(example.source):
            assert all(places[i] < places[k] for k in range(i + 1, len(example.source)) if example.source[k] == first)


def test_the_samples_of_the_toys_are_true():
    for name in TOYS:
        sample = DATASETS[name].sample
        assert sample.target == ANSWER[name](sample.source)


def test_an_unknown_name_brings_the_nearest():
    with pytest.raises(UsageError, match=r'date: no such data set\. Did you mean "dates"'):
        dataset("date")


def test_an_unknown_split_brings_the_known():
    with pytest.raises(UsageError, match=r"dev: no such split of copy\. Known: train, valid, test"):
        dataset("copy").split("dev")


def test_data_that_differs_from_the_record_is_refused():
    other = replace(DATASETS["copy"], generate=DATASETS["reverse"].generate)
    with pytest.raises(DataError, match="copy valid: SHA-256 is 123a23f13d74…, expected 0602bc692591…"):
        other.check("valid")


def test_a_line_is_tab_separated_with_pharaoh_links():
    example = Example(Pair("ab", "ba"), ((0, 1), (1, 0)))
    assert example.line(links=False) == "ab\tba"
    assert example.line(links=True) == "ab\tba\t0-1 1-0"


def test_the_registry_imports_neither_torch_nor_babel():
    code = "import sys, regarde.data.datasets; assert not {'torch', 'babel'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
