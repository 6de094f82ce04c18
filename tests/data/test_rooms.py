"""The little worlds: that each answer follows from its story, and from its supporting sentences alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from regarde.data import rooms
from regarde.data.datasets import DATASETS, SPLITS, digest
from regarde.data.questions import Question

NAMES = ("rooms", *(f"rooms-{kind}" for kind in rooms.KINDS))
GO = re.compile(r"(\w+) (?:enters|strolls into|hurries to) the (\w+)\.")
TAKE = re.compile(r"(\w+) (?:takes|lifts) the (\w+)\.")
PUT = re.compile(r"(\w+) (?:sets down the (\w+)\.|leaves the (\w+) there\.)")
PASS = re.compile(r"(\w+) (?:passes the (\w+) to (\w+)\.|gives (\w+) the (\w+)\.)")


@pytest.fixture(scope="module", params=NAMES)
def splits(request) -> dict[str, list[Question]]:
    return {split: list(DATASETS[request.param].split(split)) for split in SPLITS}


@pytest.fixture(scope="module", params=rooms.KINDS)
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize("name", NAMES)
def test_every_split_is_the_one_on_record(name):
    for split in SPLITS:
        assert digest(DATASETS[name].split(split)) == DATASETS[name].digests[split]


def test_the_order_of_hashes_changes_nothing():
    code = "from regarde.data.datasets import DATASETS; DATASETS['rooms'].check('valid')"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, check=True
        )


def test_no_story_occurs_twice(splits):
    stories = [question.passage for questions in splits.values() for question in questions]
    assert len(set(stories)) == len(stories) == sum(rooms.SIZES.values())


def test_the_world_is_consistent_and_the_answer_follows_from_the_story(kind):
    for question in DATASETS[f"rooms-{kind}"].split("test"):
        told = list(enumerate(_sentences(question.passage)))
        assert _answer(told, question.question, checked=True) == question.answers[0]


def test_the_answer_follows_from_the_supporting_sentences_alone(kind):
    for question in DATASETS[f"rooms-{kind}"].split("test"):
        told = [each for each in enumerate(_sentences(question.passage)) if each[0] in question.supporting]
        assert _answer(told, question.question, checked=False) == question.answers[0]


@pytest.mark.parametrize(("name", "facts"), [("one", 1), ("two", 2), ("three", 3), ("before", 2), ("yes-no", 1)])
def test_the_number_of_facts_is_the_stated(name, facts):
    assert {len(question.supporting) for question in DATASETS[f"rooms-{name}"].split("valid")} == {facts}


def test_no_answer_is_much_more_frequent_than_the_others():
    for name in ("one", "two", "three", "before"):
        answers = [question.answers[0] for question in DATASETS[f"rooms-{name}"].split("train")]
        counts = [answers.count(room) for room in rooms.PLACES]
        assert sum(counts) == len(answers)
        assert max(counts) < 1.1 * min(counts)
    answers = [question.answers[0] for question in DATASETS["rooms-yes-no"].split("train")]
    assert set(answers) == {"yes", "no"}
    assert 0.48 < answers.count("yes") / len(answers) < 0.52
    answers = [question.answers[0] for question in DATASETS["rooms-counting"].split("train")]
    assert max(answers.count(number) for number in rooms.NUMBERS) < 0.4 * len(answers)


def test_all_kinds_come_in_turn():
    questions = [question.question for question in DATASETS["rooms"].split("valid")][:6]
    patterns = ["Where is [A-Z]", "Where is the", "Where was the", "Where was [A-Z]", "Is ", "How many"]
    assert all(re.match(pattern, text) for pattern, text in zip(patterns, questions, strict=True))


def test_the_samples_are_true():
    for question in rooms.SAMPLES.values():
        told = list(enumerate(_sentences(question.passage)))
        assert _answer(told, question.question, checked=True) == question.answers[0]
        assert _answer([t for t in told if t[0] in question.supporting], question.question) == question.answers[0]


def test_a_line_is_json():
    line = DATASETS["rooms-one"].sample.line(links=False)
    assert json.loads(line) == {
        "passage": "Ada enters the hall. Ada takes the map. Ada hurries to the attic.",
        "question": "Where is Ada?",
        "answer": "attic",
        "supporting": [2],
    }


def _sentences(passage: str) -> list[str]:
    return [f"{sentence}." for sentence in passage.removesuffix(".").split(". ")]


class _World:
    """What is true after some sentences; with `checked`, every deed must be possible."""

    def __init__(self, told: list[tuple[int, str]], *, checked: bool) -> None:
        self.rooms: dict[str, list[str]] = {}
        self.things: dict[str, list[str]] = {}  # where each has been
        self.has: dict[str, str] = {}
        self.lies: dict[str, str] = {}
        self.net: dict[str, int] = {}
        self.checked = checked
        for _, sentence in told:
            self.follow(sentence)

    def room(self, person: str) -> str:
        return self.rooms.get(person, ["?"])[-1]

    def follow(self, sentence: str) -> None:
        if found := GO.fullmatch(sentence):
            person, room = found.groups()
            assert not self.checked or self.room(person) != room
            self.rooms.setdefault(person, []).append(room)
            for thing, holder in self.has.items():
                if holder == person:
                    self.things[thing].append(room)
            return
        if found := TAKE.fullmatch(sentence):
            person, thing = found.groups()
            assert not self.checked or (thing not in self.has and self.room(person) != "?")
            assert not self.checked or self.lies.get(thing, self.room(person)) == self.room(person)
            self.lies.pop(thing, None)
            self.gain(person, thing)
        elif found := PUT.fullmatch(sentence):
            person, thing = [group for group in found.groups() if group]
            assert not self.checked or self.has[thing] == person
            self.has.pop(thing, None)
            self.net[person] = self.net.get(person, 0) - 1
            self.lies[thing] = self.room(person)
            self.things.setdefault(thing, [self.room(person)])
        else:
            found = PASS.fullmatch(sentence)
            assert found is not None, sentence
            person, *names = [group for group in found.groups() if group]
            thing, other = names if " to " in sentence else names[::-1]
            assert not self.checked or (self.has[thing] == person and self.room(person) == self.room(other))
            self.net[person] = self.net.get(person, 0) - 1
            self.gain(other, thing)

    def gain(self, person: str, thing: str) -> None:
        self.has[thing] = person
        self.net[person] = self.net.get(person, 0) + 1
        self.things.setdefault(thing, [self.room(person)])
        if self.things[thing][-1] == "?":
            self.things[thing][-1] = self.room(person)


def _answer(told: list[tuple[int, str]], question: str, *, checked: bool = False) -> str:
    world = _World(told, checked=checked)
    if found := re.fullmatch(r"Where is the (\w+)\?", question):
        thing = found[1]
        return world.room(world.has[thing]) if thing in world.has else world.lies[thing]
    if found := re.fullmatch(r"Where is (\w+)\?", question):
        return world.room(found[1])
    if found := re.fullmatch(r"Where was the (\w+) before the (\w+)\?", question):
        places = world.things[found[1]]
        assert not checked or places.count(found[2]) == 1
        # of supporting sentences alone, the thing may be gained after the room that it is carried from
        return places[places.index(found[2]) - 1]
    if found := re.fullmatch(r"Where was (\w+) before the (\w+)\?", question):
        visited = world.rooms[found[1]]
        assert not checked or visited.count(found[2]) == 1
        return visited[visited.index(found[2]) - 1]
    if found := re.fullmatch(r"Is (\w+) in the (\w+)\?", question):
        return "yes" if world.room(found[1]) == found[2] else "no"
    found = re.fullmatch(r"How many things does (\w+) have\?", question)
    assert found is not None
    if checked:
        assert world.net.get(found[1], 0) == list(world.has.values()).count(found[1])
    return rooms.NUMBERS[world.net.get(found[1], 0)]
