"""ONNX: two graphs of any model of texts, for programs that have neither torch nor our library.

Axes: B batch, S source, V vocabulary.

    encoder.onnx   source (B, S)                       -> memory.…, state.…                     once for each sentence
    step.onnx      previous (B,), memory.…, state.…    -> log_probabilities (B, V), next.…      once for each word

They are the stages of regarde.models.interface, traced by torch: memory and state are what `remember` and `start`
return, by the names of their fields, and `next.…` is the state after the word. It contains `past`, so the last step
returns the attention of all steps. A source is padded with PAD on the right. Batch, length and steps may be any number.

Decoders have no loop here, because a step is one word. The cells of an encoder become a loop of ONNX (layers/cells.py).
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import onnx
import onnxscript  # noqa: F401  # torch.onnx needs it
import torch
from torch import Tensor, nn

from regarde.config import Table, as_table
from regarde.data.batch import Batched, Source
from regarde.interop.formats import OurModel
from regarde.models.interface import Encoding, Model, State
from regarde.search.settings import Rules
from regarde.text.tokenizers import BOS, CONTROLS, EOS, PAD, UNK

OPSET = 20
ENCODER, STEP, CONFIG = "encoder.onnx", "step.onnx", "config.json"
LARGEST = 2**31 - 2**24  # bytes of one file
TRACED = {"batch": 3, "source": 7, "steps": 5}  # sizes that are traced: none equal, and neither 0 nor 1
OTHER = {"batch": 4, "source": 8, "steps": 0}  # sizes to compare them with; what has a window of steps begins empty
Axes = dict[int, str]
"""The axes of a tensor that may have any size, by their place."""


def unfit(model: OurModel) -> str:
    """What two graphs cannot hold."""
    if model.blueprint.text.source.kind == "spelled":
        return "text.source.kind = spelled: each word has characters of its own"
    if model.model.decoder.best(encoded(model.model, torch.tensor([[len(CONTROLS), EOS]]))):
        return "an answer that is the likeliest as a whole, which no search word by word finds"
    size = sum(parameter.nbytes for parameter in model.model.parameters())
    return f"{size:,} bytes of weights in one file of at most {LARGEST:,}" if size > LARGEST else ""


def export(model: OurModel, folder: Path) -> list[str]:
    """Write both graphs, and beside them what a search needs: names, control tokens, limits, tokenizers."""
    traced = model.model
    with torch.no_grad(), _quiet():
        stages = Stages.of(traced, TRACED)
        names, tensors, axes = stages.names(), stages.tensors(), stages.free_axes(traced)
        after = {f"next.{name}": axes[names.index(f"state.{name}")] for name in stages.state.names()}
        _write(
            folder / ENCODER,
            EncoderGraph(traced),
            Traced(names[:1], tensors[:1], axes[:1], {name: {} for name in names[2:]}),
        )
        traced_step = Traced(names[1:], tensors[1:], axes[1:], {"log_probabilities": {}, **after})
        _write(folder / STEP, StepGraph(traced, stages, model.blueprint.search.rules), traced_step)
    described = json.dumps(_described(model, names), indent=2, ensure_ascii=False)
    (folder / CONFIG).write_text(f"{described}\n", encoding="utf-8")
    for name in model.tokenizers:
        shutil.copyfile(model.folder / name, folder / name)
    return []


@dataclass(frozen=True, eq=False)
class Stages(Batched):
    """What goes into the graphs, of some sentences after some steps."""

    source: Tensor  # (B, S)
    previous: Tensor  # (B,)
    memory: Batched
    state: State

    @classmethod
    def of(cls, model: Model, sizes: Mapping[str, int]) -> Self:
        """Those of sentences that repeat the first symbol of the vocabulary."""
        source = torch.full((sizes["batch"], sizes["source"]), len(CONTROLS))
        source[:, -1] = EOS
        encoding, decoder = encoded(model, source), model.decoder
        previous, memory, state = source[:, 0].clone(), decoder.remember(encoding), decoder.start(encoding)
        for _ in range(sizes["steps"]):
            _, state = decoder.step(previous, state, memory)
        return cls(source, previous, memory, state)

    def free_axes(self, model: Model) -> list[Axes]:
        """Of each tensor, the axes that grow with the number of sentences, of source tokens or of steps."""
        found: list[Axes] = [{} for _ in self.tensors()]
        for name, size in OTHER.items():
            others = Stages.of(model, {**TRACED, name: size}).tensors()
            for axes, one, other in zip(found, self.tensors(), others, strict=True):
                axes |= {axis: name for axis in range(one.dim()) if one.shape[axis] != other.shape[axis]}
        return found


def encoded(model: Model, source: Tensor) -> Encoding:
    return model.encode(Source(ids=source, mask=source.ne(PAD)))


class EncoderGraph(nn.Module):
    """source -> the tensors of memory, then those of the first state."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, given: Sequence[Tensor]) -> list[Tensor]:
        encoding, decoder = encoded(self.model, given[0]), self.model.decoder
        return [*decoder.remember(encoding).tensors(), *decoder.start(encoding).tensors()]


