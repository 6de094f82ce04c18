"""Short stories about people in rooms and the things they carry; questions, and the sentences that answer them.

    "Ada enters the cellar. Hugo strolls into the attic. Ada takes the lantern. Ada hurries to the garden."
    "Where is the lantern?"  ->  "garden", supported by sentences 2 and 3, counted from 0

People go from room to room, take things, put them down and pass them to somebody in the same room. A person acts only
after the story has mentioned which room they are in, and a thing that was put down can be taken only there. The kinds
of questions, and the sentences that support the answer:

    one        Where is Ada?                           her last move
    two        Where is the lantern?                   the last event of the lantern, and the last move of its person
    three      Where was the lantern before the attic? its person got it, entered the room before, entered the attic
    before     Where was Ada before the attic?         her move to the room before, and to the attic
    yes-no     Is Ada in the attic?                    as `one`
    counting   How many things does Ada have?          all in which she took, got, put down or passed on a thing

Each question has exactly one answer: a room that is asked about with "before" was entered only once. Each story has one
question and occurs once, so no story is in two splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from random import Random
from typing import Literal, NamedTuple, get_args

from regarde.data.generated import Split, draw
from regarde.data.questions import Question

RoomsKind = Literal["one", "two", "three", "before", "yes-no", "counting"]
KINDS: tuple[RoomsKind, ...] = get_args(RoomsKind)
SIZES: Mapping[Split, int] = {"train": 18_000, "valid": 600, "test": 1_200}
LENGTHS: Mapping[RoomsKind, range] = {  # sentences of a story
    "one": range(3, 9),
    "two": range(4, 11),
    "three": range(6, 13),
    "before": range(4, 11),
    "yes-no": range(3, 9),
    "counting": range(5, 12),
}
PEOPLE = ("Ada", "Bruno", "Clara", "Edda", "Felix", "Hugo")
PLACES = ("attic", "cellar", "garden", "hall", "kitchen", "library", "stable", "workshop")
THINGS = ("fiddle", "key", "ladder", "lantern", "map", "teapot")
NUMBERS = ("none", "one", "two", "three", "four", "five", "six")
_STORY = "Ada enters the hall. Ada takes the map. Ada hurries to the attic."
SAMPLES: Mapping[RoomsKind, Question] = {
    "one": Question(_STORY, "Where is Ada?", ("attic",), (2,)),
    "two": Question(_STORY, "Where is the map?", ("attic",), (1, 2)),
    "three": Question(_STORY, "Where was the map before the attic?", ("hall",), (0, 1, 2)),
    "before": Question(_STORY, "Where was Ada before the attic?", ("hall",), (0, 2)),
    "yes-no": Question(_STORY, "Is Ada in the hall?", ("no",), (2,)),
    "counting": Question(_STORY, "How many things does Ada have?", ("one",), (1,)),
}

_GO = ("{0} enters the {1}.", "{0} strolls into the {1}.", "{0} hurries to the {1}.")
_TAKE = ("{0} takes the {1}.", "{0} lifts the {1}.")
_PUT = ("{0} sets down the {1}.", "{0} leaves the {1} there.")
_PASS = ("{0} passes the {1} to {2}.", "{0} gives {2} the {1}.")


def examples(kind: RoomsKind | None = None) -> Callable[[Split], Iterator[Question]]:
    """A generator of the questions of a split, always the same: of one kind, or of all kinds in turn."""

    def generate(split: Split) -> Iterator[Question]:
        # one stream of distinct stories in three parts; the small splits come first, so that reading them is fast
        start = {"valid": 0, "test": SIZES["valid"], "train": SIZES["valid"] + SIZES["test"]}[split]
        return islice(_stream(kind), start, start + SIZES[split])

    return generate


def _stream(kind: RoomsKind | None) -> Iterator[Question]:
    rng = Random(f"regarde rooms {kind or 'all'}")
    seen: set[str] = set()
    for each in cycle([kind] if kind else KINDS):
        found = None
        while found is None or found.passage in seen:
            story = _generated(rng, draw(rng, LENGTHS[each]))
            question = _MAKERS[each](story, rng)
            if question is not None:
                passage = " ".join(story.sentences)
                found = Question(passage, question.text, (question.answer,), tuple(sorted(set(question.support))))
        seen.add(found.passage)
        yield found


class _Move(NamedTuple):
    """Somebody enters a room, in sentence `number`."""

    number: int
    room: str


class _Way(NamedTuple):
    """A thing is carried into a room: the sentence that gave it to the person, and the person's move."""

    gained: int
    before: _Move
    move: _Move


