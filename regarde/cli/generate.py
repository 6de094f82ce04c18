"""`regarde generate`: text from a language model, word by word on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from regarde.cli import options
from regarde.cli.options import flag, open_run, option
from regarde.engines.devices import CORES
from regarde.errors import UsageError
from regarde.streaming.streams import tell, write

if TYPE_CHECKING:
    from regarde.search import Search
    from regarde.streaming.generation import GeneratedText
    from regarde.translate import Translator
    from regarde.translation import Translation

INCOMPLETE = "\ufffd"  # an incomplete character: some of its bytes are not generated yet


def generate(
    run: options.Run,
    prompt: Annotated[str, option("TEXT", "Continue TEXT. Default: begin a new text.")] = "",
    length: Annotated[
        int | None, option("N", "Add at most N tokens. Default: the model's limit.", least=1, most=65_536)
    ] = None,
    count: Annotated[int, option("N", "Write N texts.", least=1, most=100_000)] = 1,
    temperature: Annotated[
        float | None,
        option("X", "Sharpen (below 1) or flatten (above 1) the distribution. Default: 0.8.", least=1e-3, most=1e3),
    ] = None,
    top_k: Annotated[int | None, option("N", "Sample from the N most probable tokens.", least=1, most=10**6)] = None,
    top_p: Annotated[
        float | None, option("P", "Sample from the most probable tokens with total probability P.", least=0.0, most=1.0)
    ] = None,
    seed: Annotated[int, option("N", "Seed of the samples; text n has seed N + n - 1.", least=0, most=2**62)] = 1,
    beam: Annotated[
        int | None, option("N", "Search for the likeliest text instead: a beam of N; 1 is greedy.", least=1, most=1000)
    ] = None,
    alpha: Annotated[
        float | None,
        option("X", "Length penalty of a beam: 0 for none, higher for longer texts.", least=0.0, most=10.0),
    ] = None,
    prune: Annotated[
        float | None,
        option("X", "Prune hypotheses of a beam that score X below the best; 0 for none.", least=0.0, most=1000.0),
    ] = None,
    as_json: Annotated[bool, flag("--json", "Write JSON lines with scores, tokens and attention.")] = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Write text with a language model, from the start or after a prompt.

    Tokens are sampled from the model's distribution, at temperature 0.8 by default; the same seed gives the same
    text. With --beam the most probable texts are searched instead, and --count N gives the N best. A text ends when
    the model generates its end, or after --length tokens.

    On a terminal, a sampled text appears token by token. Otherwise each text is written when it is complete, followed
    by a newline. A prompt may end inside a word if tokens are characters or subwords: the model may continue the word.
    To continue each line of a file, use: regarde predict.

    Example: regarde generate runs/diary --prompt "Today is" --length 80
    """
    for name, value in {"alpha": alpha, "prune": prune, "top-p": top_p, "temperature": temperature}.items():
        if value is not None and math.isnan(value):
            raise UsageError(f"--{name}: nan is not a number.")
    if beam is not None and (temperature, top_k, top_p) != (None, None, None):
        raise UsageError("--beam excludes --temperature, --top-k and --top-p. Leave out one or the other.")
    if (beam is None or beam == 1) and (alpha, prune) != (None, None):
        raise UsageError("--alpha and --prune are settings of a beam. Add --beam with 2 or more, or leave them out.")
    if beam is not None and count > beam:
        raise UsageError(f"--count {count}: a beam of {beam} has fewer texts. Widen --beam, or leave it out.")

    from regarde.streaming.generation import generated

    model = open_run(run, device=device, engine=engine, threads=threads)
    model.require_language_model("generate", str(run))
    given = model.prompt(prompt)
    searches = _searches(model, length, count, temperature, top_k, top_p, seed, beam, alpha, prune)
    shown = sys.stdout is not None and sys.stdout.isatty() and not as_json
    followed = shown and searches[0].width == 1
    progress = generated(model, given, searches, followed=followed, threads=threads or min(CORES, count))
    if shown:
        return _show(progress)
    for each in progress:
        if each.answer:
            several = (each.answer, *each.answer.alternatives)
            write(_json_lines(several) if as_json else (f"{one.text}\n" for one in several))
    return None


def _searches(
    model: Translator,
    length: int | None,
    count: int,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    beam: int | None,
    alpha: float | None,
    prune: float | None,
) -> list[Search]:
    """One for each sample; a beam finds all texts at once."""
    from regarde.search import Sampling, adjusted
    from regarde.translate import TEMPERATURE

    rules = model.search.rules
    if length is not None:
        rules = rules.up_to(length)
    if beam is not None:
        return [replace(adjusted(model.search, beam=beam, n_best=count, alpha=alpha, prune=prune), rules=rules)]
    first = Sampling(
        temperature=TEMPERATURE if temperature is None else temperature,
        top_k=top_k or 0,
        top_p=1.0 if top_p is None else top_p,
        seed=seed,
        rules=rules,
    )
    return [replace(first, seed=seed + number) for number in range(count)]


def _show(progress: Iterable[GeneratedText]) -> None:
    """Text as it comes; what is on the screen stays."""
    written = ""
    for each in progress:
        whole = each.text if each.answer else each.text.rstrip(INCOMPLETE)
        if whole.startswith(written):
            tell([whole[len(written) :]])
            written = whole
        elif each.answer:  # a token has changed what was shown before it
            tell([f"\n{whole}"])
        if each.answer:
            tell(["\n", *(f"{other.text}\n" for other in each.answer.alternatives)])
            written = ""


def _json_lines(several: Iterable[Translation]) -> Iterable[str]:
    from regarde.display.tables import json_line

    return (json_line(replace(one, alternatives=()).as_json()) for one in several)
