"""Each kernel against the torch path it stands for: every gradient, in double and in single precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from regarde.attention.scores import tanh_scores
from regarde.layers import CELLS, run
from regarde.layers.cells import read
from regarde.models import tagger
from regarde.native import functions, heads, library
from regarde.native import layer as small
from regarde.native.decoders import AttendedSource, ScoreParameters, UpperLayer, after, before
from regarde.native.functions import Recurrence

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")

CELL_NAMES = ("simple", "gru", "lstm")
SIZES = ((3, 4, 5, 6, 7, 9), (13, 5, 17, 24, 33, 20), (1, 1, 1, 1, 1, 1), (7, 3, 2, 16, 8, 32))  # B T S H A C
BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture(params=["avx2 f32", "portable f32", "portable f64"])
def dtype(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.dtype]:
    """Each set of kernels there is, with the numbers it is for."""
    simd, real = request.param.split()
    monkeypatch.setenv("REGARDE_SIMD", simd)
    library.simd.cache_clear()
    if library.simd() != simd:
        pytest.skip(f"no {simd} here")
    yield {"f32": torch.float32, "f64": torch.float64}[real]
    monkeypatch.undo()
    library.simd.cache_clear()


def drawn(seed: int, dtype: torch.dtype) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: (torch.randn(*shape, generator=generator, dtype=dtype) * 0.3).requires_grad_()


def lengths_mask(B: int, S: int) -> Tensor:
    return torch.arange(S) < torch.tensor([1 + (3 * b + S - 1) % S for b in range(B)]).unsqueeze(1)


def differences(ways: Sequence[Callable[[], Sequence[Tensor]]], leaves: Sequence[Tensor]) -> list[float]:
    """|a - b| / |a| for each output and each gradient of two ways to compute the same."""
    found = []
    for way in ways:
        for leaf in leaves:
            leaf.grad = None
        outputs = way()
        generator = torch.Generator().manual_seed(3)
        weighted = [(y * torch.randn(y.shape, generator=generator, dtype=y.dtype)).sum() for y in outputs]
        torch.stack(weighted).sum().backward()
        found.append([*(y.detach() for y in outputs), *(leaf.grad for leaf in leaves)])
    return [float((a - b).norm() / a.norm().clamp(min=1e-6)) for a, b in zip(*found, strict=True)]


def recurrent_parameters(cells: Sequence[torch.nn.Module]) -> list[Tensor]:
    return [p for cell in cells for name, p in cell.named_parameters() if name.startswith("U")]


def some_cell(
    name: str, H: int, dtype: torch.dtype, inputs: Sequence[int] = (1,)
) -> tuple[torch.nn.Module, Recurrence]:
    torch.manual_seed(4)
    cell = CELLS[name](list(inputs), H).to(dtype)
    recurrence = cell.recurrence()
    assert recurrence is not None
    return cell, recurrence


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", CELL_NAMES)
def test_a_cell_over_sentences_equals_torch(
    name: str, backwards: bool, sizes: tuple[int, ...], dtype: torch.dtype, threads: int
) -> None:
    B, T, _, H, _, _ = sizes
    draw = drawn(1, dtype)
    cell, recurrence = some_cell(name, H, dtype)
    shares, start, mask = draw(B, T, cell.gates * H), draw(B, cell.state_size), lengths_mask(B, T)

    def by_torch() -> tuple[Tensor, Tensor]:
        with library.switched_off():
            return run(cell, shares, mask, start, backwards=backwards)

    def by_kernel() -> tuple[Tensor, Tensor]:
        return functions.recurrent(recurrence, shares, mask, start, backwards=backwards)

    leaves = [shares, start, *recurrent_parameters([cell])]
    assert max(differences([by_torch, by_kernel], leaves)) < BOUNDS[dtype]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ["simple", "lstm"])
@pytest.mark.parametrize("learned", [False, True], ids=["inputs given", "inputs learned"])
def test_a_cell_that_multiplies_its_inputs_in_the_kernel_equals_torch(
    learned: bool, name: str, sizes: tuple[int, ...], dtype: torch.dtype, threads: int
) -> None:
    B, T, I, H, _, _ = sizes
    draw = drawn(1, dtype)
    cell, recurrence = some_cell(name, H, dtype, [I])
    x, start, mask = draw(B, T, I).detach().requires_grad_(learned), draw(B, cell.state_size), lengths_mask(B, T)

    def by_torch() -> tuple[Tensor, Tensor]:
        with library.switched_off():
            return read(cell, x, mask, start)

    def by_kernel() -> tuple[Tensor, Tensor]:
        return small.read(recurrence, cell.input_weight(0), cell.bias(), x, mask, start)

    leaves = [*([x] if learned else []), start, *cell.parameters()]
    assert max(differences([by_torch, by_kernel], leaves)) < BOUNDS[dtype]


def test_small_cells_multiply_their_inputs_in_the_kernel_and_large_ones_do_not() -> None:
    def fits(name: str, H: int) -> bool:
        cell, recurrence = some_cell(name, H, torch.float32, [H])
        x = torch.zeros(2, 3, H)
        return small.fits(recurrence, cell.input_weight(0), x, x[:, 0])

    assert [fits("lstm", 40), fits("lstm", 128), fits("gru", 40)] == [True, False, False]


def source(draw: Callable[..., Tensor], B: int, S: int, A: int, C: int) -> AttendedSource:
    return AttendedSource(draw(B, S, A), draw(B, S, C), lengths_mask(B, S))


def question(kind: str, draw: Callable[..., Tensor], A: int, H: int) -> ScoreParameters:
    if kind == "dot":
        return ScoreParameters()
    return ScoreParameters(W=draw(A, H), b=draw(A) if kind == "additive with bias" else None, v=draw(A))


def attend(projection: ScoreParameters, state: Tensor, attended: AttendedSource) -> tuple[Tensor, Tensor]:
    """One step of attention in torch.  (B, H) -> context (B, C), weights (B, S)"""
    query = state if projection.W is None else functional.linear(state, projection.W, projection.b)
    if projection.v is None:
        scores = (attended.keys @ query.unsqueeze(2)).squeeze(2)
    else:
        scores = torch.tanh(query.unsqueeze(1) + attended.keys) @ projection.v
    weights = scores.masked_fill(~attended.mask, -torch.inf).softmax(dim=-1)
    return (weights.unsqueeze(1) @ attended.values).squeeze(1), weights


SCORES = ("additive", "additive with bias", "dot")


def present(*tensors: Tensor | None) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", CELL_NAMES)
def test_a_decoder_that_attends_before_its_steps_equals_torch(
    name: str, score: str, sizes: tuple[int, ...], dtype: torch.dtype, threads: int
) -> None:
    B, T, S, H, size, C = sizes
    A = H if score == "dot" else size
    draw = drawn(2, dtype)
    cell, recurrence = some_cell(name, H, dtype)
    projection, attended = question(score, draw, A, H), source(draw, B, S, A, C)
    shares, start, W = draw(B, T, cell.gates * H), draw(B, cell.state_size), draw(cell.gates * H, C)

    def by_torch() -> list[Tensor]:
        state, outputs, contexts, rows = start, [], [], []
        for share in shares.unbind(1):
            context, weights = attend(projection, cell.output(state), attended)
            state = cell(share + context @ W.T, state)
            outputs.append(cell.output(state))
            contexts.append(context)
            rows.append(weights)
        return [*(torch.stack(steps, dim=1) for steps in (outputs, contexts, rows)), state]

    def by_kernel() -> list[Tensor]:
        found = before(recurrence, W, projection, shares, start, attended)
        return [found.outputs, found.contexts, found.weights, found.final]

    leaves = present(shares, start, W, projection.W, projection.b, projection.v, attended.keys, attended.values)
    assert max(differences([by_torch, by_kernel], [*leaves, *recurrent_parameters([cell])])) < BOUNDS[dtype]


@pytest.mark.parametrize(
    ("depth", "residual_from", "drops"), [(1, 9, False), (3, 2, True), (2, 9, True), (3, 3, False)]
)
@pytest.mark.parametrize("sizes", SIZES[:3])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", CELL_NAMES)
def test_a_decoder_that_feeds_what_it_found_equals_torch(
    name: str, score: str, depth: int, residual_from: int, drops: bool, sizes: tuple[int, ...], dtype: torch.dtype
) -> None:
    B, T, S, H, size, C = sizes
    A = H if score == "dot" else size
    draw = drawn(5, dtype)
    cells = [some_cell(name, H, dtype)[0] for _ in range(depth)]
    upper = [some_cell(name, H, dtype, [H])[0] for _ in range(depth - 1)]
    cells[1:] = upper
    projection, attended = question(score, draw, A, H), source(draw, B, S, A, C)
    G, K = cells[0].gates * H, cells[0].state_size
    shares, starts, feed = draw(B, T, G), draw(B, depth, K), draw(B, H)
    W_feed, W_combine = draw(G, H), draw(H, C + H)
    noise = [1.5 * (draw(B, T, H) > 0).to(dtype) if drops else None for _ in upper]

    def by_torch() -> list[Tensor]:
        states, fed, said, rows = list(starts.unbind(1)), feed, [], []
        for t in range(T):
            shown = torch.empty(0)
            for layer, cell in enumerate(cells):
                if layer == 0:
                    enters = shares[:, t] + fed @ W_feed.T
                else:
                    one = noise[layer - 1]
                    enters = cell.share(0, shown if one is None else shown * one[:, t])
                states[layer] = cell(enters, states[layer])
                residual = layer + 1 >= residual_from
                shown = cell.output(states[layer]) + (shown if residual else 0)
            context, weights = attend(projection, shown, attended)
            fed = torch.tanh(torch.cat((context, shown), dim=-1) @ W_combine.T)
            said.append(fed)
            rows.append(weights)
        return [torch.stack(said, dim=1), torch.stack(rows, dim=1), torch.stack(states, dim=1)]

    def by_kernel() -> list[Tensor]:
        above = [
            UpperLayer(cell.recurrence(), cell.input_weight(0), cell.bias(), one)
            for cell, one in zip(upper, noise, strict=True)
        ]
        found = after(
            cells[0].recurrence(), above, residual_from, W_feed, W_combine, projection, shares, starts, feed, attended
        )
        return [found.attentional, found.weights, found.finals]

    leaves = present(
        shares,
        starts,
        feed,
        W_feed,
        W_combine,
        projection.W,
        projection.b,
        projection.v,
        attended.keys,
        attended.values,
    )
    between = [p for cell in upper for p in (cell.input_weight(0), cell.bias())]
    found = differences([by_torch, by_kernel], [*leaves, *between, *recurrent_parameters(cells)])
    assert max(found) < BOUNDS[dtype]


@pytest.mark.parametrize("sizes", SIZES)
def test_the_additive_score_of_all_queries_equals_torch(
    sizes: tuple[int, ...], dtype: torch.dtype, threads: int
) -> None:
    B, T, S, _, A, _ = sizes
    draw = drawn(6, dtype)
    queries, keys, v = draw(B, T, A), draw(B, S, A), draw(A)

    def by_torch() -> list[Tensor]:
        return [torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) @ v]

    def query_by_query() -> list[Tensor]:
        with library.switched_off():
            return [tanh_scores(queries, keys, v)]

    for way in (lambda: [functions.additive_scores(queries, keys, v)], query_by_query):
        assert max(differences([by_torch, way], [queries, keys, v])) < BOUNDS[dtype]


@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("window", [1, 3, 40])
@pytest.mark.parametrize("before", [0, 4])
@pytest.mark.parametrize("sizes", SIZES)
def test_looking_back_equals_torch(
    score: str, window: int, before: int, sizes: tuple[int, ...], dtype: torch.dtype, threads: int
) -> None:
    B, T, _, _, A, C = sizes
    draw = drawn(9, dtype)
    S = before + T
    queries, keys, values, v = draw(B, T, A), draw(B, S, A), draw(B, S, C), draw(A)
    distance = torch.arange(before, S).unsqueeze(1) - torch.arange(S)

    def by_torch() -> list[Tensor]:
        scores = queries @ keys.mT
        if score == "additive":
            scores = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) @ v
        far = (distance < 1) | (distance > window)
        weights = scores.masked_fill(far, -1e9).softmax(dim=-1).masked_fill(far, 0.0)
        return [weights @ values]

    def by_kernel() -> list[Tensor]:
        return [functions.look_back(queries, keys, values, v if score == "additive" else None, window)]

    leaves = [queries, keys, values, *([v] if score == "additive" else [])]
    for leaf in leaves:
        leaf.grad = torch.zeros_like(leaf)
    assert max(differences([by_torch, by_kernel], leaves)) < BOUNDS[dtype]


@pytest.mark.parametrize("sharpness", [1.0, 100.0], ids=["smooth", "sharp"])
@pytest.mark.parametrize("sizes", [(3, 5, 6), (8, 12, 22), (1, 2, 5), (2, 4, 8)])  # B S V
def test_backward_messages_equal_torch(
    sizes: tuple[int, ...], sharpness: float, dtype: torch.dtype, threads: int
) -> None:
    B, S, V = sizes
    draw = drawn(10, dtype)
    P, A = draw(B, S, V), draw(V, V)
    lengths = torch.tensor([(S - 1 - b) % S for b in range(B)])
    forbidden = torch.zeros(V, V, dtype=dtype)
    forbidden[4, 5:] = -1e4  # some products of exponentials are too small, and these are computed otherwise

    def messages() -> list[Tensor]:
        return [tagger.backward(P * sharpness, A * sharpness + forbidden, lengths)]

    def by_torch() -> list[Tensor]:
        with library.switched_off():
            return messages()

    # large messages have fewer digits after the point, in torch too
    assert max(differences([by_torch, messages], [P, A])) < BOUNDS[dtype] * max(1, sharpness / 10)


HEADS = ((2, 5, 7, 3, 4), (3, 15, 15, 4, 32), (2, 100, 53, 2, 9), (1, 1, 1, 1, 1))  # B T S N C


def in_heads(bases: Sequence[Tensor], mask: Tensor | None, causal: bool) -> Tensor:
    """Attention by torch, in as few words as there are."""
    queries, keys, values = (one.transpose(1, 2) for base in bases for one in base.unbind(2))  # (B, N, T, C)
    scores = queries @ keys.transpose(2, 3) / queries.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    if causal:
        T, S = scores.shape[2:]
        scores = scores.masked_fill(~torch.ones(T, S, dtype=torch.bool).tril(S - T), -torch.inf)
    return (scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sizes", HEADS)
def test_attention_in_heads_equals_torch(
    sizes: tuple[int, ...], masked: bool, causal: bool, dtype: torch.dtype, threads: int
) -> None:
    B, T, S, N, C = sizes
    draw = drawn(9, dtype)
    mask = lengths_mask(B, S) if masked else None
    if causal:
        T = min(T, S)  # fewer queries are the last ones
    forms = [
        [draw(B, T, 1, N, C), draw(B, S, 1, N, C), draw(B, S, 1, N, C)],
        [draw(B, T, 1, N, C), draw(B, S, 2, N, C)],
    ]
    if T == S:
        forms.append([draw(B, T, 3, N, C)])
    for bases in forms:
        ways = (
            lambda bases=bases: [in_heads(bases, mask, causal)],
            lambda bases=bases: [heads.attend(bases, mask, causal=causal)],
        )
        found = differences(ways, bases)
        assert max(found) < BOUNDS[dtype], found


def test_heads_may_lie_apart_in_any_way() -> None:
    draw = drawn(10, torch.float64)
    queries, keys, values = draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 6, 5, 3)
    bases = [
        queries.transpose(1, 2).unsqueeze(2),
        keys.transpose(1, 2).unsqueeze(2),
        values.transpose(2, 3).unsqueeze(2),
    ]
    ways = (lambda: [in_heads(bases, None, False)], lambda: [heads.attend(bases, None)])
    found = differences(ways, [queries, keys, values])
    assert max(found) < BOUNDS[torch.float64], found


def test_one_source_for_many_queries_and_none_at_all_are_left_to_torch() -> None:
    draw = drawn(12, torch.float32)
    queries, source = draw(4, 5, 1, 2, 8), draw(4, 6, 2, 2, 8)
    assert heads.fits(0.0, queries, source)
    assert not heads.fits(0.0, queries, source[:1])
    assert not heads.fits(0.0, queries[:, :0], source)


def test_the_gradients_of_heads_agree_with_finite_differences() -> None:
    draw = drawn(11, torch.float64)
    mask = lengths_mask(2, 3)
    assert torch.autograd.gradcheck(lambda base: heads.attend([base], mask, causal=True), (draw(2, 3, 3, 2, 5),))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("V", [2, 5, 8, 33])
def test_cross_entropy_in_place_equals_torch(V: int, smoothing: float, dtype: torch.dtype, threads: int) -> None:
    logits = drawn(7, dtype)(11, V)
    targets = torch.arange(11) % V
    targets[3] = targets[10] = -1

    def by_torch() -> list[Tensor]:
        loss = functional.cross_entropy(
            10 * logits, targets, ignore_index=-1, label_smoothing=smoothing, reduction="sum"
        )
        return [loss * 0.25]

    def by_kernel() -> list[Tensor]:
        return [functions.cross_entropy(10 * logits, targets, ignored=-1, smoothing=smoothing, scale=0.25)]

    assert max(differences([by_torch, by_kernel], [logits])) < BOUNDS[dtype]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_logit_that_is_not_finite_shows_in_the_loss(bad: float) -> None:
    logits = torch.zeros(3, 20)
    logits[1, 17] = bad
    assert not functions.cross_entropy(logits, torch.tensor([1, 2, 3]), ignored=-1, smoothing=0.0, scale=1.0).isfinite()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", CELL_NAMES)
def test_gradients_agree_with_finite_differences(name: str, score: str) -> None:
    draw = drawn(8, torch.float64)
    B, T, S, H, C = 2, 3, 4, 3, 2
    A = H if score == "dot" else 5
    cell, recurrence = some_cell(name, H, torch.float64)
    projection, attended = question(score, draw, A, H), source(draw, B, S, A, C)
    W, start, shares = draw(cell.gates * H, C), draw(B, cell.state_size), draw(B, T, cell.gates * H)
    W_feed, W_combine, feed = draw(cell.gates * H, H), draw(H, C + H), draw(B, H)

    def attends_before(shares: Tensor, start: Tensor, W: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        found = before(recurrence, W, projection, shares, start, AttendedSource(keys, values, attended.mask))
        return found.outputs, found.contexts, found.weights, found.final

    def attends_after(
        shares: Tensor, start: Tensor, W_feed: Tensor, W_combine: Tensor, feed: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, ...]:
        source = AttendedSource(keys, values, attended.mask)
        found = after(recurrence, [], 9, W_feed, W_combine, projection, shares, start.unsqueeze(1), feed, source)
        return found.attentional, found.weights, found.finals

    assert torch.autograd.gradcheck(attends_before, (shares, start, W, attended.keys, attended.values))
    given = (shares, start, W_feed, W_combine, feed, attended.keys, attended.values)
    assert torch.autograd.gradcheck(attends_after, given)


@pytest.mark.parametrize("name", CELL_NAMES)
def test_the_gradients_of_a_cell_agree_with_finite_differences(name: str) -> None:
    draw = drawn(10, torch.float64)
    cell, recurrence = some_cell(name, 3, torch.float64)
    shares, start, mask = draw(2, 4, cell.gates * 3), draw(2, cell.state_size), lengths_mask(2, 4)

    def swept(shares: Tensor, start: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        changed = Recurrence(recurrence.kind, U, recurrence.U_gates)
        return functions.recurrent(changed, shares, mask, start, backwards=True)

    assert torch.autograd.gradcheck(swept, (shares, start, recurrence.U))


def test_the_gradients_of_score_and_loss_agree_with_finite_differences() -> None:
    draw = drawn(11, torch.float64)
    assert torch.autograd.gradcheck(functions.additive_scores, (draw(2, 3, 5), draw(2, 4, 5), draw(5)))
    targets = torch.tensor([0, 2, -1, 4])

    def loss(logits: Tensor) -> Tensor:
        return functions.cross_entropy(logits * 1, targets, ignored=-1, smoothing=0.1, scale=0.5)  # a copy to use up

    assert torch.autograd.gradcheck(loss, draw(4, 5))


def test_dropout_drops_as_often_as_told_and_scales_the_rest(dtype: torch.dtype, threads: int) -> None:
    for probability in (0.1, 0.5, 0.9):
        torch.manual_seed(1)
        x = torch.ones(400, 1001, dtype=dtype, requires_grad=True)
        y = functions.dropout(x, probability)
        kept = y != 0
        assert kept.double().mean().item() == pytest.approx(1 - probability, abs=0.003)
        assert y[kept].unique().item() == pytest.approx(1 / (1 - probability), rel=1e-6)
        y.sum().backward()
        torch.testing.assert_close(x.grad, y.detach())  # the same were dropped


def test_dropout_draws_no_pattern() -> None:
    torch.manual_seed(2)
    kept = (functions.dropout(torch.ones(256, 4096), 0.5) != 0).double() - 0.5
    for apart in (1, 2, 7, 8, 64, 1024):
        assert abs((kept[:, apart:] * kept[:, :-apart]).mean().item()) < 2e-3  # neighbors in a row
    assert abs((kept[1:] * kept[:-1]).mean().item()) < 2e-3  # and below each other
    assert kept.mean(dim=0).abs().max().item() < 0.2
    again = (functions.dropout(torch.ones(256, 4096), 0.5) != 0).double() - 0.5
    assert abs((kept * again).mean().item()) < 2e-3  # another seed, other places


def test_threads_and_instruction_sets_draw_the_same_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, count in itertools.product(("avx2", "portable"), (1, 2)):
        monkeypatch.setenv("REGARDE_SIMD", name)
        library.simd.cache_clear()
        torch.set_num_threads(count)
        torch.manual_seed(3)
        found.append(functions.dropout(torch.ones(77, 13), 0.3))
    torch.set_num_threads(1)
    library.simd.cache_clear()
    assert all(torch.equal(one, found[0]) for one in found)


def test_a_batch_does_not_change_what_a_sentence_gets() -> None:
    _, recurrence = some_cell("gru", 24, torch.float32)
    draw = drawn(9, torch.float32)
    shares, start, mask = draw(13, 5, 72), draw(13, 24), lengths_mask(13, 5)
    together, _ = functions.recurrent(recurrence, shares, mask, start, backwards=False)
    for row in range(13):
        one = slice(row, row + 1)
        alone, _ = functions.recurrent(recurrence, shares[one], mask[one], start[one], backwards=False)
        assert torch.equal(alone[0], together[row])


def test_without_the_library_plain_torch_serves() -> None:
    assert functions.usable(torch.zeros(1))
    with library.switched_off():
        assert not functions.usable(torch.zeros(1))
    assert not functions.usable(torch.zeros(1, dtype=torch.bfloat16))
    assert not functions.usable(torch.zeros(1), torch.zeros(1, device="meta"))
