"""Translating beside others: the same sentences, the same weights or sizes, one core, in turns.

    python benchmarks/decode.py --models DIR --data DIR --train             # what is not there yet
    python benchmarks/decode.py --models DIR --data DIR --tools DIR         # the table
    python benchmarks/decode.py --models DIR --data DIR --tools DIR --same  # do all say the same in fp32?
    python benchmarks/decode.py --models DIR --data DIR --tools DIR --quality  # BLEU in fp32 and in bytes
    python benchmarks/decode.py --tasks --tools DIR                         # classifiers, taggers and language models
    python benchmarks/decode.py --large DIR --tools DIR                     # 6 + 6 layers, 60,000 words; made in DIR

Models are trained on DIR/train.de and train.en; DIR/test2016.de and .en are translated. The tools' DIR holds a virtual
environment for each: hf-env with ctranslate2 and transformers, ort-env with onnxruntime, onnx and safetensors, onmt-env
with OpenNMT-py. What is not installed is left out. For CTranslate2 our environment needs it too, to export.

    transformer   3 + 3 layers, size 256, 4 heads, feed-forward 1024
                  CTranslate2 decodes the same weights, each sentence to its end
    rnnsearch     embeddings 256, GRU encoder of 256 a direction, GRU decoder of 512, additive score
                  ONNX Runtime decodes the same weights greedily, 20 words a sentence
    luong         the same sizes with LSTM, general score, input feeding
                  OpenNMT-py decodes a model of the same sizes in fp32, 20 words a sentence

Batch 1 is one sentence after the other. Batch 32 is all sentences in one call, 32 of them (times the beam) at once:
others put like lengths together, our engine lets the next sentence in where one has ended. Rates are words (EOS is one)
and sentences per second of CPU time, medians of runs in turns; a ratio is that of words. Beside our bytes, torch and
OpenNMT-py compute in fp32: they have nothing smaller for these models.

The models of other tasks have weights drawn at random; texts are of 8 to 30 words. Torch answers with one forward pass,
of a batch of like lengths, in fp32, and its cells run by our kernels of training; a text is written word by word.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from decoders import large as large_model
from decoders.ours import Native, Torch
from decoders.protocol import EOS, Decoded, Decoding, Ids, Tool

import regarde
from regarde.interop import ctranslate2, formats
from regarde.text import Text

RECURRENT = [
    "model.embedding=256", "model.hidden=512", "model.encoder.kind=bidirectional", "model.encoder.hidden=256",
    "model.attention.kind=global", "model.dropout=0.2", "model.init=torch", "training.steps=700",
    "training.valid_every=350",
]  # fmt: skip
MODELS = {
    "transformer": [
        "model.kind=transformer", "model.size=256", "model.layers=3", "model.heads=4", "model.feed_forward=1024",
        "model.norm=pre", "model.dropout=0.1", "training.steps=1000", "training.valid_every=500",
    ],
    "rnnsearch": [
        "model.kind=bahdanau", *RECURRENT, "model.maxout=256", "model.attention.score.kind=additive",
        "model.attention.score.size=512",
    ],
    "luong": [
        "model.kind=luong", *RECURRENT, "model.layers=1", "model.footnote_14=false",
        "model.attention.score.kind=general",
    ],
}  # fmt: skip
PIECES = ["kind=sentencepiece", "size=8000", "model=bpe"]
TRAINING = [
    "source_language=de", "target_language=en", "text.shared=true", *(f"text.source.{one}" for one in PIECES),
    *(f"text.target.{one}" for one in PIECES), "training.batch_pairs=64", "training.label_smoothing=0.1",
    "training.valid_pairs=200", "training.metric=bleu", "training.optimizer.kind=adam",
    "training.optimizer.rate=1.5e-3", "training.schedule.kind=cosine", "training.schedule.warmup=150",
    "training.schedule.floor=0.02",
]  # fmt: skip
TOOLS = {
    "transformer": ("CTranslate2", "hf-env", "by_ctranslate2.py"),
    "rnnsearch": ("ONNX Runtime", "ort-env", "by_onnxruntime.py"),
    "luong": ("OpenNMT-py", "onmt-env", "by_opennmt.py"),
}
WORDS = {"transformer": 0, "rnnsearch": 20, "luong": 20}  # Decoding.words
SENTENCES = {1: 32, 32: 256}  # that are timed, by the batch
SLOW = {"torch": 4, "OpenNMT-py": 4}  # and these get every fourth of them
FLOORS = {  # what we mean to reach at least: tool, beam, batch, int8
    ("CTranslate2", 1, 1, False): 1.5, ("CTranslate2", 5, 1, False): 1.5,
    ("CTranslate2", 1, 32, False): 1.2, ("CTranslate2", 5, 32, False): 1.2,
    ("CTranslate2", 1, 1, True): 2.2, ("CTranslate2", 5, 1, True): 1.8,
    ("CTranslate2", 1, 32, True): 1.3, ("CTranslate2", 5, 32, True): 1.3,
    ("torch", 1, 1, True): 10, ("torch", 1, 32, True): 4, ("torch", 5, 32, True): 2.8,
    ("OpenNMT-py", 1, 1, True): 14, ("OpenNMT-py", 1, 32, True): 3.5, ("OpenNMT-py", 5, 32, True): 2.2,
}  # fmt: skip

Timed = Callable[[Sequence[Ids], Decoding], Decoded]


@dataclass(frozen=True)
class Where:
    """The folders."""

    models: Path
    data: Path
    tools: Path | None

    def tool(self, model: str) -> dict[str, Tool]:
        """The one that decodes this model, where it is installed."""
        name, environment, script = TOOLS[model]
        python = self.python(environment)
        folders = [self.models / model]
        if python and name == "CTranslate2":
            folders = [self.models / f"{model}-{kind}" for kind in ("ctranslate2", "ctranslate2-int8")]
            for folder, quantization in zip(folders, (None, "int8"), strict=True):
                if not folder.exists():
                    folder.mkdir()
                    ctranslate2.write(formats.read(self.models / model), folder, quantization)
        return {name: Tool(python, script, *map(str, folders))} if python else {}

    def python(self, environment: str) -> Path | None:
        """That of an environment, where there is one."""
        found = self.tools / environment / "bin" / "python" if self.tools else None
        return found if found and found.exists() else None


@dataclass(frozen=True)
class Test:
    """The sentences to translate, as a model reads them, and what they mean."""

    text: Text
    sources: list[list[int]]
    references: list[str]

    @classmethod
    def of(cls, where: Where, model: str) -> Test:
        text = regarde.load(where.models / model).text
        lines, references = (
            (where.data / f"test2016.{side}").read_text().removesuffix("\n").split("\n") for side in ("de", "en")
        )
        return cls(text, [text.source.encode(line) for line in lines], references)

    def say(self, ids: Ids) -> str:
        return self.text.target.decode([word for word in ids if word != EOS])


def works(words: int, only: str) -> Iterator[Decoding]:
    for int8, batch, beam in itertools.product((False, True), (1, 32), (1, 5)):
        decoding = Decoding(beam=beam, batch=batch, int8=int8, words=words)
        if set(only.split()) <= {search_name(decoding), f"batch{batch}", precision(decoding)}:
            yield decoding


def knows(name: str, decoding: Decoding) -> bool:
    return not (name == "ONNX Runtime" and decoding.beam > 1)


def search_name(decoding: Decoding) -> str:
    return "greedy" if decoding.beam == 1 else f"beam{decoding.beam}"


def precision(decoding: Decoding) -> str:
    return "int8" if decoding.int8 else "fp32"


def table(where: Where, models: Sequence[str], runs: int, words: int | None, only: str) -> None:
    head("model", "search", "batch", "precision", "ours: words/s", "sentences/s", "other", "words/s", "sentences/s",
         "ratio", "floor", "of all runs")  # fmt: skip
    for model in models:
        folder, test = where.models / model, Test.of(where, model)
        with ExitStack() as stack:
            tools = {name: stack.enter_context(tool) for name, tool in where.tool(model).items()}
            decoders: dict[str, Timed] = {"ours": Native(folder), **tools, "torch": Torch(folder)}
            for decoding in works(WORDS[model] if words is None else words, only):
                report(model, decoding, in_turns(decoders, test.sources[: SENTENCES[decoding.batch]], decoding, runs))


def in_turns(
    decoders: Mapping[str, Timed],
    sources: Sequence[Ids],
    decoding: Decoding,
    runs: int,
    slow: Mapping[str, int] = SLOW,
) -> dict[str, list[Decoded]]:
    chosen = {name: decoder for name, decoder in decoders.items() if knows(name, decoding)}
    for decoder in chosen.values():
        decoder(sources[:: max(1, len(sources) // 8)], decoding)  # what is made once does not count
    found: dict[str, list[Decoded]] = {name: [] for name in chosen}
    for _ in range(runs):
        for name, decoder in chosen.items():
            found[name].append(decoder(sources[:: slow.get(name, 1)], decoding))
    return found


def report(model: str, decoding: Decoding, found: Mapping[str, list[Decoded]]) -> None:
    ours = found["ours"]
    others = {name: theirs for name, theirs in found.items() if name != "ours"}
    for name, theirs in (others or {"nobody": ours}).items():
        ratio = middle(ours, words_per_second) / middle(theirs, words_per_second)
        each = [words_per_second(a) / words_per_second(b) for a, b in zip(ours, theirs, strict=True)]
        row(model, search_name(decoding), decoding.batch, precision(decoding),
            f"{middle(ours, words_per_second):,.0f}", f"{middle(ours, sentences_per_second):,.1f}", name,
            f"{middle(theirs, words_per_second):,.0f}", f"{middle(theirs, sentences_per_second):,.1f}",
            f"{ratio:.2f}", FLOORS.get((name, decoding.beam, decoding.batch, decoding.int8), ""),
            ", ".join(f"{one:.2f}" for one in each))  # fmt: skip


def tasks(where: Where, runs: int, only: str) -> None:
    """Classifiers and taggers beside torch and ONNX Runtime, language models beside torch."""
    from decoders import tasks

    head("model", "batch", "precision", "ours: texts/s", "words/s", "other", "texts/s", "ratio", "floor", "of all runs",
         "same answers")  # fmt: skip

    def compare(name: str, decoding: Decoding, decoders: Mapping[str, Timed], sources: Sequence[Ids]) -> None:
        found = in_turns(decoders, sources, decoding, runs, slow={})
        ours = found.pop("ours")
        for other, theirs in found.items():
            each = [a.seconds and b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True)]
            equal = sum(a == b for a, b in zip(ours[0].ids, theirs[0].ids, strict=True))
            floor = (10 if decoding.int8 else "") if decoding.words else 1
            ratio = middle(ours, sentences_per_second) / middle(theirs, sentences_per_second)
            row(name, decoding.batch, precision(decoding), f"{middle(ours, sentences_per_second):,.0f}",
                f"{middle(ours, words_per_second):,.0f}", other, f"{middle(theirs, sentences_per_second):,.0f}",
                f"{ratio:.2f}", floor, ", ".join(f"{one:.2f}" for one in each),
                f"{equal} of {len(sources)}")  # fmt: skip

    tasks.compare_all(where.python("ort-env"), only, compare)


def large(where: Where, place: Path, runs: int, only: str) -> None:
    """Speed, memory and loading of a large model; the first row of each precision is one word after loading."""
    if not place.exists():
        large_model.made(place)
    head("precision", "batch", "words of each", "tool", "words/s", "of ours", "of all runs", "CPU seconds so far",
         "peak MB")  # fmt: skip

    def tell(decoding: Decoding, found: Mapping[str, list[Decoded]]) -> None:
        ours = found["ours"]
        for name, theirs in found.items():
            each = [words_per_second(a) / words_per_second(b) for a, b in zip(ours, theirs, strict=True)]
            ratio = middle(ours, words_per_second) / middle(theirs, words_per_second)
            row(precision(decoding), decoding.batch, decoding.words, name, f"{middle(theirs, words_per_second):,.0f}",
                f"{ratio:.2f}", ", ".join(f"{one:.2f}" for one in each), f"{theirs[-1].total:.2f}",
                f"{theirs[-1].peak / 1000:,.0f}")  # fmt: skip

    large_model.compare(place, where.python("hf-env"), runs, only, tell)


def words_per_second(found: Decoded) -> float:
    return found.tokens / found.seconds


def sentences_per_second(found: Decoded) -> float:
    return len(found.ids) / found.seconds


def middle(found: Sequence[Decoded], rate: Callable[[Decoded], float]) -> float:
    return statistics.median(rate(one) for one in found)


def same(where: Where, models: Sequence[str]) -> None:
    """Native against torch, words and numbers; against a tool that decodes the same weights, words."""
    head("model", "search", "other", "sentences", "same words", "scores apart", "attention apart")
    for model, beam in itertools.product(models, (1, 5)):
        folder, test = where.models / model, Test.of(where, model)
        native, decoding = Native(folder), Decoding(beam=beam, batch=32, int8=False)
        ours = native.hypotheses(test.sources, decoding)
        theirs = Torch(folder).hypotheses(test.sources, decoding)
        equal = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.ids == b.ids]
        scores = max(float(np.abs(a.token_scores - b.token_scores).max()) for a, b in equal)
        attention = max(float(np.abs(a.heads - b.heads).max()) for a, b in equal)
        row(model, search_name(decoding), "torch", len(ours), len(equal), f"{scores:.1e}", f"{attention:.1e}")
        others = {"torch": [list(one.ids) for one in theirs]}
        for name, tool in where.tool(model).items():
            with tool:
                if name == "OpenNMT-py" or not knows(name, decoding):  # weights of its own; a search it has not
                    continue
                others[name] = tool(test.sources, decoding).ids
            equals = sum(list(a.ids) == b for a, b in zip(ours, others[name], strict=True))
            row(model, search_name(decoding), name, len(ours), equals, "", "")
        for name, said in others.items():
            for number, (one, ids) in enumerate(zip(ours, said, strict=True)):
                if list(one.ids) != ids:
                    score = native.engines[False].forced([test.sources[number]], [ids])[0].log_probability
                    print(f"sentence {number + 1}: ours {one.log_probability:.6f} {test.say(one.ids)!r}")
                    print(f"    {name} {score:.6f} {test.say(ids)!r}")


def quality(where: Where, models: Sequence[str]) -> None:
    """BLEU of fp32 and of bytes."""
    import sacrebleu

    head("model", "search", "engine", "BLEU fp32", "BLEU int8", "sentences that differ")
    for model, beam in itertools.product(models, (1, 5)):
        test = Test.of(where, model)
        with ExitStack() as stack:
            tools = {name: stack.enter_context(tool) for name, tool in where.tool(model).items()}
            decoders: dict[str, Timed] = {"ours": Native(where.models / model), **tools}
            for name, decoder in decoders.items():
                decoding = [Decoding(beam=beam, batch=32, int8=int8) for int8 in (False, True)]
                if name == "OpenNMT-py" or not knows(name, decoding[0]):
                    continue
                said = [[test.say(ids) for ids in decoder(test.sources, one).ids] for one in decoding]
                scores = [sacrebleu.corpus_bleu(one, [test.references]).score for one in said]
                differ = sum(a != b for a, b in zip(*said, strict=True))
                row(model, search_name(decoding[0]), name, *(f"{score:.2f}" for score in scores), differ)


def train(where: Where, models: Sequence[str]) -> None:
    for model in models:
        if not (where.models / model).exists():
            pairs, held_out = ([where.data / f"{part}.{side}" for side in ("de", "en")] for part in ("train", "val"))
            regarde.train(
                source=pairs[0], target=pairs[1], valid=held_out, settings=[*TRAINING, *MODELS[model]],
                out=where.models / model, threads=1,
            )  # fmt: skip


def head(*cells: str) -> None:
    row(*cells)
    row(*["---"] * len(cells))


def row(*cells: object) -> None:
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("runs/decode"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--tools", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--model", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--words", type=int, help="of each answer, in place of what is said above; 0: up to its end")
    parser.add_argument("--only", default="", help="works of the table, such as 'greedy batch1 int8' or 'fp32'")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--tasks", action="store_true")
    parser.add_argument("--large", type=Path, help="where the large model is, or is made")
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--quality", action="store_true")
    given = parser.parse_args()
    where = Where(given.models, given.data, given.tools)
    if given.large:
        large(where, given.large, given.runs, given.only)
    elif given.tasks:
        tasks(where, given.runs, given.only)
    elif given.train:
        train(where, given.model)
    elif given.same:
        same(where, given.model)
    elif given.quality:
        quality(where, given.model)
    else:
        table(where, given.model, given.runs, given.words, given.only)


if __name__ == "__main__":
    main()
