"""Quality of translations against references: BLEU and chrF by sacrebleu, error rates by jiwer, exact match.

Every metric takes hypotheses and references in the same order and gives a number; `higher_is_better` says which way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

MetricName = Literal["exact_match", "bleu", "chrf", "cer"]


@dataclass(frozen=True)
class Metric:
    """A named measure of a whole corpus."""

    name: MetricName
    label: str
    higher_is_better: bool
    measure: Callable[[Sequence[str], Sequence[str]], float]

    def __call__(self, hypotheses: Sequence[str], references: Sequence[str]) -> float:
        assert len(hypotheses) == len(references) > 0
        return self.measure(hypotheses, references)

    def show(self, value: float) -> str:
        return f"{self.label} {value:.1%}" if self.name in ("exact_match", "cer") else f"{self.label} {value:.1f}"


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share of sentences that are right to the last character."""
    right = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return right / len(references)


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Papineni et al. 2002, as sacrebleu computes it (13a), 0 to 100."""
    import sacrebleu  # only who measures it needs it

    return float(sacrebleu.corpus_bleu(list(hypotheses), [list(references)]).score)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Popović 2015, as sacrebleu computes it, 0 to 100."""
    import sacrebleu

    return float(sacrebleu.corpus_chrf(list(hypotheses), [list(references)]).score)


def cer(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Character edits per character of the reference, as jiwer computes it; 0 is best."""
    import jiwer

    return float(jiwer.cer(list(references), list(hypotheses)))


METRICS: dict[MetricName, Metric] = {
    "exact_match": Metric("exact_match", "exact match", True, exact_match),
    "bleu": Metric("bleu", "BLEU", True, bleu),
    "chrf": Metric("chrf", "chrF", True, chrf),
    "cer": Metric("cer", "character error rate", False, cer),
}
