"""The native engine: a model's settings and tensors in, hypotheses out. No torch, no Python between two words.

Axes: T target tokens, S source tokens, L attention layers, N heads.

It knows every model of regarde.models; `Unfit` says what it does not know of a model, and torch serves then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.errors import ConfigError, UsageError
from regarde.native import library
from regarde.precision import Kind
from regarde.search import Beam, Hypothesis, Sampling, Search
from regarde.text import EOS

Ids = Sequence[int]
ROWS = 64
WINDOW = 1024  # sentences that are handed over together; within them, one that ends makes room for the next
MOST_NUMBERS = 16 << 20  # of the answers to a window, so that memory is bounded whatever the sentences
KINDS = {"greedy": 0, "beam": 1, "sampling": 2}
FORCED = 3


class Unfit(Exception):  # noqa: N818  # not a failure: the other engine takes over
    """A model that this engine does not know, and why."""


class Request(ctypes.Structure):
    """As in source/engine/searching.h."""

    _fields_ = library.fields(
        sizes="count kind size n_best min_length max_extra allow_unknown top_k rows threads",
        reals="alpha beta max_ratio top_p temperature",
        pointers="starts ids target_starts target_ids dice dice_starts",
    )


class NativeEngine:
    """A model ready to decode: `rows` hypotheses side by side in each of `threads`.

    Tensors are floats, or as regarde.precision has them; they are not needed any more once the engine is there.
    """

    name = "native"

    def __init__(
        self,
        settings: Mapping[str, str],
        tensors: Mapping[str, NDArray[Any]],
        *,
        threads: int = 1,
        rows: int = ROWS,
    ) -> None:
        self.threads, self.rows = threads, rows
        self._library = library.loaded()
        given = {name: np.require(tensor, tensor.dtype, ["C", "ALIGNED"]) for name, tensor in tensors.items()}
        kinds = {name: Kind(tensor.shape, in_bytes=tensor.dtype == np.int8) for name, tensor in given.items()}
        self._build(settings, kinds, {name: tensor.ctypes.data for name, tensor in given.items()})

    @classmethod
    def check(cls, settings: Mapping[str, str], kinds: Mapping[str, Kind]) -> None:
        """Is there such a model, with tensors of these shapes? Nothing is allocated to find out; `Unfit` says no."""
        tried = cls.__new__(cls)
        tried._library = library.loaded()
        tried._build(settings, kinds, {})

    def _build(self, settings: Mapping[str, str], kinds: Mapping[str, Kind], addresses: Mapping[str, int]) -> None:
        self._handle: int | None = self._call("engine_new", ctypes.c_void_p)(int(library.simd() == "avx2"))
        for path, value in settings.items():
            self._call("engine_setting")(self._pointer, path.encode(), value.encode())
        for name, kind in kinds.items():
            axes, shape = len(kind.shape), (ctypes.c_int64 * len(kind.shape))(*kind.shape)
            where = ctypes.c_void_p(addresses.get(name))
            self._call("engine_tensor")(
                self._pointer, name.encode(), int(kind.in_bytes), where, ctypes.c_int64(axes), shape
            )
        if problem := self._call("engine_build", ctypes.c_char_p)(self._pointer):
            raise Unfit(problem.decode())
        layers, heads = ctypes.c_int64(), ctypes.c_int64()
        self._call("engine_shape")(self._pointer, ctypes.byref(layers), ctypes.byref(heads))
        self.layers, self.heads = layers.value, heads.value

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._call("engine_free")(self._pointer)
            self._handle = None

    def decode(self, sources: Iterable[Ids], search: Search) -> Iterator[list[Hypothesis]]:
        """The hypotheses of each source, best first; sources are given without EOS."""
        window: list[Ids] = []
        cost = 0
        for source in sources:
            window.append(source)
            cost += self._cost(source, search)
            if len(window) == WINDOW or cost > MOST_NUMBERS:
                yield from self._search(window, search)
                window, cost = [], 0
        if window:
            yield from self._search(window, search)

    def _cost(self, source: Ids, search: Search) -> int:
        """Numbers that the answers to a sentence hold at most: their attention, and a die for each word."""
        S = len(source) + 1
        return search.n_best * _longest(source, search) * (1 + self.layers * self.heads * S)

    def _search(self, sources: Sequence[Ids], search: Search) -> list[list[Hypothesis]]:
        if search.kind == "beam" and search.beta and not self.layers:
            given = f"search.beta = {search.beta:g}: the coverage penalty reads attention, and this model has none"
            raise ConfigError(f"{given}. Set search.beta to 0.")
        starts, ids = _flat(sources)
        rules = search.rules
        dice, dice_starts = _dice(sources, search) if search.kind == "sampling" else _NO_DICE
        wide = search if search.kind == "beam" else Beam(size=1, alpha=0.0)
        drawn = search if search.kind == "sampling" else Sampling()
        request = Request(
            count=len(sources), kind=KINDS[search.kind], size=wide.size, n_best=search.n_best,
            min_length=rules.min_length, max_extra=rules.max_extra, allow_unknown=rules.allow_unknown,
            top_k=drawn.top_k, rows=self.rows, threads=self.threads, alpha=wide.alpha, beta=wide.beta,
            max_ratio=rules.max_ratio, top_p=drawn.top_p, temperature=drawn.temperature, starts=starts.ctypes.data,
            ids=ids.ctypes.data, dice=dice.ctypes.data, dice_starts=dice_starts.ctypes.data,
        )  # fmt: skip
        return self._answer(request)

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Hypothesis]:
        """What the model thinks of given words; targets are given with EOS."""
        if not all(targets):
            raise UsageError("A target of no tokens has no score. Give at least its end.")
        starts, ids = _flat(sources)
        target_starts, target_ids = _flat(targets)
        request = Request(
            count=len(sources), kind=FORCED, size=1, n_best=1, allow_unknown=1, rows=self.rows, threads=self.threads,
            max_ratio=1.0, top_p=1.0, temperature=1.0, starts=starts.ctypes.data, ids=ids.ctypes.data,
            target_starts=target_starts.ctypes.data, target_ids=target_ids.ctypes.data,
        )  # fmt: skip
        return [found for (found,) in self._answer(request)]

    def _answer(self, request: Request) -> list[list[Hypothesis]]:
        """Done before it returns: the arrays that the request points to live no longer than its caller."""
        answer = self._call("engine_decode", ctypes.c_void_p)(self._pointer, ctypes.byref(request))
        held = ctypes.c_void_p(answer)
        try:
            if problem := self._call("answer_error", ctypes.c_char_p)(held):
                raise RuntimeError(f"the native engine: {problem.decode()}")
            numbers = self._array("answer_numbers", held, ctypes.c_int64)
            reals = self._array("answer_reals", held, ctypes.c_float)
        finally:
            self._call("answer_free")(held)
        at, place = 0, 0
        everything = []
        for _ in range(request.count):
            found = []
            count, at = int(numbers[at]), at + 1
            for _ in range(count):
                T, S, finished = (int(number) for number in numbers[at : at + 3])
                size = self.layers * self.heads * T * S
                found.append(
                    Hypothesis(
                        ids=tuple(numbers[at + 3 : at + 3 + T].tolist()),
                        token_scores=reals[place + 1 : place + 1 + T].copy(),
                        score=float(reals[place]),
                        heads=reals[place + 1 + T : place + 1 + T + size].reshape(self.layers, self.heads, T, S).copy(),
                        finished=bool(finished),
                    )
                )
                at, place = at + 3 + T, place + 1 + T + size
            everything.append(found)
        return everything

    @property
    def _pointer(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._handle)

    def _call(self, name: str, result: Any = None) -> Any:
        function = self._library[name]
        function.restype = result
        return function

    def _array(self, name: str, held: ctypes.c_void_p, kind: Any) -> NDArray[Any]:
        """A copy of what an answer holds."""
        count = ctypes.c_int64()
        first = self._call(name, ctypes.POINTER(kind))(held, ctypes.byref(count))
        return np.ctypeslib.as_array(first, (count.value,)).copy() if count.value else np.zeros(0, dtype=kind)


def flattened(tables: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """A configuration as the engine reads it: each setting under its whole path."""
    found: dict[str, str] = {}
    for key, value in tables.items():
        where = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            found |= flattened(value, where)
        elif value is not None:
            found[where] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _flat(rows: Sequence[Ids]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each row starts, and all of them end to end."""
    starts = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return starts, np.fromiter((token for row in rows for token in row), dtype=np.int64, count=int(starts[-1]))


def _longest(source: Ids, search: Search) -> int:
    """Words of an answer at most, as search.rules has it."""
    return int(np.float32(len(source) + 1) * np.float32(search.rules.max_ratio)) + search.rules.max_extra


_NO_DICE = np.zeros(1), np.zeros(1, dtype=np.int64)


def _dice(sources: Sequence[Ids], search: Sampling) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """As regarde.search throws them: by seed, sample and sentence alone."""
    thrown = []
    for ids in sources:
        longest = _longest(ids, search)
        dice = (np.random.default_rng([search.seed, n, *ids, EOS]) for n in range(search.n_best))
        thrown += [die.random(longest) for die in dice]
    starts = np.cumsum([0, *(len(throws) for throws in thrown[:-1])], dtype=np.int64)
    return np.concatenate(thrown), starts
