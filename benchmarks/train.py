"""How close training comes to the machine's limit, and what it costs in memory.

    python benchmarks/train.py                     # forward and backward of one batch, against the limit
    python benchmarks/train.py --data DIR          # whole steps on real text: DIR/train.de, DIR/train.en, or .gz
    python benchmarks/train.py --lengths FILE.svg  # time per token and peak memory at lengths 50 to 800
    python benchmarks/train.py --threads 2         # with more threads than one
    python benchmarks/train.py --scaling           # one thread and two, in turns

The limit is the time that the matrix products of a step would take at the speed of one large product, measured in the
same run, in turns with the steps and over about as long a time: what is short finds a quiet moment more easily than
what is long, and would be too high a bar. Products are counted by torch on the plain path, masks on, dropout off. Rows:

    naive    all in the step loop: keys, embeddings and vocabulary word by word
    torch    plain torch as the project has it: what can be hoisted out of the loop is
    native   with the kernels of regarde.native

Language models, classifiers and taggers have a table of their own, without the naive way.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig, GeneralConfig
from regarde.data.batch import Batch, collate
from regarde.models import ModelConfig
from regarde.models.bahdanau import BahdanauConfig
from regarde.models.classifier import ClassifierConfig
from regarde.models.encoders import BidirectionalConfig
from regarde.models.interface import Model
from regarde.models.language import AttentiveLanguageConfig, RecurrentLanguageConfig, TransformerLanguageConfig
from regarde.models.luong import LuongConfig
from regarde.models.sutskever import SutskeverConfig
from regarde.models.tagger import TaggerConfig
from regarde.models.transformer import TransformerConfig
from regarde.native import library
from regarde.training.loss import word_loss
from regarde.training.prepare import prepare
from regarde.training.prepared import epoch_batches
from regarde.training.presets import presets
from regarde.training.recipe import Adam, TrainingConfig, parse
from regarde.training.step import NumberedBatch, Stepper

VOCABULARY = 8000
SMOOTHING = 0.1


def additive_lstm(hidden: int) -> ModelConfig:
    """RNNsearch's way with LSTMs: the yardstick of the table."""
    return replace(rnnsearch(hidden), cell="lstm")


