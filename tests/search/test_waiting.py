"""What a search reads back from its device, and what it allocates: counted on the CPU, treated as any other device."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regarde.data.batch import collate_source
from regarde.layers import growing
from regarde.models import BahdanauConfig, LuongConfig, Model, ModelConfig, SutskeverConfig
from regarde.models.copying import PointerConfig
from regarde.models.transformer import TransformerConfig
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search, beams, walk
from regarde.training.step import seeded

V = 12
SOURCES = [[4, 5, 6], [7], [8, 9, 10, 11, 4], [5, 5]]
RULES = Rules(max_ratio=0.0, max_extra=24)
MODELS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=3, hidden=4, maxout=3, init="torch"),
    "copying": BahdanauConfig(embedding=3, hidden=4, maxout=3, init="torch", copying=PointerConfig()),
    "luong": LuongConfig(embedding=3, hidden=4, layers=1, init="torch"),
    "sutskever": SutskeverConfig(embedding=3, hidden=4, layers=1, init="torch"),
    "transformer": TransformerConfig(size=8, layers=2, heads=2, feed_forward=10),
}
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "sampling": Sampling(rules=RULES, n_best=2),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "wide": Beam(size=9, n_best=9, alpha=0.0, rules=RULES),
    "early": Beam(size=3, n_best=2, early=True, rules=RULES),
    "pruning": Beam(size=3, n_best=2, prune=2.0, rules=RULES),
    "coverage": Beam(size=3, n_best=2, beta=0.5, rules=Rules(max_ratio=0.0, max_extra=24, min_length=3)),
}
READING = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::equal", "aten::is_nonzero"}


class Reads(TorchDispatchMode):
    """Counts what would wait for a device: numbers, masks as indices, and tensors that become arrays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()
        plain = {name: getattr(torch.Tensor, name) for name in ("cpu", "tolist", "numpy", "item")}
        for name in ("cpu", "tolist", "item"):
            monkeypatch.setattr(torch.Tensor, name, self._counted(name, plain[name]))

    def _counted(self, name: str, plain: Any) -> Any:
        def read(tensor: torch.Tensor, *given: Any) -> Any:
            self.count[name] += 1
            return plain(tensor, *given)

        return read

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.name().partition(".")[0]
        if name in READING or (name in ("aten::index", "aten::index_put_") and self._masks(args[1])):
            self.count[name] += 1
        return function(*args, **(kwargs or {}))

    def _masks(self, indices: Any) -> bool:
        return any(index is not None and index.dtype == torch.bool for index in indices)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    with seeded(2):
        made = MODELS[request.param].build(V, V)
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return made.eval()


@pytest.fixture(params=SEARCHES)
def search(request: pytest.FixtureRequest, model: Model) -> Search:
    if request.param == "coverage" and not model.decoder.attentions():
        pytest.skip("nothing to cover")
    return SEARCHES[request.param]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, the CPU is a device that one waits for."""
    for module in (walk, beams):
        monkeypatch.setattr(module, "steps_ahead", lambda device, left: min(left, walk.AHEAD))
    monkeypatch.setattr(growing, "buffered", lambda tensor: not torch.is_grad_enabled())
    return


@torch.no_grad()
def find(model: Model, search: Search, sources: list[list[int]] = SOURCES) -> list[list[Hypothesis]]:
    return search(model, model.encode(collate_source(sources)))


def test_what_is_found_does_not_depend_on_the_steps_computed_ahead(
    model: Model, search: Search, request: pytest.FixtureRequest
) -> None:
    expected = find(model, search)
    request.getfixturevalue("device")
    for ours, theirs in zip(find(model, search), expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.finished for one in ours] == [one.finished for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert one.token_scores == pytest.approx(other.token_scores, abs=1e-5)
            assert one.heads == pytest.approx(other.heads, abs=1e-5)
            assert (one.p_gen is None) == (other.p_gen is None)
            if one.p_gen is not None:
                assert one.p_gen == pytest.approx(other.p_gen, abs=1e-5)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_numbers_are_read_once_in_several_steps(
    model: Model, name: str, device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing at each step: another window of steps is another reading."""

    def reads(steps: int) -> int:
        rules = Rules(max_ratio=0.0, max_extra=steps, min_length=steps)  # none ends before
        chosen = Greedy(rules=rules) if name == "greedy" else Beam(size=3, n_best=3, rules=rules)
        with pytest.MonkeyPatch.context() as patched:
            counting = Reads(patched)
            with counting:
                found = find(model, chosen)
        assert {len(one.ids) for one in found[0]} == {steps}
        return counting.count.total()

    one, two, three = (reads(windows * walk.AHEAD) for windows in (1, 2, 3))
    assert two - one == three - two == 1


class Copies(TorchDispatchMode):
    """Counts the numbers that are copied into tensors with more rows."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        if function.name() == "aten::cat" and found.dim() >= 4:
            self.numbers += found.numel()
        if function.name() == "aten::copy_" and args[0].dim() >= 4:
            self.numbers += args[0].numel()
        return found


def test_what_grows_at_each_step_is_not_copied_at_each_step(model: Model, device: None) -> None:
    def copied(steps: int) -> int:
        with Copies() as copies:
            find(model, Greedy(rules=Rules(max_ratio=0.0, max_extra=steps, min_length=steps)))
        return copies.numbers

    if model.decoder.attentions():
        assert copied(96) < 3 * copied(48)  # twice as many steps; copied at each, four times as many numbers


def test_two_continuations_of_one_tensor_do_not_disturb_each_other(device: None) -> None:
    with torch.no_grad():
        start = growing.grown(growing.grown(torch.zeros(2, 0, 3), torch.ones(2, 1, 3), 1), torch.ones(2, 1, 3), 1)
        first = growing.grown(start, torch.full((2, 1, 3), 2.0), 1)
        second = growing.grown(start, torch.full((2, 1, 3), 3.0), 1)
    assert first[:, 2].unique().tolist() == [2.0]
    assert second[:, 2].unique().tolist() == [3.0]
    assert start.shape == (2, 2, 3)
    assert first.data_ptr() == start.data_ptr() != second.data_ptr()
