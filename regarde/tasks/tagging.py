"""Tagging: the source is a sentence of tokens, the target a tag for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from regarde.data.corpus import ReadOptions, Report, read_tagged
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.errors import ConfigError, DataError, counted
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import Inference
from regarde.text.labels import TagsConfig
from regarde.text.sides import TokenizerConfig
from regarde.text.spelled import SpelledConfig
from regarde.text.tags import OUTSIDE, scheme_of, spans_of
from regarde.text.tokenizers import CharactersConfig
from regarde.translation import TextSpan, Translation


@dataclass(frozen=True)
class TaggingTask(Task):
    """Sentences and the tags of their tokens, both separated by spaces; or one tag for each character."""

    models: ClassVar[tuple[str, ...]] = ("tagger",)
    preset: ClassVar[str] = "tagger-crf-small"
    noun: ClassVar[str] = "a tagger"
    row: ClassVar[str] = "sentence"
    metrics: ClassVar[tuple[str, ...]] = ("token_accuracy", "span_f1", "span_precision", "span_recall")
    without: ClassVar[tuple[str, ...]] = ("--replace-unknown", "--shortlist", "--min-length", "--beta")
    course: ClassVar[tuple[str, ...]] = ("tagger-small", "tagger-crf-small")
    parts: ClassVar[tuple[str, str]] = ("tags", " ")
    suffix: ClassVar[str] = "conll"
    kind: Literal["tagging"] = "tagging"

    def read(self, files: Sequence[File], options: ReadOptions, report: Report) -> Iterator[Pair]:
        options.refuse_several(self.noun)
        return read_tagged(
            files, columns=options.columns, header=options.header, on_error=options.on_error, report=report
        )

    def pair(self, line: str) -> tuple[str, str] | None:
        found = super().pair(line)
        return found if found and _count(found[1]) in (_count(found[0]), len(found[0])) else None

    def written(self, pair: Pair) -> str:
        rows = zip(pair.source.split(" "), pair.target.split(" "), strict=True)
        return "".join(f"{token}\t{tag}\n" for token, tag in rows) + "\n"

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        tags = {tag for pair in pairs for tag in pair.target.split(" ")}
        wanted = Inference(TagsConfig(), counted(len(tags), "tag"))
        unequal = next((n for n, pair in enumerate(pairs, 1) if _count(pair.target) != _count(pair.source)), 0)
        if not unequal:
            return Sides(Inference(SpelledConfig(), "words and their characters: one tag for each word"), wanted)
        if all(_count(pair.target) == len(pair.source) for pair in pairs):
            return Sides(Inference(CharactersConfig(), "characters: one tag for each"), wanted)
        pair = pairs[unequal - 1]
        given = (
            f"Sentence {unequal:,}: {counted(_count(pair.source), 'token')} and {counted(_count(pair.target), 'tag')}"
        )
        raise DataError(f"{given}, expected one tag for each token. Repair the sentence.")

    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        return "span_f1" if scheme_of(pair.target.split(" ") for pair in pairs) else "token_accuracy"

    def settings(self, source: TokenizerConfig, pairs: Sequence[Pair]) -> Mapping[str, int]:
        tokens = {"spelled": _count, "words": _count, "characters": len}.get(source.kind)
        given = f"text.source.kind = {source.kind}"
        remedy = "Set text.source.kind=spelled, whose words are read with their characters, words, or characters"
        if tokens is None:
            raise ConfigError(f"{given}, expected one token for each tag. {remedy}.")
        if wrong := next((pair for pair in pairs if tokens(pair.source) != _count(pair.target)), None):
            counts = f"{counted(tokens(wrong.source), 'token')} and {counted(_count(wrong.target), 'tag')}"
            raise ConfigError(f"{given}: {wrong.source[:40]!r} has {counts}. {remedy}, so that each tag has its token.")
        return {} if source.kind == "spelled" else {"spelling": 0}

    def annotated(self, found: Translation, labels: int) -> Translation:
        """With the spans that its tags mark, if they are BIO, BIOES or IOB1 tags."""
        tags = found.text.split(" ") if found.text else []
        if tags and scheme_of([tags]) is None and set(tags) != {OUTSIDE}:
            return found
        words = found.source.split(" ")
        joint, tokens = (" ", words) if len(words) == len(tags) else ("", list(found.source))
        spans = (TextSpan(s.type, s.start, s.end, joint.join(tokens[s.start : s.end])) for s in spans_of(tags))
        return replace(found, spans=tuple(spans))


def _count(text: str) -> int:
    return len(text.split(" "))