def rnnsearch(hidden: int) -> BahdanauConfig:
    """The paper's own: its GRU, additive score, maxout."""
    return BahdanauConfig(
        embedding=hidden // 2,
        hidden=hidden,
        maxout=hidden,
        encoder=BidirectionalConfig(hidden=hidden // 2),
        attention=GlobalConfig(score=AdditiveConfig(size=hidden)),
        init="torch",
    )


def luong(hidden: int, *, feeding: bool) -> LuongConfig:
    return LuongConfig(
        embedding=hidden // 2,
        hidden=hidden,
        layers=1,
        encoder=BidirectionalConfig(hidden=hidden // 2),
        attention=GlobalConfig(score=GeneralConfig()),
        feeding=feeding,
        dropout=0.0,
        init="torch",
    )


def transformer(hidden: int) -> TransformerConfig:
    size = hidden // 2
    return TransformerConfig(size=size, layers=3, heads=4, feed_forward=4 * size, dropout=0.0, tying="two-way")


MODELS: dict[str, Callable[[int], ModelConfig]] = {
    "additive LSTM": additive_lstm,
    "RNNsearch": rnnsearch,
    "Luong": lambda hidden: luong(hidden, feeding=False),
    "Luong, feeding": lambda hidden: luong(hidden, feeding=True),
    "Transformer 3+3": transformer,
}


def attentive(hidden: int, parts: int, window: int) -> AttentiveLanguageConfig:
    """Each part of a state, and what reads it, is half the hidden size."""
    size = hidden // 2
    return AttentiveLanguageConfig(
        embedding=size, hidden=parts * size, parts=parts, window=window, score=AdditiveConfig(size=size), tied=True
    )


def tagger(hidden: int, *, crf: bool) -> TaggerConfig:
    """Words without their characters, as in decode.py: ids drawn at random spell none."""
    return TaggerConfig(embedding=hidden // 2, hidden=hidden // 2, spelling=0, crf=crf, dropout=0.0)


LABELS, TAGS = 6 + 4, 18 + 4  # controls included


def modeled(length: int) -> Batch:
    texts = some_batch(64, length)
    return replace(texts, source=collate([[]] * 64, [[]] * 64).source)


def classified(length: int) -> Batch:
    labels = [[4 + row % (LABELS - 4)] for row in range(64)]
    return replace(collate([[]] * 64, labels), source=some_batch(64, length).source)


def tagged(length: int) -> Batch:
    source = some_batch(64, length).source
    tags = [[4 + (row + word) % (TAGS - 4) for word in range(n - 1)] for row, n in enumerate(source.lengths.tolist())]
    return replace(collate([[]] * 64, tags), source=source)


@dataclass(frozen=True)
class OtherTask:
    """A model of another task than translation, and a batch of 64 for it."""

    build: Callable[[int], ModelConfig]
    batch: Callable[[int], Batch]
    target_vocabulary: int = VOCABULARY
    length: int = 35


OTHER_TASKS = {
    "LSTM LM": OtherTask(
        lambda hidden: RecurrentLanguageConfig(
            embedding=hidden, hidden=hidden, layers=2, tied=True, dropout=0.0, init="torch"
        ),
        modeled,
    ),
    "attentive LM, 3 parts, window 5": OtherTask(lambda hidden: attentive(hidden, 3, 5), modeled),
    "attentive LM, 1 part, window 15": OtherTask(lambda hidden: attentive(hidden, 1, 15), modeled),
    "Transformer LM, 3 layers": OtherTask(
        lambda hidden: TransformerLanguageConfig(
            size=hidden // 2, layers=3, heads=4, feed_forward=2 * hidden, dropout=0.0, self_attention_dropout=0.0
        ),
        modeled,
    ),
    "classifier, attention": OtherTask(
        lambda hidden: ClassifierConfig(embedding=hidden // 2, hidden=hidden // 2, size=hidden // 2, cell="lstm"),
        classified,
        LABELS,
    ),
    "tagger, softmax": OtherTask(lambda hidden: tagger(hidden, crf=False), tagged, TAGS),
    "tagger, CRF": OtherTask(lambda hidden: tagger(hidden, crf=True), tagged, TAGS),
}


def some_batch(pairs: int, length: int, seed: int = 1) -> Batch:
    """Sentences of nearly one length, as buckets have them: some padding, so that masks have something to do."""
    generator = torch.Generator().manual_seed(seed)

    def side() -> list[list[int]]:
        shortest = max(1, length - 3)
        lengths = torch.randint(shortest, length, (pairs,), generator=generator)
        lengths[0] = length - 1  # and EOS
        return [torch.randint(4, VOCABULARY, (int(n),), generator=generator).tolist() for n in lengths]

    return collate(side(), side())


def plain(model: Model, batch: Batch) -> None:
    tokens = int(batch.target_mask.sum())
    word_loss(model(batch).logits, batch.target_ids, smoothing=SMOOTHING, scale=1 / tokens).backward()


def naive(model: Model, batch: Batch) -> Tensor:
    """Word by word, and everything in the loop."""
    tokens = int(batch.target_mask.sum())
    encoding = model.encode(batch.source)
    state = model.decoder.start(encoding)
    losses: list[Tensor] = []
    for previous, target in zip(batch.previous.unbind(1), batch.target_ids.unbind(1), strict=True):
        logits, state = model.decoder.step(previous, state, model.decoder.remember(encoding))
        losses.append(
            torch.nn.functional.cross_entropy(
                logits, target, ignore_index=0, label_smoothing=SMOOTHING, reduction="sum"
            )
        )
    loss = torch.stack(losses).sum() / tokens
    loss.backward()
    return loss.detach()


def fast(model: Model, batch: Batch) -> None:
    tokens = int(batch.target_mask.sum())
    word_loss(model.logits(batch), batch.target_ids, smoothing=SMOOTHING, scale=1 / tokens).backward()


WAYS = {"naive": (naive, True), "torch": (plain, True), "native": (fast, False)}


def work(model: Model, batch: Batch) -> float:
    """Floating point operations of the products, forward and backward."""
    with library.switched_off(), FlopCounterMode(display=False) as counter:
        plain(model, batch)
    return float(counter.get_total_flops())


SIZE = 1024
ONE_PRODUCT = 2.0 * SIZE**3  # floating point operations


def square(times: int = 4) -> Callable[[], None]:
    """One large product, so many times."""
    a, b, c = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE), torch.empty(SIZE, SIZE)

    def multiply() -> None:
        for _ in range(times):
            torch.mm(a, b, out=c)

    return multiply


def in_turns(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The shortest time of each, in turns: what else the machine does can only add to it."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for step in range(rounds + 2):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if step >= 2:
                times[name].append(time.perf_counter() - began)
    return {name: min(found) for name, found in times.items()}


Way = Callable[[Model, Batch], Any]


def measured(
    model: Model, batch: Batch, chosen: Mapping[str, tuple[Way, bool]], rounds: int
) -> tuple[dict[str, float], float]:
    """The seconds that each way takes, and the limit."""

    def step(way: Way, off: bool) -> None:
        for parameter in model.parameters():
            parameter.grad = None
        with library.switched_off() if off else nullcontext():
            way(model, batch)

    flops = work(model, batch)
    ways = {name: (lambda f=f, off=off: step(f, off)) for name, (f, off) in chosen.items()}
    times = max(1, round(flops / ONE_PRODUCT))
    found = in_turns({"square": square(times), **ways}, rounds)
    return found, flops / (times * ONE_PRODUCT) * found["square"]


def other_tasks(rounds: int, chosen: str) -> None:
    print("\n| model, batch 64 | hidden | length | limit, ms | torch | native | native / torch | tokens/s |")
    print("|---|---|---|---|---|---|---|---|")
    ways = {name: way for name, way in WAYS.items() if name != "naive"}
    for name, task in OTHER_TASKS.items():
        if chosen and chosen not in name:
            continue
        for hidden in (512, 128):
            torch.manual_seed(0)
            model, batch = task.build(hidden).build(VOCABULARY, task.target_vocabulary), task.batch(task.length)
            found, limit = measured(model, batch, ways, rounds)
            shares = " | ".join(f"{limit / found[way]:.0%}" for way in ways)
            tokens = max(int(batch.target_mask.sum()), int(batch.source.mask.sum())) / found["native"]
            print(
                f"| {name} | {hidden} | {task.length} | {limit * 1e3:.0f} | {shares} "
                f"| {found['torch'] / found['native']:.2f} | {tokens:,.0f} |",
                flush=True,
            )


def against_the_limit(rounds: int, chosen: str) -> None:
    print("| model | batch | hidden | limit, ms | naive | torch | native | native / naive | target tokens/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, build in MODELS.items():
        if chosen and chosen not in name:
            continue
        for pairs, hidden in ((64, 512), (16, 512), (64, 128)):
            torch.manual_seed(0)
            model = build(hidden).build(VOCABULARY, VOCABULARY)
            batch = some_batch(pairs, 15)
            found, limit = measured(model, batch, WAYS, rounds)
            shares = " | ".join(f"{limit / found[way]:.0%}" for way in WAYS)
            tokens = int(batch.target_mask.sum()) / found["native"]
            ratio = found["naive"] / found["native"]
            print(
                f"| {name} | {pairs} | {hidden} | {limit * 1e3:.0f} | {shares} | {ratio:.2f} | {tokens:,.0f} |",
                flush=True,
            )


def scaling(rounds: int, chosen: str) -> None:
    """One thread and two in turns, beside what a large product gains from the second."""
    print("| model | one thread, ms | two threads, ms | gain | gain of a large product |\n|---|---|---|---|---|")
    multiply = square()
    for name, build in MODELS.items():
        if chosen and chosen not in name:
            continue
        torch.manual_seed(0)
        model, batch = build(512).build(VOCABULARY, VOCABULARY), some_batch(64, 15)

        def step(threads: int, model: Model = model, batch: Batch = batch) -> None:
            torch.set_num_threads(threads)
            for parameter in model.parameters():
                parameter.grad = None
            fast(model, batch)

        def product(threads: int) -> None:
            torch.set_num_threads(threads)
            multiply()

        ways = {f"step {n}": (lambda n=n: step(n)) for n in (1, 2)} | {
            f"mm {n}": (lambda n=n: product(n)) for n in (1, 2)
        }
        found = in_turns(ways, rounds)
        one, two = found["step 1"], found["step 2"]
        print(
            f"| {name} | {one * 1e3:.0f} | {two * 1e3:.0f} | {one / two:.2f} | {found['mm 1'] / found['mm 2']:.2f} |",
            flush=True,
        )


@dataclass(frozen=True)
class Real:
    """Whole steps on real text."""

    tokens_per_second: float
    share_of_limit: float
    useful: float
    peak_megabytes: float


NAIVE = "RNNsearch, naive"


def in_real(name: str) -> ModelConfig:
    """A model of the table above, with dropout; or a small preset as it is."""
    if name in presets():
        return parse(presets()[name].recipe).model
    config = MODELS[name.removesuffix(", naive")](512)
    return replace(config, dropout=0.1 if name.startswith("Transformer") else 0.2)


class NaiveStepper(Stepper):
    """An update in which everything is done in the step loop."""

    def _backward(self, part: NumberedBatch, step: int, tokens: int) -> Tensor:
        with library.switched_off():
            return naive(self.model, part.batch)


def on_real_text(folder: Path, name: str, pairs: int, steps: int) -> Real:
    """Loading, dropout, clipping and Adam included."""
    config = in_real(name)
    with tempfile.TemporaryDirectory() as place:
        files = {}
        for side, language in (("source", "de"), ("target", "en")):
            files[side] = str(Path(place) / f"train.{language}")
            packed = folder / f"train.{language}.gz"
            text = (
                gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / f"train.{language}").read_bytes()
            )
            Path(files[side]).write_bytes(text)
        scheme = {"kind": "sentencepiece", "size": VOCABULARY, "model": "bpe"}
        prepared = prepare(
            {
                "model": {"kind": "bahdanau"},
                "data": files,
                "text": {"source": scheme, "target": scheme},
                "training": {"batch_pairs": pairs, "batch_tokens": 0, "steps": 1000},
            }
        )
    torch.manual_seed(0)
    model = config.build(len(prepared.text.source), len(prepared.text.target))
    training = TrainingConfig(optimizer=Adam(), label_smoothing=SMOOTHING, clip=5.0)
    stepper = (NaiveStepper if name == NAIVE else Stepper)(model, training, 10_000)
    order = list(epoch_batches(prepared.recipe, prepared.train, 0))
    train = prepared.train
    batches = order[: steps + 5]
    computed = sum(
        len(rows) * int(side.lengths[rows].max()) for rows in order for side in (train.sources, train.targets)
    )
    useful = sum(int(side.lengths[rows].sum()) for rows in order for side in (train.sources, train.targets))
    multiply = square()
    flops, spent, tokens, speeds = 0.0, 0.0, 0, []
    for number, rows in enumerate(batches):
        began = time.perf_counter()
        batch = train.batch(rows.tolist())
        stepper(batch, number)
        took = time.perf_counter() - began
        if number >= 5:
            spent += took
            tokens += int(batch.target_mask.sum())
            began = time.perf_counter()
            multiply()
            speeds.append(4 * ONE_PRODUCT / (time.perf_counter() - began))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for rows in batches[5:]:  # counted apart: counting costs memory and time
        flops += work(model, train.batch(rows.tolist()))
    return Real(tokens / spent, flops / max(speeds) / spent, useful / computed, peak)


def real(folder: Path, pairs: int, steps: int, threads: int) -> None:
    """Each model in a process of its own, so that the peak of memory is its own."""
    print("| model | target tokens/s | of the limit | useful positions | peak memory, MB |\n|---|---|---|---|---|")
    for name in (NAIVE, *MODELS, *(preset for preset in presets() if preset.endswith("-small"))):
        sizes = ("--pairs", str(pairs), "--rounds", str(steps), "--threads", str(threads))
        found = Real(**alone("--data", str(folder), "--one", name, *sizes))
        print(
            f"| {name} | {found.tokens_per_second:,.0f} | {found.share_of_limit:.0%} | {found.useful:.1%} "
            f"| {found.peak_megabytes:,.0f} |",
            flush=True,
        )


LENGTHS = (50, 100, 200, 400, 800)
PAIRS_BY_LENGTH = 8


@dataclass(frozen=True)
class ByLength:
    """A step on sentences of one length."""

    microseconds: float  # per target token
    megabytes: float  # more than before, at the peak


def at_length(name: str, length: int, rounds: int) -> ByLength:
    torch.manual_seed(0)
    deep = SutskeverConfig(embedding=64, hidden=128, layers=1, init="torch")
    model = (deep if name == "no attention" else MODELS[name](128)).build(VOCABULARY, 500)
    batch = some_batch(PAIRS_BY_LENGTH, length)
    batch = replace(batch, previous=batch.previous % 500, target_ids=batch.target_ids % 500)
    fast(model, collate([[5, 6]], [[7, 8]]))  # what is loaded once is not counted
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = in_turns({"step": lambda: fast(model, batch)}, rounds)["step"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return ByLength(seconds / int(batch.target_mask.sum()) * 1e6, (peak - before) / 1024)


def by_length(rounds: int, out: Path) -> None:
    """Each length in a process of its own; a table, and the same as a picture."""
    names = ["no attention", *MODELS]
    found: dict[str, dict[int, ByLength]] = {name: {} for name in names}
    print("| model | length | microseconds per target token | memory of a step, MB |\n|---|---|---|---|")
    for name, length in itertools.product(names, LENGTHS):
        one = alone("--one", name, "--length", str(length), "--rounds", str(rounds))
        found[name][length] = ByLength(**one)
        print(f"| {name} | {length} | {one['microseconds']:.0f} | {one['megabytes']:,.0f} |", flush=True)
    figure = Figure(figsize=(9, 4), layout="constrained")
    times, memory = figure.subplots(1, 2)
    for name, points in found.items():
        times.plot(LENGTHS, [point.microseconds for point in points.values()], marker="o", markersize=3, label=name)
        memory.plot(LENGTHS, [point.megabytes for point in points.values()], marker="o", markersize=3, label=name)
    whole = [PAIRS_BY_LENGTH * length**2 * 128 * 4 / 2**20 for length in LENGTHS]
    memory.plot(LENGTHS, whole, "k--", linewidth=1, label="one tensor of batch x T x S x size")
    times.set(ylim=(0, None), title="microseconds per target token")
    memory.set(xscale="log", yscale="log", title="memory of a step, MB")
    memory.set_yticks([10, 100, 1000], labels=["10", "100", "1,000"])
    for axes in (times, memory):
        axes.set(xlabel="length of source and target")
        axes.set_xticks(LENGTHS, labels=[str(length) for length in LENGTHS])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    memory.legend(fontsize=7, frameon=False)
    figure.savefig(out)


def alone(*arguments: str) -> dict[str, float]:
    """What this file prints in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--lengths", type=Path, metavar="FILE.svg")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--model", default="")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    library.keep_memory()
    if given.length:
        print(json.dumps(vars(at_length(given.one, given.length, given.rounds))))
    elif given.one:
        print(json.dumps(vars(on_real_text(given.data, given.one, given.pairs, given.rounds))))
    elif given.data:
        real(given.data, given.pairs, given.rounds, given.threads)
    elif given.scaling:
        scaling(given.rounds, given.model)
    elif given.lengths:
        by_length(given.rounds, given.lengths)
    else:
        print(f"kernels: {library.simd() if library.available() else 'none'}, threads: {given.threads}\n")
        against_the_limit(given.rounds, given.model)
        other_tasks(given.rounds, given.model)


if __name__ == "__main__":
    main()
