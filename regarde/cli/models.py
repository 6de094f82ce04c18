"""`regarde models`: the presets, with equations, sizes and results."""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

from regarde.cli import completion
from regarde.cli.options import argument, option
from regarde.streaming.streams import tell

if TYPE_CHECKING:
    from regarde.training.presets import Preset


def models(
    name: Annotated[str | None, argument("[NAME]", "Preset. Default: list all.", complete=completion.presets)] = None,
    vocabulary: Annotated[
        int, option("N", "Size of both vocabularies, to count parameters.", least=5, most=10**7)
    ] = 30_000,
) -> None:
    """List the presets, or describe one: equations, sizes, the paper's results, differences from the paper.

    Example: regarde models rnnsearch-50
    """
    from regarde.training.presets import preset, presets

    known = presets()
    if name is None:
        width = max(len(name) for name in known)
        tell([f"{preset.name:<{width}}  {preset.about.title}\n" for preset in known.values()])
        return
    tell([_page(preset(name), vocabulary)])


def _page(chosen: Preset, vocabulary: int) -> str:
    import torch

    from regarde import config
    from regarde.attention import Attention, Score
    from regarde.interop import formats
    from regarde.training import recipe as recipes

    recipe = recipes.parse(chosen.recipe)
    with torch.device("meta"):  # counted, never allocated
        model = recipe.model.build(vocabulary, vocabulary)
    looking = dict.fromkeys(type(part) for part in model.modules() if isinstance(part, Attention | Score))
    sources = [sys.modules[type(recipe.model).__module__], *looking]  # once each: layers and heads share their equation
    equations = "\n\n".join(inspect.getdoc(source) or "" for source in sources)
    about = chosen.about
    reasons = formats.lacks(recipe.model)
    exported = [f"regarde export --to {name}: {f'no ({why})' if why else 'yes'}\n" for name, why in reasons.items()]
    facts = [("paper's figures", about.figures), ("where we differ", about.differs), ("reached here", about.reaches)]
    parts = [
        f"{chosen.name}: {about.title}\n{about.paper}\n",
        f"{equations}\n",
        f"parameters: {model.parameter_count():,} with vocabularies of {vocabulary:,}\n",
        *(textwrap.fill(f"{label}: {text}", 100, subsequent_indent="  ") + "\n" for label, text in facts if text),
        config.as_text({"model": config.as_table(recipe.model)}),
        "".join(exported),
        f"Train it: regarde train DATA --preset {chosen.name}\n",
    ]
    return "\n".join(parts)
