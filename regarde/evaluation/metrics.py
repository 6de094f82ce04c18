"""Quality of answers against references: BLEU, chrF and TER by sacrebleu, error rates by jiwer, exact match; of labels
and tags accuracy and F1; of answers to questions exact match and F1 as for SQuAD.

A metric counts something in each sentence, and its value is a function of the sums. So its value for a part of a
corpus, or for a thousand samples of it, needs only sums, and texts are compared once. A sentence may have several
references.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regarde.evaluation import labels, squad

MetricName = Literal[
    "exact_match",
    "bleu",
    "chrf",
    "ter",
    "cer",
    "wer",
    "accuracy",
    "macro_f1",
    "micro_f1",
    "token_accuracy",
    "span_f1",
    "span_precision",
    "span_recall",
    "squad_exact_match",
    "squad_f1",
]
References = Sequence[Sequence[str]]  # for each sentence one or more
Rows = NDArray[np.float64]  # (sentences, things counted)


@dataclass(frozen=True)
class Metric:
    """The name of a metric, how its values are written, and whether higher is better."""

    name: str
    label: str
    higher_is_better: bool
    percent: bool = False  # a share of one, written as a percentage
    digits: int = 1  # written after the point

    def show(self, value: float) -> str:
        return f"{self.label} {self.written(value)}"

    def written(self, value: float) -> str:
        return f"{value:.{self.digits}%}" if self.percent else f"{value:.{self.digits}f}"


@dataclass(frozen=True, eq=False)
class MetricCounts:
    """What a metric counts in each sentence, and its value as a function of the sums."""

    rows: Rows
    value_of: Callable[[Rows], float]  # of sums, (things counted,)
    signature: str = ""  # program, version and settings that computed it

    def value(self, chosen: NDArray[np.int64] | None = None) -> float:
        """The metric over all sentences, or over the chosen ones."""
        return self.value_of((self.rows if chosen is None else self.rows[chosen]).sum(axis=0))


METRICS: dict[MetricName, Metric] = {
    "exact_match": Metric("exact_match", "exact match", True, percent=True),
    "bleu": Metric("bleu", "BLEU", True),
    "chrf": Metric("chrf", "chrF", True),
    "ter": Metric("ter", "TER", False),
    "cer": Metric("cer", "character error rate", False, percent=True),
    "wer": Metric("wer", "symbol error rate", False, percent=True),
    "accuracy": Metric("accuracy", "accuracy", True, percent=True),
    "macro_f1": Metric("macro_f1", "macro F1", True, percent=True),
    "micro_f1": Metric("micro_f1", "micro F1", True, percent=True),
    "token_accuracy": Metric("token_accuracy", "token accuracy", True, percent=True),
    "span_f1": Metric("span_f1", "span F1", True, percent=True),
    "span_precision": Metric("span_precision", "span precision", True, percent=True),
    "span_recall": Metric("span_recall", "span recall", True, percent=True),
    "squad_exact_match": Metric("squad_exact_match", "exact match", True, percent=True),
    "squad_f1": Metric("squad_f1", "token F1", True, percent=True),
}
LikelihoodName = Literal["perplexity", "bits_per_character", "nats_per_token"]
PERPLEXITY = Metric("perplexity", "perplexity", False, digits=3)
LIKELIHOODS: dict[LikelihoodName, Metric] = {
    "perplexity": PERPLEXITY,
    "bits_per_character": Metric("bits_per_character", "bits per character", False, digits=3),
    "nats_per_token": Metric("nats_per_token", "nats per token", False, digits=4),
}  # of references by forced decoding


ForecastMetricName = Literal["crps", "mase", "smape", "coverage"]
FORECASTS: dict[ForecastMetricName, Metric] = {
    "crps": Metric("crps", "CRPS", False, digits=4),
    "mase": Metric("mase", "MASE", False, digits=3),
    "smape": Metric("smape", "sMAPE", False, digits=2),
    "coverage": Metric("coverage", "coverage of 80%", True, percent=True),
}  # of forecasts (forecasts.py)
JudgingName = Literal[MetricName, "perplexity", ForecastMetricName]
JUDGING: dict[str, Metric] = {metric.name: metric for metric in (*METRICS.values(), PERPLEXITY, *FORECASTS.values())}
"""The metrics that can choose the best model of a run."""

SUPPORTING = Metric("supporting", "supporting sentence", True, percent=True)  # of attention
CALIBRATION = Metric("calibration_error", "expected calibration error", False, percent=True)  # of probabilities


PACKAGES: dict[MetricName, str] = {
    "bleu": "sacrebleu",
    "chrf": "sacrebleu",
    "ter": "sacrebleu",
    "cer": "jiwer",
    "wer": "jiwer",
}


def require(names: Collection[str]) -> None:
    """Import the packages of these metrics, so that a missing one is reported before a long computation."""
    for name, package in PACKAGES.items():
        if name in names:
            import_module(package)


def measure(
    name: MetricName, hypotheses: Sequence[str], references: Sequence[str], *, several_labels: bool = False
) -> float:
    """A metric over a whole corpus with one reference each."""
    assert len(hypotheses) == len(references) > 0
    lists = [[reference] for reference in references]
    return count(name, hypotheses, lists, several_labels=several_labels).value()


def count(
    name: MetricName,
    hypotheses: Sequence[str],
    references: References,
    *,
    tokenize: str = "13a",
    several_labels: bool = False,
) -> MetricCounts:
    """What a metric counts in each row; `tokenize` is sacrebleu's tokenizer for BLEU.

    With `several_labels`, commas separate the labels of one text.
    """
    match name:
        case "exact_match":
            return exact_match(hypotheses, references)
        case "bleu":
            return bleu(hypotheses, references, tokenize=tokenize)
        case "chrf":
            return chrf(hypotheses, references)
        case "ter":
            return ter(hypotheses, references)
        case "cer":
            return cer(hypotheses, references)
        case "wer":
            return wer(hypotheses, references)
        case "accuracy" | "macro_f1" | "micro_f1":
            return _of_labels(name, labels.compared_labels(hypotheses, references, several=several_labels))
        case "token_accuracy":
            return MetricCounts(labels.correct_tags(hypotheses, references), _ratio)
        case "span_f1" | "span_precision" | "span_recall":
            return _of_spans(name, labels.compared_spans(hypotheses, references))
        case "squad_exact_match":
            return MetricCounts(squad.best(squad.exact, hypotheses, references), _ratio)
        case "squad_f1":
            return MetricCounts(squad.best(squad.f1, hypotheses, references), _ratio)


def count_likelihood(name: LikelihoodName, forced: Rows) -> MetricCounts:
    """Of (rows, 3): negative log-probability, tokens and characters of each reference, its end included in both."""
    value_of: dict[LikelihoodName, Callable[[Rows], float]] = {
        "perplexity": _perplexity,
        "bits_per_character": lambda sums: float(sums[0] / sums[2] / np.log(2)),
        "nats_per_token": _ratio,
    }
    return MetricCounts(forced, value_of[name])


def count_calibration(rows: Sequence[Sequence[tuple[float, bool]]]) -> MetricCounts:
    """Of the decisions of each row: how sure, and whether right."""
    return MetricCounts(labels.confidence_bins(rows), labels.calibration_error, f"{labels.BINS} bins")


def count_supporting(rows: Sequence[bool | None]) -> MetricCounts:
    """The share of answers whose most attended sentence supports them; None of answers that do not count."""
    return MetricCounts(np.array([[float(bool(one)), float(one is not None)] for one in rows]), _ratio_or_zero)


def exact_match(hypotheses: Sequence[str], references: References) -> MetricCounts:
    """The share of sentences that are equal to one of their references."""
    pairs = zip(hypotheses, references, strict=True)
    right = [[float(hypothesis in accepted), 1.0] for hypothesis, accepted in pairs]
    return MetricCounts(np.array(right), _ratio)


def bleu(hypotheses: Sequence[str], references: References, *, tokenize: str = "13a") -> MetricCounts:
    """Papineni et al. 2002, as sacrebleu computes it, 0 to 100."""
    import sacrebleu  # an optional package

    return _by_sacrebleu(sacrebleu.BLEU(tokenize=tokenize, force=True), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References) -> MetricCounts:
    """Popović 2015, as sacrebleu computes it, 0 to 100."""
    import sacrebleu

    return _by_sacrebleu(sacrebleu.CHRF(), hypotheses, references)


def ter(hypotheses: Sequence[str], references: References) -> MetricCounts:
    """Snover et al. 2006, as sacrebleu computes it: edits and shifts per 100 words of the reference; 0 is best."""
    import sacrebleu

    return _by_sacrebleu(sacrebleu.TER(), hypotheses, references)


def cer(hypotheses: Sequence[str], references: References) -> MetricCounts:
    """Character edits per character of the reference, as jiwer computes it; 0 is best."""
    import jiwer

    return _by_jiwer(jiwer.process_characters, hypotheses, references)


def wer(hypotheses: Sequence[str], references: References) -> MetricCounts:
    """Edits of space-separated symbols, such as phonemes, per symbol of the reference, as jiwer computes it."""
    import jiwer

    return _by_jiwer(jiwer.process_words, hypotheses, references)


def _of_labels(name: Literal["accuracy", "macro_f1", "micro_f1"], rows: list[labels.Compared]) -> MetricCounts:
    match name:
        case "accuracy":
            return MetricCounts(labels.correct_rows(rows), _ratio)
        case "macro_f1":
            return MetricCounts(labels.overlap_by_class(rows), labels.mean_f1)
        case "micro_f1":
            return MetricCounts(labels.overlap(rows), labels.f1)


def _of_spans(name: Literal["span_f1", "span_precision", "span_recall"], rows: list[labels.Compared]) -> MetricCounts:
    value_of = {"span_f1": labels.f1, "span_precision": labels.precision, "span_recall": labels.recall}[name]
    return MetricCounts(labels.overlap(rows), value_of)


def _by_sacrebleu(metric: Any, hypotheses: Sequence[str], references: References) -> MetricCounts:
    """The statistics that sacrebleu's significance tests use; None stands for a missing reference."""
    streams = list(zip_longest(*references))
    rows = np.array(metric._extract_corpus_statistics(list(hypotheses), streams), dtype=np.float64)

    def value_of(sums: Rows) -> float:
        return float(metric._compute_score_from_stats(sums.tolist()).score)

    return MetricCounts(rows, value_of, str(metric.get_signature()))


def _by_jiwer(process: Any, hypotheses: Sequence[str], references: References) -> MetricCounts:
    """Edits and length, by the closest reference; jiwer supports only one."""
    accepted = [len(several) for several in references]
    repeated = [hypothesis for hypothesis, times in zip(hypotheses, accepted, strict=True) for _ in range(times)]
    counted = iter(_edits(process([reference for several in references for reference in several], repeated)))
    closest = [min((next(counted) for _ in range(times)), key=lambda row: row[0] / row[1]) for times in accepted]
    return MetricCounts(np.array(closest, dtype=np.float64), _ratio, f"jiwer {version('jiwer')}")


def _edits(output: Any) -> Iterator[tuple[int, int]]:
    """For each sentence its edits, and the length of its reference."""
    for reference, chunks in zip(output.references, output.alignments, strict=True):
        edits = sum(
            max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)
            for chunk in chunks
            if chunk.type != "equal"
        )
        yield edits, len(reference)


def _perplexity(sums: Rows) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(sums[0] / sums[1]))


def _ratio_or_zero(sums: Rows) -> float:
    return _ratio(sums) if sums[1] else 0.0


def _ratio(sums: Rows) -> float:
    return float(sums[0] / sums[1])
