"""Word by word in torch, one hypothesis a row: greedy search and sampling differ in the choice of the next word.

Axes: B rows, V vocabulary, t steps so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.models.interface import Encoding, Model, State
from regarde.search.hypothesis import Hypothesis
from regarde.search.ranking import log_probabilities
from regarde.search.recording import OpenHypothesis, StepObserver, StepRecorder
from regarde.search.settings import NO_PREFIX, Greedy, Prefix, Rules, Sampling
from regarde.search.trace import Continuation, Fate
from regarde.text.tokenizers import BOS, EOS

AHEAD = 8  # steps on a device that is no CPU
Floats = NDArray[np.float32]
Choice = Callable[[Tensor, list[int]], Tensor]
"""(B, V) log-probabilities and each row's number -> (B,) the chosen words."""


def greedily(
    search: Greedy, model: Model, encoding: Encoding, prefixes: Sequence[Prefix] | None, observer: StepObserver | None
) -> list[list[Hypothesis]]:
    """Choose the likeliest word at each step, or the words of the best whole answer if the decoder can compute it."""
    if best := model.decoder.best(encoding):
        prefixes = prefixes and [
            own if own.ids else Prefix(ids, whole=True) for own, ids in zip(prefixes, best, strict=True)
        ]
        prefixes = prefixes or [Prefix(ids, whole=True) for ids in best]
    walked = walk(model, encoding, search.rules, lambda scores, _: scores.argmax(dim=-1), prefixes, observer)
    return [[hypothesis] if hypothesis else [] for hypothesis in walked]


def sampled(
    search: Sampling, model: Model, encoding: Encoding, prefixes: Sequence[Prefix] | None, observer: StepObserver | None
) -> list[list[Hypothesis]]:
    """Draw words from the model's distribution, each sentence with random numbers of its own."""
    sentences = [ids[mask].tolist() for ids, mask in zip(encoding.source.ids, encoding.source.mask, strict=True)]
    dice = [np.random.default_rng([search.seed, n, *ids]) for ids in sentences for n in range(search.n_best)]

    def choose(scores: Tensor, numbers: list[int]) -> Tensor:
        cumulated = narrowed(search, scores).double().softmax(dim=-1).cumsum(dim=-1)  # (B, V)
        thrown = torch.tensor([[dice[number].random()] for number in numbers], dtype=torch.float64)
        drawn = torch.searchsorted(cumulated, thrown.to(scores.device) * cumulated[:, -1:], right=True)
        return drawn.squeeze(1).clamp_max(scores.shape[1] - 1)

    own = None if prefixes is None else [prefix for prefix in prefixes for _ in range(search.n_best)]
    walked = walk(model, encoding.repeat(search.n_best), search.rules, choose, own, observer)
    groups = [walked[i : i + search.n_best] for i in range(0, len(walked), search.n_best)]
    whole = [[hypothesis for hypothesis in group if hypothesis] for group in groups]
    return [sorted(group, key=lambda h: -h.score) if len(group) == search.n_best else [] for group in whole]


def narrowed(search: Sampling, scores: Tensor) -> Tensor:
    """Log-probabilities with everything outside top-k and nucleus at -inf.  (B, V) -> (B, V)"""
    scores = scores / search.temperature
    if search.top_k:
        least = scores.topk(min(search.top_k, scores.shape[-1]), dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < least, float("-inf"))
    if search.top_p < 1:
        ordered, order = scores.softmax(dim=-1).sort(dim=-1, descending=True)
        before = ordered.cumsum(dim=-1) - ordered  # the word that crosses top_p still belongs to the nucleus
        outside = torch.zeros_like(order, dtype=torch.bool).scatter(1, order, before >= max(search.top_p, 1e-9))
        scores = scores.masked_fill(outside, float("-inf"))
    return scores