class StepGraph(nn.Module):
    """The word before, memory and state -> log-probabilities of the next word, and the state after it."""

    def __init__(self, model: Model, stages: Stages, rules: Rules) -> None:
        super().__init__()
        self.decoder = model.decoder
        self.memory, self.state = stages.memory, stages.state
        self.barred = [PAD, BOS] if rules.allow_unknown else [PAD, BOS, UNK]

    def forward(self, given: Sequence[Tensor]) -> list[Tensor]:
        ends = 1 + len(self.memory.tensors())
        memory, state = self.memory.holding(given[1:ends]), self.state.holding(given[ends:])
        logits, after = self.decoder.step(given[0], state, memory)
        scores, ids = logits.log_softmax(dim=-1), torch.arange(logits.shape[1])
        for barred in self.barred:
            scores = scores.masked_fill(ids == barred, -torch.inf)
        return [scores, *(tensor.clone() for tensor in after.tensors())]  # an output must not be an input too


@dataclass(frozen=True, eq=False)
class Traced:
    """The inputs of a graph, an example of them, and the names of its outputs."""

    names: Sequence[str]
    tensors: Sequence[Tensor]
    axes: Sequence[Axes]
    outputs: Mapping[str, Axes]  # by name, and which axes are free at least


def _write(path: Path, graph: nn.Module, traced: Traced) -> None:
    """Trace a graph, check it, and write it as one file."""
    shapes = [dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in traced.axes]
    # strict, because otherwise len() of a tensor is a constant of the graph
    program = torch.export.export(
        graph, ([tensor.clone() for tensor in traced.tensors],), dynamic_shapes=(shapes,), strict=True
    )
    made = torch.onnx.export(
        program, input_names=list(traced.names), output_names=list(traced.outputs), opset_version=OPSET, verbose=False
    )
    assert made is not None, "torch.onnx.export writes no file itself"
    found = made.model_proto
    _name_axes(found.graph, traced)
    onnx.checker.check_model(found, full_check=True)
    path.write_bytes(found.SerializeToString())


def _name_axes(graph: onnx.GraphProto, traced: Traced) -> None:
    """Call free axes batch, source and steps, where torch numbers them."""
    called: dict[str, str] = {}
    for value, axes in zip(graph.input, traced.axes, strict=True):
        for axis, name in axes.items():
            called[value.type.tensor_type.shape.dim[axis].dim_param] = name
    for value, axes in zip(graph.output, traced.outputs.values(), strict=True):
        for axis, name in axes.items():
            dim = value.type.tensor_type.shape.dim[axis]
            dim.dim_param = dim.dim_param or f"{name}_kept"  # a window is full where it was traced
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = re.sub(r"\w+", lambda word: called.get(word[0], word[0]), dim.dim_param)


def _described(model: OurModel, names: Sequence[str]) -> Table:
    """config.json"""
    settings, files = model.blueprint, model.tokenizers
    text = as_table(settings.text)
    for side in ("source", "target"):
        text[side] = {**text[side], "file": next(name for name in files if name.startswith(side))}
    return {
        "format": "regarde-onnx",
        "opset": OPSET,
        "task": settings.task.kind,
        "tokens": {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS},
        "rules": asdict(settings.search.rules),
        "memory": [name for name in names if name.startswith("memory.")],
        "state": [name for name in names if name.startswith("state.")],
        "attention": {"state": "state.past", "offset": model.model.decoder.offset},
        "text": text,
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch tells its own developers."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
