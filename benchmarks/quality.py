"""How good models become, and how well attention aligns, on real data in a folder; by the commands that users have.

    python benchmarks/quality.py --data DIR --out runs/quality                      # everything, one after the other
    python benchmarks/quality.py --data DIR --out runs/quality --only g2p,inflection-deu
    python benchmarks/quality.py --data DIR --out runs/quality --minutes 0.1        # does it run at all?

A training that is there is not done again, and one that was stopped goes on. The clock of a training is that of its
updates: reading, validating and translating are not in it. Figures of a job are printed as rows of a table.

    multi30k-*    DIR/multi30k, raw text German -> English, recipes beside this file; test2016, beam 5, sacrebleu 13a,
                  the best model and the mean of the last four checkpoints
    tatoeba       DIR/tatoeba-en-fr, English -> French, the Transformer's recipe
    hansards-*    DIR/align-gold/hansards-en-fr: trained on train-small + test in both directions; alignment error rate
                  of each with and without the offset of Luong's footnote 14, and of both, beside IBM Model 1; -guided:
                  attention is taught the links of IBM Model 1, -tatoeba: with DIR/tatoeba-en-fr's pairs too
    shakespeare*  DIR/lm-tinyshakespeare by characters: the recipe beside this file, lstm-lm-small in 3 minutes; nats
                  and bits per character of the test text, each character after all before it
    ewt           DIR/pos-ud-ewt, words with UPOS: accuracy of tags; ner-*: DIR/ner-sec (three seeds, a random field or
                  a softmax) and DIR/ner-wnut17, F1 of spans; recipes beside this file
    trec, sst2    DIR/cls-trec and DIR/cls-sst2, no pre-trained vectors, recipes beside this file: accuracy of three
                  seeds; of sst2 also that of the three models as an ensemble
    m4-hourly     DIR/forecast-m4-hourly, 48 hours of 414 series, recipe beside this file: CRPS, MASE, sMAPE, coverage
                  beside the seasonal naive forecast
    transfer-multi30k, transfer-tatoeba    transformer-small, 10 and 8 minutes on German -> English captions and on
                  DIR/tatoeba-en-fr, then 3 minutes on French -> English and English -> French captions, with a grown
                  vocabulary: beside a model from scratch, or on its old test before and after
    g2p, translit, inflection-*, spell    `regarde train my.tsv` as it is, nothing tuned; exact match and error rates;
                  -copying: the same with copying, which is mapped where the two alphabets differ (translit)
    rooms-one, rooms-two    questions-small on the embedded questions: exact match, and how often attention is most on a
                  supporting sentence; -plain: an encoder and a decoder without attention

--seeds 1,2,3 trains short strings and questions once for each seed, and prints a row of their mean and spread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import regarde
from regarde.evaluation.likelihood import likelihoods, windows
from regarde.process import command, environment
from regarde.translate import ensemble

HERE = Path(__file__).parent
LAST = 4  # checkpoints that are averaged
TEST = 447  # pairs of the Hansards that people have linked, the last ones of what is learned from


def printed(words: Sequence[object], **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    return done.stdout


@dataclass(frozen=True)
class Place:
    """Where data are, where runs go, how long and on how many threads."""

    data: Path
    out: Path
    minutes: float  # 0: as a job says
    threads: int
    seeds: tuple[int, ...] = (1,)

    def regarde(self, *arguments: object) -> str:
        """What a command prints."""
        print("$ regarde", *arguments, file=sys.stderr, flush=True)
        given = map(str, arguments)
        return printed(command("regarde", *given), **environment() | {"OMP_NUM_THREADS": str(self.threads)})

    def train(self, name: str, minutes: float, *arguments: object) -> Path:
        """A run, from its beginning or from where it was; 0 minutes: as long as is the default."""
        folder = self.out / name
        length = self.minutes or minutes
        limit = ["--set", f"training.minutes={length}"] if length else []
        self.regarde("train", *arguments, *limit, "--threads", self.threads, "--out", folder, "--resume")
        return folder

    def mean(self, run: Path) -> Path:
        """The mean of the last checkpoints."""
        folder = run.with_name(f"{run.name}-mean")
        if not folder.exists():
            self.regarde("average", *checkpoints(run)[-LAST:], "--out", folder)
        return folder

    def measured(self, run: Path, *arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.regarde("evaluate", run, *arguments, "--beam", 5, "--json"))
        metrics: dict[str, Any] = found["metrics"]
        return metrics

    def plain(self, folder: str, name: str) -> Path:
        """A text file, unpacked into `out` where it is packed."""
        path = self.data / folder / name
        if path.exists():
            return path
        unpacked = self.out / "data" / folder / name
        if not unpacked.exists():
            unpacked.parent.mkdir(parents=True, exist_ok=True)
            unpacked.write_bytes(gzip.decompress(path.with_name(f"{name}.gz").read_bytes()))
        return unpacked


def checkpoints(run: Path) -> list[Path]:
    """Those that are there, the oldest first."""
    steps = sorted(int(one.name.removeprefix("step-")) for one in (run / "checkpoints").iterdir())
    return [run / "checkpoints" / f"step-{step}" for step in steps if step]


def trained(run: Path) -> str:
    """How long, and how far, as the run itself has recorded it; a mean is of the run it is named after."""
    folder = run if (run / "metrics.jsonl").exists() else run.with_name(run.name.removesuffix("-mean"))
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return f"{last['trained'] / 60:.1f} min, {last['step']:,} steps"


def spread(name: str, metrics: str, found: Sequence[dict[str, Any]]) -> None:
    """A row of the mean over seeds, and the lowest and highest, if there are several."""
    if len(found) > 1:
        values = [[100 * each[metric]["value"] for each in found] for metric in metrics.split(",")]
        shares = [f"{sum(one) / len(one):.1f} ({min(one):.1f} to {max(one):.1f})" for one in values]
        row(
            f"{name}, mean of {len(found)}",
            *(f"{m} {share}" for m, share in zip(metrics.split(","), shares, strict=True)),
        )


def row(name: str, *cells: object) -> None:
    print("|", " | ".join([name, *map(str, cells)]), "|", flush=True)


def shown(metric: str, found: dict[str, float]) -> str:
    scale = 1 if metric in ("bleu", "chrf") else 100  # the others are shares
    value, low, high = (scale * found[key] for key in ("value", "low", "high"))
    return f"{metric} {value:.2f} ({low:.2f} to {high:.2f})"


@dataclass(frozen=True)
class Translation:
    """Line-aligned files, a recipe beside this file, BLEU of the best model and of the mean of the last."""

    folder: str
    ends: tuple[str, str]
    valid: str
    test: str
    recipe: str
    minutes: float

    def __call__(self, name: str, at: Place) -> None:
        train, valid = ([at.plain(self.folder, f"{part}.{end}") for end in self.ends] for part in ("train", self.valid))
        sides = ["--source", train[0], "--target", train[1], "--valid", valid[0], "--valid", valid[1]]
        recipe = ["--recipe", HERE / "recipes" / self.recipe]
        source, target = self.ends
        languages = ["--set", f"source_language={source}", "--set", f"target_language={target}"]
        run = at.train(name, self.minutes, *sides, *recipe, *languages)
        test = [at.plain(self.folder, f"{self.test}.{end}") for end in self.ends]
        for model in (run, at.mean(run)):
            found = at.measured(model, "--source", test[0], "--target", test[1], "--metrics", "bleu,chrf")
            row(model.name, *(shown(metric, found[metric]) for metric in ("bleu", "chrf")), trained(model))


@dataclass(frozen=True)
class Strings:
    """A table of short strings, and nothing but defaults; with copying or without."""

    folder: str
    files: tuple[str, str, str]
    metrics: str
    columns: str = ""
    several: bool = False  # test and validation have every accepted answer
    minutes: float = 0
    copying: str = "none"

    def __call__(self, name: str, at: Place) -> None:
        train, valid, test = (at.plain(self.folder, one) for one in self.files)
        if self.several:  # to learn from, the first one is enough
            firsts = ["\t".join(line.split("\t")[:2]) for line in valid.read_text().splitlines()]
            valid = at.out / "data" / self.folder / "valid-first.tsv"
            valid.write_text("".join(f"{line}\n" for line in firsts))
        columns = ["--columns", self.columns] if self.columns else []
        chosen = [*columns, "--set", f"model.copying.kind={self.copying}"]
        shape = ["--several"] if self.several else columns
        every = []
        for seed in at.seeds:
            run = at.train(f"{name}-{seed}", self.minutes, train, "--valid", valid, *chosen, "--seed", seed)
            found = at.measured(run, "--data", test, *shape, "--metrics", self.metrics)
            row(run.name, *(shown(metric, found[metric]) for metric in self.metrics.split(",")), trained(run))
            every.append(found)
        spread(name, self.metrics, every)


@dataclass(frozen=True)
class Questions:
    """Embedded questions, whose supporting sentences are known."""

    data: str
    steps: int
    preset: str = "questions-small"
    attends: bool = True

    def __call__(self, name: str, at: Place) -> None:
        metrics = "squad_exact_match,supporting" if self.attends else "squad_exact_match"
        every = []
        for seed in at.seeds:
            chosen = ["--preset", self.preset, "--steps", self.steps, "--set", "task.kind=questions", "--seed", seed]
            run = at.train(f"{name}-{seed}", 0, self.data, *chosen)
            every.append(json.loads(at.regarde("evaluate", run, "--data", self.data, "--json"))["metrics"])
            row(run.name, *(shown(metric, every[-1][metric]) for metric in metrics.split(",")), trained(run))
        spread(name, metrics, every)


@dataclass(frozen=True)
class Moved:
    """A model of some pairs that learns others for a few minutes; three seeds beside as many from scratch."""

    base: tuple[str, tuple[str, str], str, float]  # folder, ends, validation, minutes
    ends: tuple[str, str]  # of the captions that it moves to
    forgets: bool = False  # whether its old test is measured too, and one more model has old data mixed in

    def __call__(self, name: str, at: Place) -> None:
        folder, ends, valid, minutes = self.base
        first = at.train(f"{name}-base", minutes, *self.pairs(at, folder, ends, valid), *SMALL)
        captions, grown = self.pairs(at, "multi30k", self.ends, "val"), ["--set", "training.transfer.vocabulary=grown"]
        ways: dict[str, list[object]] = {"moved": ["--from", first, *grown]}
        if self.forgets:
            self.rows(at, first)
            ways["mixed"] = [*ways["moved"], "--set", "training.transfer.mix=0.3"]
        else:
            ways["scratch"] = SMALL
        for how, options in ways.items():
            for seed in (1,) if self.forgets else (1, 2, 3):
                self.rows(at, at.train(f"{name}-{how}-{seed}", 3, *captions, *options, "--seed", seed))

    def pairs(self, at: Place, folder: str, ends: tuple[str, str], valid: str) -> list[object]:
        files = [("--source", "train"), ("--target", "train"), ("--valid", valid), ("--valid", valid)]
        places = [at.plain(folder, f"{part}.{end}") for (_, part), end in zip(files, [*ends, *ends], strict=True)]
        return [word for (option, _), place in zip(files, places, strict=True) for word in (option, place)]

    def rows(self, at: Place, run: Path) -> None:
        tests = {"captions": ("multi30k", "test2016")} | ({"old test": (self.base[0], "test")} if self.forgets else {})
        for label, (folder, part) in tests.items():
            source, target = (at.plain(folder, f"{part}.{end}") for end in self.ends)
            found = at.measured(run, "--source", source, "--target", target, "--metrics", "bleu")
            row(f"{run.name}, {label}", shown("bleu", found["bleu"]), trained(run))


@dataclass(frozen=True)
class Hansards:
    """Two models, one for each direction, and where they look; beside IBM Model 1 on the same pairs."""

    minutes: float
    more: bool = False  # Tatoeba's pairs too
    guided: bool = False  # attention is taught the links that IBM Model 1 finds in both directions

    def __call__(self, name: str, at: Place) -> None:
        gold = at.data / "align-gold" / "hansards-en-fr"
        folder = at.out / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        for end in ("en", "fr"):
            parts = [at.plain("tatoeba-en-fr", f"train.{end}")] if self.more else []
            parts += [gold / f"{part}.{end}" for part in ("train-small", "test")]
            (folder / f"all.{end}").write_text("".join(part.read_text() for part in parts))
        runs, ibm = {}, {}
        for source, target in (("en", "fr"), ("fr", "en")):
            every = folder / f"ibm1.{source}-{target}.all"
            if not every.exists():
                sides = [folder / f"all.{source}", folder / f"all.{target}"]
                every.write_text(printed([sys.executable, HERE / "ibm1.py", *sides]))
            ibm[source] = every.read_text().splitlines()
        both = [set(one.split()) & set(turned(other)) for one, other in zip(ibm["en"], ibm["fr"], strict=True)]
        links = folder / "ibm1.intersection"
        links.write_text("".join(" ".join(sorted(each)) + "\n" for each in both[-TEST:]))
        row("IBM Model 1, intersection", error(at, links, gold))
        for source, target in (("en", "fr"), ("fr", "en")):
            way, turn = f"{source}-{target}", [] if source == "en" else ["--turn"]
            sides = [folder / f"all.{source}", folder / f"all.{target}"]
            links = folder / f"ibm1.{way}"
            links.write_text("".join(f"{line}\n" for line in ibm[source][-TEST:]))
            row(f"IBM Model 1 {way}", error(at, links, gold, *turn))
            teaching = []
            if self.guided:
                guide = folder / f"guide.{way}"
                lines = (" ".join(sorted(each if source == "en" else turned(" ".join(each)))) for each in both)
                guide.write_text("".join(f"{line}\n" for line in lines))
                told = {"links": guide, "weight": 1.0}
                teaching = [word for k, v in told.items() for word in ("--set", f"training.guided_alignment.{k}={v}")]
            valid = ["--valid", gold / f"dev.{source}", "--valid", gold / f"dev.{target}"]
            recipe = ["--recipe", HERE / "recipes" / "hansards.toml"]
            pairs = ["--source", sides[0], "--target", sides[1], *valid]
            run = at.train(f"{name}-{way}", self.minutes, *pairs, *recipe, *teaching)
            # it is asked about pairs that it has learned from: the last one knows them best, whatever it says of others
            runs[source] = checkpoints(run)[-1]
            test = ["--source", gold / f"test.{source}", "--target", gold / f"test.{target}"]
            for offset in (0, 1):
                links = folder / f"links.{way}.{offset}"
                links.write_text(at.regarde("align", runs[source], *test, "--offset", offset))
                row(f"{name} {way}, offset {offset}", error(at, links, gold, *turn), trained(run))
        test = ["--source", gold / "test.en", "--target", gold / "test.fr"]
        for how in ("intersection", "grow-diag-final-and"):
            links = folder / f"links.{how}"
            links.write_text(at.regarde("align", runs["en"], *test, "--reverse", runs["fr"], "--symmetrize", how))
            row(f"{name}, {how}", error(at, links, gold))


@dataclass(frozen=True)
class RunningText:
    """A text in three files, and how likely the last one is."""

    folder: str
    minutes: float
    model: tuple[str, str]

    def __call__(self, name: str, at: Place) -> None:
        train, valid, test = (at.plain(self.folder, f"{part}.txt") for part in ("train", "valid", "test"))
        option, value = self.model
        chosen = [option, HERE / "recipes" / value if option == "--recipe" else value]
        run = at.train(name, self.minutes, train, "--valid", valid, *chosen)
        translator = regarde.load(run)
        lines = test.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        nats, _, characters = likelihoods(translator, [f"{line}\n" for line in lines]).sum(axis=0)
        each = nats / characters
        cut = "windows of {} tokens, {} apart".format(*windows(translator))
        row(name, f"{each:.3f} nats", f"{each / math.log(2):.3f} bits per character", cut, trained(run))


@dataclass(frozen=True)
class Tagged:
    """Tagged sentences in two or three files, a recipe beside this file, one row for each seed."""

    folder: str
    recipe: str
    minutes: float
    metrics: str
    train: str = "train.tsv"
    valid: str = "dev.tsv"  # empty: a part of what is learned from is held out
    columns: str = "1:2"
    seeds: int = 1
    crf: bool = True

    def __call__(self, name: str, at: Place) -> None:
        read = ["--columns", self.columns, "--no-header"]
        held = ["--valid", at.data / self.folder / self.valid] if self.valid else []
        recipe = ["--recipe", HERE / "recipes" / self.recipe, "--set", f"model.crf={str(self.crf).lower()}"]
        for seed in range(1, self.seeds + 1):
            run = f"{name}-{seed}"
            done = at.train(
                run, self.minutes, at.data / self.folder / self.train, *read, *held, *recipe, "--seed", seed
            )
            test = ["--data", at.data / self.folder / "test.tsv", *read, "--metrics", self.metrics, "--json"]
            found = json.loads(at.regarde("evaluate", done, *test))["metrics"]
            row(run, *(shown(metric, found[metric]) for metric in self.metrics.split(",")), trained(done))


@dataclass(frozen=True)
class Labelled:
    """Labels and texts in two or three files, a recipe beside this file; a row for each seed and one for all."""

    folder: str
    recipe: str
    valid: str = ""  # a part of what is learned from is held out
    seeds: int = 3

    def __call__(self, name: str, at: Place) -> None:
        read = ["--columns", "2:1", "--no-header"]
        held = ["--valid", at.data / self.folder / self.valid] if self.valid else []
        train, test = (at.data / self.folder / f"{part}.tsv" for part in ("train", "test"))
        runs = []
        for seed in range(1, self.seeds + 1):
            recipe = ["--recipe", HERE / "recipes" / self.recipe, "--seed", seed]
            runs.append(at.train(f"{name}-{seed}", 0, train, *read, *held, *recipe))
            found = json.loads(at.regarde("evaluate", runs[-1], "--data", test, *read, "--json"))["metrics"]
            cells = [shown(of, found[of]) for of in ("accuracy", "calibration_error")]
            row(f"{name}-{seed}", *cells, trained(runs[-1]))
        if self.valid:  # all have learned from the same texts, so that they have one vocabulary
            rows = [line.split("\t") for line in test.read_text(encoding="utf-8").splitlines()]
            answers = ensemble([regarde.load(run) for run in runs]).predict([text for _, text in rows])
            right = sum(answer.text == label for answer, (label, _) in zip(answers, rows, strict=True))
            row(f"{name}, all seeds", f"accuracy {100 * right / len(rows):.1f} %", " + ".join(map(trained, runs)))


@dataclass(frozen=True)
class Forecasted:
    """Series in one file, what follows them in another, a recipe beside this file."""

    folder: str
    recipe: str

    def __call__(self, name: str, at: Place) -> None:
        train, test = at.data / self.folder / "train.csv.gz", at.data / self.folder / "test.csv"
        run = at.train(name, 0, train, "--recipe", HERE / "recipes" / self.recipe)
        found = json.loads(at.regarde("evaluate", run, "--data", test, "--json"))["metrics"]
        for label, metrics in found.items():
            row(label, *(f"{metric} {of['value']:.3f}" for metric, of in metrics.items()), trained(run))


def turned(links: str) -> list[str]:
    """Source and target of each link in each other's place."""
    return ["-".join(reversed(link.split("-"))) for link in links.split()]