@torch.no_grad()
def walk(
    model: Model,
    encoding: Encoding,
    rules: Rules,
    choose: Choice,
    prefixes: Sequence[Prefix] | None = None,
    observer: StepObserver | None = None,
) -> list[Hypothesis | None]:
    """Step until every row has generated EOS or reached its limit; finished rows leave the batch.

    None for a row whose numbers overflow, however finite the weights are.
    """
    decoder = model.decoder
    lengths = encoding.source.lengths.tolist()
    openings = prefixes or [NO_PREFIX] * len(lengths)
    limits = [rules.limit(n, prefix) for n, prefix in zip(lengths, openings, strict=True)]
    state, memory = decoder.start(encoding), decoder.remember(encoding)
    numbers = list(range(len(limits)))  # the sentence of each unfinished row
    chosen_ids: list[list[int]] = [[] for _ in numbers]
    token_scores: list[list[float]] = [[] for _ in numbers]
    done: list[Hypothesis | None] = [None] * len(numbers)
    previous = torch.full_like(encoding.source.lengths, BOS)
    open_rows = [OpenHypothesis(None, BOS, 0.0) for _ in numbers]
    begun = 0  # steps
    while numbers:
        ahead = 1 if observer else steps_ahead(previous.device, max(limits[number] for number in numbers) - begun)
        found: list[Tensor] = []
        for step in range(begun, begun + ahead):
            logits, state = decoder.step(previous, state, memory)
            scores = log_probabilities(rules, logits, step, [openings[number] for number in numbers])
            previous = choose(scores, numbers)
            chosen = scores.gather(1, previous.unsqueeze(1)).squeeze(1)
            found.append(torch.stack((previous.double(), chosen.double(), scores.amax(dim=-1).double())))
        known = torch.stack(found).cpu().numpy()  # (steps, 3, B); exact in double precision
        staying, ended = [], list[tuple[int, int]]()
        for row, number in enumerate(numbers):
            for step, (word, score, best) in enumerate(known[:, :, row], start=begun + 1):
                if np.isnan(best):
                    break
                chosen_ids[number].append(int(word))
                token_scores[number].append(float(score))
                if word == EOS or step == limits[number]:
                    ended.append((row, step))
                    break
            else:
                staying.append(row)
        for (row, step), heads, p_gen in zip(ended, *histories(state, [row for row, _ in ended]), strict=True):
            number = numbers[row]
            done[number] = Hypothesis(
                ids=tuple(chosen_ids[number]),
                token_scores=np.asarray(token_scores[number], dtype=np.float32),
                score=float(np.sum(token_scores[number])),
                heads=heads[..., :step, : decoder.width(lengths[number], step)].copy(),
                finished=chosen_ids[number][-1] == EOS,
                p_gen=None if p_gen is None else p_gen[:step].copy(),
            )
        if observer:
            sums = [float(np.sum(token_scores[number])) for number in numbers]
            ways = [
                Continuation(row, int(word), float(known[0, 1, row]), sums[row], _fate(int(word), row in staying))
                for row, word in enumerate(known[0, 0])
                if not np.isnan(known[0, 2, row])
            ]
            observer.step(open_rows, scores, state, ways)
            open_rows = [OpenHypothesis(row, ways[row].id, sums[row]) for row in staying]
        begun += ahead
        if len(staying) < len(numbers):
            rows = torch.tensor(staying, dtype=torch.long, device=previous.device)
            numbers = [numbers[row] for row in staying]
            previous, state, memory = previous[rows], state.select(rows), memory.select(rows)
    return done


def steps_ahead(device: torch.device, left: int) -> int:
    """How many steps are computed before their words are read: reading waits for a device, and a CPU needs no wait."""
    return min(left, AHEAD if device.type != "cpu" else 1)


def histories(state: State, rows: Sequence[int]) -> tuple[Iterable[Floats], Iterable[Floats | None]]:
    """The attention and p_gen of some rows, read at once."""
    if not rows:
        return (), ()
    chosen = torch.tensor(rows, device=state.past.device)
    heads = state.past.index_select(0, chosen).float().cpu().numpy()
    if state.p_gen is None:
        return heads, [None] * len(rows)
    return heads, state.p_gen.index_select(0, chosen).float().cpu().numpy()


@torch.no_grad()
def follow(model: Model, encoding: Encoding, target: Sequence[int], observer: StepRecorder) -> Hypothesis:
    """The same for one sentence whose words are given, EOS included: nothing is chosen, and nothing forbidden."""
    state, memory = model.decoder.start(encoding), model.decoder.remember(encoding)
    token_scores: list[float] = []
    row = OpenHypothesis(None, BOS, 0.0)
    for t, word in enumerate(target):
        logits, state = model.decoder.step(encoding.source.ids.new_tensor([row.id]), state, memory)
        scores = logits.float().log_softmax(dim=-1)  # (1, V)
        token_scores.append(float(scores[0, word]))
        way = Continuation(0, word, token_scores[-1], sum(token_scores), "kept" if t + 1 < len(target) else "finished")
        observer.step([row], scores, state, [way])
        row = OpenHypothesis(0, word, way.score)
    return Hypothesis(
        ids=tuple(target),
        token_scores=np.asarray(token_scores, dtype=np.float32),
        score=sum(token_scores),
        heads=state.past[0].cpu().numpy().copy(),
        finished=True,
        p_gen=gates(state, 0),
    )


def gates(state: State, row: int) -> NDArray[np.float32] | None:
    """p_gen of each step of a row."""
    return None if state.p_gen is None else state.p_gen[row].float().cpu().numpy().copy()


def _fate(word: int, goes_on: bool) -> Fate:
    return "kept" if goes_on else "finished" if word == EOS else "cut"