@dataclass
class _Story:
    """The sentences so far, and the state of people and things after them."""

    sentences: list[str] = field(default_factory=list)
    moves: dict[str, list[_Move]] = field(default_factory=dict)  # of each person
    holder: dict[str, str] = field(default_factory=dict)  # of each thing that somebody has
    happened: dict[str, tuple[int, str]] = field(default_factory=dict)  # the last event of each thing: sentence, person
    lies: dict[str, _Move] = field(default_factory=dict)  # of each thing put down, the move into its room
    ways: dict[str, list[_Way]] = field(default_factory=dict)  # of each thing
    places: dict[str, list[str]] = field(default_factory=dict)  # where each thing has been
    handled: dict[str, list[int]] = field(default_factory=dict)  # sentences that change what each person has

    def go(self, person: str, room: str, rng: Random) -> None:
        move = _Move(len(self.sentences), room)
        moves = self.moves.setdefault(person, [])
        for thing, holder in self.holder.items():
            if holder == person:
                self.ways.setdefault(thing, []).append(_Way(self.happened[thing][0], moves[-1], move))
                self.places[thing].append(room)
        moves.append(move)
        self._say(_GO, rng, person, room)

    def take(self, person: str, thing: str, rng: Random) -> None:
        self.lies.pop(thing, None)
        self.places.setdefault(thing, [self.room(person)])
        self._gain(person, thing)
        self._say(_TAKE, rng, person, thing)

    def put(self, person: str, thing: str, rng: Random) -> None:
        self.lies[thing] = self.moves[person][-1]
        del self.holder[thing]
        self.happened[thing] = len(self.sentences), person
        self.handled[person].append(len(self.sentences))
        self._say(_PUT, rng, person, thing)

    def give(self, person: str, thing: str, other: str, rng: Random) -> None:
        self.handled[person].append(len(self.sentences))
        self._gain(other, thing)
        self._say(_PASS, rng, person, thing, other)

    def room(self, person: str) -> str:
        return self.moves[person][-1].room

    def together(self, person: str, other: str) -> bool:
        return other in self.moves and self.room(person) == self.room(other)

    def of(self, person: str) -> list[str]:
        """The things that a person has."""
        return [thing for thing, holder in self.holder.items() if holder == person]

    def _gain(self, person: str, thing: str) -> None:
        self.holder[thing] = person
        self.happened[thing] = len(self.sentences), person
        self.handled.setdefault(person, []).append(len(self.sentences))

    def _say(self, forms: Sequence[str], rng: Random, *names: str) -> None:
        self.sentences.append(draw(rng, forms).format(*names))


def _generated(rng: Random, length: int) -> _Story:
    """A story of `length` sentences about two to four people and two to four things."""
    people = _some(rng, PEOPLE, draw(rng, range(2, 5)))
    things = _some(rng, THINGS, draw(rng, range(2, 5)))
    story = _Story()
    while len(story.sentences) < length:
        person = draw(rng, people)
        known, share = person in story.moves, rng.random()
        held = story.of(person) if known else []
        free = [
            thing
            for thing in things
            if known
            and thing not in story.holder
            and (thing not in story.lies or story.lies[thing].room == story.room(person))
        ]
        others = [
            p for p in people if p != person and known and p in story.moves and story.room(p) == story.room(person)
        ]
        if free and share < 0.3:
            story.take(person, draw(rng, free), rng)
        elif held and others and share < 0.6:
            story.give(person, draw(rng, held), draw(rng, others), rng)
        elif held and 0.6 <= share < 0.7:
            story.put(person, draw(rng, held), rng)
        else:
            here = story.room(person) if known else ""
            story.go(person, draw(rng, [room for room in PLACES if room != here]), rng)
    return story


class _StoryQuestion(NamedTuple):
    """A question, its answer, and the sentences that it follows from."""

    text: str
    answer: str
    support: tuple[int, ...]


def _one(story: _Story, rng: Random) -> _StoryQuestion | None:
    person = draw(rng, list(story.moves))
    last = story.moves[person][-1]
    return _StoryQuestion(f"Where is {person}?", last.room, (last.number,))


def _two(story: _Story, rng: Random) -> _StoryQuestion | None:
    if not story.happened:
        return None
    thing = draw(rng, list(story.happened))
    number, person = story.happened[thing]
    last = story.moves[person][-1] if thing in story.holder else story.lies[thing]
    return _StoryQuestion(f"Where is the {thing}?", last.room, (number, last.number))


def _three(story: _Story, rng: Random) -> _StoryQuestion | None:
    ways = [
        (thing, way)
        for thing, own in story.ways.items()
        for way in own
        if story.places[thing].count(way.move.room) == 1
    ]
    if not ways:
        return None
    thing, way = draw(rng, ways)
    support = way.gained, way.before.number, way.move.number
    return _StoryQuestion(f"Where was the {thing} before the {way.move.room}?", way.before.room, support)


def _before(story: _Story, rng: Random) -> _StoryQuestion | None:
    pairs = [
        (person, one, two)
        for person, moves in story.moves.items()
        for one, two in pairwise(moves)
        if sum(move.room == two.room for move in moves) == 1
    ]
    if not pairs:
        return None
    person, one, two = draw(rng, pairs)
    return _StoryQuestion(f"Where was {person} before the {two.room}?", one.room, (one.number, two.number))


def _yes_no(story: _Story, rng: Random) -> _StoryQuestion | None:
    person = draw(rng, list(story.moves))
    last, mentioned = story.moves[person][-1], {move.room for moves in story.moves.values() for move in moves}
    others = [room for room in PLACES if room in mentioned and room != last.room]
    if not others:
        return None
    yes = rng.random() < 0.5
    room = last.room if yes else draw(rng, others)
    return _StoryQuestion(f"Is {person} in the {room}?", "yes" if yes else "no", (last.number,))


def _counting(story: _Story, rng: Random) -> _StoryQuestion | None:
    # draw the number first, among those that occur in the story; "one" would still be too frequent
    by_number: dict[int, list[str]] = {}
    for person in story.handled:
        by_number.setdefault(len(story.of(person)), []).append(person)
    number = draw(rng, sorted(by_number)) if by_number else 1
    if number == 1 and (not by_number or rng.random() < 0.7):
        return None
    person = draw(rng, by_number[number])
    return _StoryQuestion(f"How many things does {person} have?", NUMBERS[number], tuple(story.handled[person]))


_MAKERS: dict[RoomsKind, Callable[[_Story, Random], _StoryQuestion | None]] = {
    "one": _one,
    "two": _two,
    "three": _three,
    "before": _before,
    "yes-no": _yes_no,
    "counting": _counting,
}


def _some(rng: Random, names: Sequence[str], count: int) -> list[str]:
    return sorted(names, key=lambda _: rng.random())[:count]