def error(at: Place, links: Path, gold: Path, *turn: str) -> str:
    found = json.loads(at.regarde("aer", links, gold / "test.gold", *turn, "--samples", 0, "--json"))
    return f"AER {100 * found['aer']:.1f} %"


SMALL: list[object] = ["--preset", "transformer-small"]
PARTS = ("train.tsv", "valid.tsv", "test.tsv")
STRINGS = {
    f"inflection-{of}": Strings(
        "inflection-2023", (f"{of}.train.tsv", f"{of}.dev.tsv", f"{of}.test.tsv"), "exact_match,cer", "1+2:3"
    )
    for of in ("deu", "fin")
} | {
    "translit": Strings("translit-ar-en", PARTS, "exact_match,cer"),
    "spell": Strings("spell-codespell", PARTS, "exact_match,cer"),
}
ROOMS = {"rooms-one": 3_000, "rooms-two": 3_000}  # steps
SPANS = "span_f1,span_precision,span_recall"
JOBS: dict[str, Callable[[str, Place], None]] = {
    **{
        f"multi30k-{kind}": Translation("multi30k", ("de", "en"), "val", "test2016", f"multi30k-{kind}.toml", 30)
        for kind in ("transformer", "rnnsearch")
    },
    "tatoeba": Translation("tatoeba-en-fr", ("en", "fr"), "valid", "test", "multi30k-transformer.toml", 60),
    "transfer-multi30k": Moved(("multi30k", ("de", "en"), "val", 10), ("fr", "en")),
    "transfer-tatoeba": Moved(("tatoeba-en-fr", ("en", "fr"), "valid", 8), ("en", "fr"), forgets=True),
    "hansards": Hansards(minutes=5),
    "hansards-guided": Hansards(minutes=20, guided=True),
    "hansards-tatoeba": Hansards(minutes=8, more=True),
    "shakespeare": RunningText("lm-tinyshakespeare", 22, ("--recipe", "shakespeare.toml")),
    "shakespeare-small": RunningText("lm-tinyshakespeare", 3, ("--preset", "lstm-lm-small")),
    "ewt": Tagged("pos-ud-ewt", "ewt.toml", 8, "token_accuracy", train="train.tsv.gz", crf=False),
    "ner-sec-crf": Tagged("ner-sec", "ner.toml", 2, SPANS, valid="", seeds=3),
    "ner-sec-softmax": Tagged("ner-sec", "ner.toml", 2, SPANS, valid="", seeds=3, crf=False),
    "ner-wnut17": Tagged("ner-wnut17", "ner.toml", 4, SPANS),
    "m4-hourly": Forecasted("forecast-m4-hourly", "m4-hourly.toml"),
    "trec": Labelled("cls-trec", "trec.toml"),
    "sst2": Labelled("cls-sst2", "sst2.toml", valid="dev.tsv"),
    "g2p": Strings("g2p-cmudict", PARTS, "exact_match,wer", several=True, minutes=30),
    **STRINGS,
    **{
        f"{name}-copying": replace(job, copying="mapped" if name == "translit" else "pointer")
        for name, job in STRINGS.items()
    },
    **{name: Questions(name, steps) for name, steps in ROOMS.items()},
    **{f"{name}-plain": Questions(name, steps, "sutskever-small", attends=False) for name, steps in ROOMS.items()},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(JOBS), help="jobs, with commas")
    parser.add_argument("--minutes", type=float, default=0.0, help="of each training; as each job says if not given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", default="1", help="of short strings and questions, with commas (default: 1)")
    given = parser.parse_args()
    seeds = tuple(map(int, given.seeds.split(",")))
    for name in given.only.split(","):
        JOBS[name](name, Place(given.data, given.out, given.minutes, given.threads, seeds))


if __name__ == "__main__":
    main()
