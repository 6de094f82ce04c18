"""The native engine: a model's settings and tensors in, hypotheses out. No torch, no Python between two words.

Axes: T target tokens, S source tokens, L attention layers, N heads.

It supports every model of regarde.models. For any other, `Unfit` gives the unsupported part, and torch is used.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regarde.engines.records import Reader, Streams
from regarde.errors import ConfigError, OutOfMemoryError, UsageError
from regarde.native import library, settings
from regarde.native.library import EngineRequest
from regarde.search import Hypothesis, Sampling, Search
from regarde.search.interventions import AttentionChanges, Intervention
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.search.trace import SearchStep
from regarde.text import BOS, EOS

if TYPE_CHECKING:
    from regarde.engines.continuous import ContinuousEngine
    from regarde.folder.shortlist import Shortlist

Ids = Sequence[int]
ROWS = 64
WINDOW = 1024  # sentences passed to the library together; a finished one makes room for the next
MOST_NUMBERS = 16 << 20  # of the answers to a window, so that memory is bounded for any sentences
NO_MEMORY = b"out of memory"  # as in source/engine/answer.h
KINDS = {"greedy": 0, "beam": 1, "sampling": 2}
FORCED = 3
NOTHING = -1  # as the first token: any
CARRYING = frozenset({"recurrent-lm", "attentive-lm"})  # kinds whose decoder carries its state (Decoder.carries)


class Unfit(Exception):  # noqa: N818  # not a failure: the other engine is used
    """The model is not supported by this engine; the message gives the reason."""


@dataclass(frozen=True)
class TensorKind:
    """Shape and type of a tensor."""

    shape: tuple[int, ...]
    in_bytes: bool = False

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * (1 if self.in_bytes else 4)


@dataclass(frozen=True)
class PreparedRequest:
    """A request, and the arrays that it points to."""

    request: EngineRequest
    held: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        for name, array in self.held.items():
            setattr(self.request, name, array.ctypes.data)


class NativeEngine:
    """A model ready to decode: `rows` hypotheses side by side in each of `threads`.

    Tensors are floats or bytes (regarde.folder.precision); the engine copies them. Of those that are `mapped` from a
    file, what has been copied leaves the memory.
    """

    name = "native"
    shortlist: Shortlist | None = None
    _settings: Mapping[str, str] = MappingProxyType({})
    _members: tuple[NativeEngine, ...] = ()  # of an ensemble

    def __init__(
        self,
        settings: Mapping[str, str],
        tensors: Mapping[str, NDArray[Any]],
        *,
        threads: int = 1,
        rows: int = ROWS,
        mapped: bool = False,
    ) -> None:
        self.threads, self.rows = threads, rows
        self._settings = settings
        given = {name: np.require(tensor, tensor.dtype, ["C", "ALIGNED"]) for name, tensor in tensors.items()}
        kinds = {name: TensorKind(tensor.shape, in_bytes=tensor.dtype == np.int8) for name, tensor in given.items()}
        in_file = {name for name, tensor in given.items() if mapped and tensor is tensors[name]}  # not a copy
        self._build(settings, kinds, {name: tensor.ctypes.data for name, tensor in given.items()}, in_file)

    @classmethod
    def check(cls, settings: Mapping[str, str], kinds: Mapping[str, TensorKind]) -> None:
        """Raise `Unfit` if the engine does not support such a model with tensors of these shapes; none is read."""
        tried = cls.__new__(cls)
        tried._build(settings, kinds, {})

    def shorten(self, shortlist: Shortlist) -> None:
        """From now on score only the target tokens of the shortlist."""
        held = [np.ascontiguousarray(array) for array in (shortlist.frequent, shortlist.starts, shortlist.ids)]
        frequent, starts, ids = (ctypes.c_void_p(array.ctypes.data) for array in held)
        count = ctypes.c_int64(len(shortlist.frequent))
        if self.call("engine_shortlist", ctypes.c_char_p)(self.pointer, frequent, count, starts, ids):
            raise UsageError("This shortlist lists words that the model does not have. Learn it again.")
        self.shortlist = shortlist

    def joined(self, others: Sequence[NativeEngine], offsets: Sequence[int]) -> NativeEngine:
        """An ensemble of this and others: the mean of their probabilities, as in regarde.models.ensemble."""
        made = NativeEngine.__new__(NativeEngine)
        made.threads, made.rows = self.threads, self.rows
        made._members = (self, *others)
        made._new()
        handles = (ctypes.c_void_p * len(made._members))(*(member._handle for member in made._members))
        numbers = (ctypes.c_int64 * len(offsets))(*offsets)
        problem = made.call("engine_join", ctypes.c_char_p)(
            made.pointer, handles, numbers, ctypes.c_int64(len(offsets))
        )
        if problem:
            raise UsageError(f"The native engine does not support {problem.decode()}. Use models of one vocabulary.")
        made._measure()
        if self.shortlist is not None:
            made.shorten(self.shortlist)
        return made

    def _new(self) -> None:
        self._handle: int | None = self.call("engine_new", ctypes.c_void_p)(int(library.simd() == "avx2"))
        weakref.finalize(self, self.call("engine_free"), self.pointer)

    def _measure(self) -> None:
        found = (ctypes.c_int64 * 4)()
        self.call("engine_shape")(self.pointer, found)
        self.layers, self.heads, scored, looks_back = found
        self._energies = bool(scored) and not self._members  # an ensemble's attention is a mean of others'
        self._at_source = self._energies and not looks_back

    def _build(
        self,
        settings: Mapping[str, str],
        kinds: Mapping[str, TensorKind],
        addresses: Mapping[str, int],
        mapped: Collection[str] = (),
    ) -> None:
        self._new()
        for path, value in settings.items():
            self.call("engine_setting")(self.pointer, path.encode(), value.encode())
        for name, kind in kinds.items():
            axes, shape = len(kind.shape), (ctypes.c_int64 * len(kind.shape))(*kind.shape)
            where = ctypes.c_void_p(addresses.get(name))
            self.call("engine_tensor")(
                self.pointer, name.encode(), int(kind.in_bytes), where, ctypes.c_int64(axes), shape, int(name in mapped)
            )
        if problem := self.call("engine_build", ctypes.c_char_p)(self.pointer):
            if problem == NO_MEMORY:
                raise OutOfMemoryError("Out of memory while loading the model. Free some, or use it quantized.")
            raise Unfit(problem.decode())
        self._measure()

    @property
    def carries(self) -> bool:
        parts = self._members or (self,)
        return all(part._settings.get("model.kind") in CARRYING for part in parts)

    @property
    def formulas(self) -> Mapping[str, str]:
        """What the model computes, as the classes of regarde.attention state it; an ensemble has none."""
        return settings.formulas(self._settings)

    def continuous(self, *, threads: int = 1) -> ContinuousEngine:
        """The engine as a server uses it: requests join the batches of so many threads at any time."""
        from regarde.engines.continuous import ContinuousEngine

        return ContinuousEngine(self, threads=threads)

    def decode(
        self, sources: Iterable[Ids], search: Search, prefixes: Iterable[Prefix] | None = None
    ) -> Iterator[list[Hypothesis]]:
        """The hypotheses of each source, best first; sources are given without EOS."""
        window: list[Ids] = []
        openings: list[Prefix] = []
        numbers = 0
        given = itertools.repeat(NO_PREFIX) if prefixes is None else prefixes
        for source, prefix in zip(sources, given, strict=False):
            window.append(source)
            openings.append(prefix)
            numbers += cost(source, search, prefix, self.layers * self.heads)
            if len(window) == WINDOW or numbers > MOST_NUMBERS:
                yield from self._answer(self.request(window, search, openings))[0]
                window, openings, numbers = [], [], 0
        if window:
            yield from self._answer(self.request(window, search, openings))[0]

    def trace(
        self,
        source: Ids,
        search: Search,
        candidates: int,
        *,
        prefix: Prefix = NO_PREFIX,
        target: Ids | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> tuple[tuple[SearchStep, ...], list[Hypothesis]]:
        """Each step of a search for one source, or along the words of a target, which is given with EOS."""
        prepared = (
            self.request([source], search, [prefix]) if target is None else self._forced_request([source], [target])
        )
        prepared.request.watched = candidates
        if interventions:
            own_layers = self.layers if self._at_source else 0
            changes = AttentionChanges.of(interventions, own_layers, self.heads, len(source) + 1)
            prepared.request.pins = len(changes.places)
            arrays: dict[str, NDArray[Any]] = {"masked": changes.masked, "pin_places": changes.places}
            prepared = PreparedRequest(prepared.request, {**prepared.held, **arrays, "pinned": changes.pinned})
        (found,), steps = self._answer(prepared)
        return steps, found

    def states(self, source: Ids) -> NDArray[np.float32] | None:
        """(S, D) the encoder's states of a source and its EOS; an ensemble has none."""
        ids = np.array([*source, EOS], np.int64)
        answer = self.call("engine_states", ctypes.c_void_p)(
            self.pointer, ids.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(ids))
        )
        numbers, reals = self.streams(answer)
        return reals.reshape(int(numbers[0]), -1) if len(reals) else None

    def request(self, sources: Sequence[Ids], search: Search, prefixes: Sequence[Prefix]) -> PreparedRequest:
        """A request as the library reads it."""
        if search.kind == "beam" and search.beta and not self.layers:
            given = f"search.beta = {search.beta:g}: the coverage penalty reads attention, and this model has none"
            raise ConfigError(f"{given}. Set search.beta to 0.")
        starts, ids = _flat(sources)
        rules = search.rules
        dice, dice_starts = _dice(sources, search, prefixes) if search.kind == "sampling" else _NO_DICE
        held = {"starts": starts, "ids": ids, "dice": dice, "dice_starts": dice_starts}
        if any(prefix.ids for prefix in prefixes):
            held["prefix_starts"], held["prefix_ids"] = _flat([prefix.ids for prefix in prefixes])
            held["barred_starts"], held["barred_ids"] = _flat([prefix.barred for prefix in prefixes])
        request = EngineRequest(
            count=len(sources), kind=KINDS[search.kind], size=1, n_best=search.n_best, min_length=rules.min_length,
            max_extra=rules.max_extra, context=rules.context, allow_unknown=rules.allow_unknown, rows=self.rows,
            threads=self.threads, first=NOTHING if rules.first is None else rules.first, max_ratio=rules.max_ratio,
            top_p=1.0, temperature=1.0,
        )  # fmt: skip
        if search.kind == "beam":
            request.size = search.size
            request.alpha, request.beta, request.prune = search.alpha, search.beta, search.prune
            request.power = search.penalty == "power"
            request.early, request.cut = search.early, search.cut
        elif search.kind == "sampling":
            request.top_k, request.top_p, request.temperature = search.top_k, search.top_p, search.temperature
        return PreparedRequest(request, held)

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Hypothesis]:
        """Score given targets, which end in EOS."""
        everything, _ = self._answer(self._forced_request(sources, targets))
        return [found for (found,) in everything]

    def _forced_request(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> PreparedRequest:
        if not all(targets):
            raise UsageError("A target of no tokens has no score. Give at least EOS.")
        starts, ids = _flat(sources)
        target_starts, target_ids = _flat(targets)
        held = {"starts": starts, "ids": ids, "target_starts": target_starts, "target_ids": target_ids}
        request = EngineRequest(
            count=len(sources), kind=FORCED, size=1, n_best=1, allow_unknown=1, rows=self.rows, threads=self.threads,
            max_ratio=1.0, top_p=1.0, temperature=1.0,
        )  # fmt: skip
        return PreparedRequest(request, held)

    def _answer(self, prepared: PreparedRequest) -> tuple[list[list[Hypothesis]], tuple[SearchStep, ...]]:
        """The hypotheses of each sentence, and the steps of the only one if it is traced."""
        request = prepared.request
        try:
            reader = self.reader(self.call("engine_decode", ctypes.c_void_p)(self.pointer, ctypes.byref(request)))
            everything = reader.sentences(request.count)
        except (OutOfMemoryError, MemoryError):
            raise OutOfMemoryError(_budget(request)) from None
        if not request.watched or not everything[0]:
            return everything, ()
        return everything, reader.steps(request.n_best if request.kind == KINDS["sampling"] else 1)

    def reader(self, answer: int) -> Reader:
        """A reader of the answer of the library; the answer is freed."""
        return Reader(*self.streams(answer), self.layers, self.heads, energies=self._energies)

    def streams(self, answer: int) -> Streams:
        if not answer:
            raise OutOfMemoryError(_OUT_OF_MEMORY)
        held = ctypes.c_void_p(answer)
        try:
            if problem := self.call("answer_error", ctypes.c_char_p)(held):
                if problem == NO_MEMORY:
                    raise OutOfMemoryError(_OUT_OF_MEMORY)
                raise RuntimeError(f"the native engine: {problem.decode()}")
            numbers = self._array("answer_numbers", held, _WHOLE)
            return numbers, self._array("answer_reals", held, _REAL)
        finally:
            self.call("answer_free")(held)

    @property
    def pointer(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._handle)

    def call(self, name: str, result: Any = None) -> Any:
        return library.function(name, result)

    def _array(self, name: str, held: ctypes.c_void_p, kind: np.dtype[Any]) -> NDArray[Any]:
        """A copy of an array of an answer."""
        count = ctypes.c_int64()
        first = self.call(name, ctypes.c_void_p)(held, ctypes.byref(count))
        return np.frombuffer(ctypes.string_at(first, count.value * kind.itemsize), dtype=kind)


_OUT_OF_MEMORY = "Out of memory while translating. Give fewer sentences at once, a smaller beam, or fewer threads."


def _budget(request: EngineRequest) -> str:
    """Advice after running out of memory: half of each limit."""
    given = [(request.count, "sentences at once"), (request.size, "hypotheses in a beam"), (request.threads, "threads")]
    several = [(number, noun) for number, noun in given if number > 1]
    if not several:
        return "Out of memory while translating one sentence. Cut it, or lower search.rules.max_ratio."
    prepared = ", ".join(f"{number:,} {noun}" for number, noun in several)
    return f"Out of memory with {prepared}. Try {', or '.join(f'{number // 2:,} {noun}' for number, noun in several)}."


_WHOLE, _REAL = np.dtype(np.int64), np.dtype(np.float32)


def cost(source: Ids, search: Search, prefix: Prefix, heads: int) -> int:
    """The most numbers in the answers to a sentence: the attention of all heads, and a random number for each word."""
    T = search.rules.limit(len(source) + 1, prefix)
    S = len(source) + 1 if source else T  # without a source, a language model attends to its own words
    return search.n_best * T * (1 + heads * S) + len(prefix.barred)


def _flat(rows: Sequence[Ids | NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The start of each row, and all rows concatenated."""
    starts = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return starts, np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])


_NO_DICE = np.zeros(1), np.zeros(1, dtype=np.int64)


def _dice(
    sources: Sequence[Ids], search: Sampling, prefixes: Sequence[Prefix]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Random numbers as in regarde.search: functions of seed, sample and sentence."""
    thrown = []
    for ids, prefix in zip(sources, prefixes, strict=True):
        most = search.rules.limit(len(ids) + 1, prefix)
        words = ids
        if BOS in ids:  # without their characters; an EOS within has none
            words = [word for mark, word in itertools.pairwise(ids) if mark == BOS or word == EOS]
        dice = (np.random.default_rng([search.seed, n, *words, EOS]) for n in range(search.n_best))
        thrown += [die.random(most) for die in dice]
    starts = np.cumsum([0, *(len(throws) for throws in thrown[:-1])], dtype=np.int64)
    return np.concatenate(thrown), starts
