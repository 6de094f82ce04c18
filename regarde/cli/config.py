"""`regarde config`: what each setting of a recipe means."""

from __future__ import annotations

import textwrap
from typing import Annotated

from regarde.cli.options import argument
from regarde.errors import UsageError
from regarde.streaming.streams import tell


def config(
    key: Annotated[
        str | None, argument("[KEY]", "Setting, table of settings, or last part of a name. Default: all settings.")
    ] = None,
) -> None:
    """Describe the settings of a recipe: what each means, its bounds and its default.

    Change a setting with regarde train --set KEY=VALUE, or in a TOML file with --recipe. Names in parentheses are the
    kinds of the table for which a default applies: models, encoders, scores and so on.

    Example: regarde config training.optimizer
    """
    from regarde.config import did_you_mean
    from regarde.manual import settings
    from regarde.training.recipe import Recipe

    known = settings(Recipe)
    shown = [s for s in known.values() if not key or f".{s.key}.".startswith(f".{key}.")]
    shown = shown or [s for s in known.values() if s.key.endswith(f".{key}")]
    if not shown:
        words = dict.fromkeys([*known, *(word for path in known for word in path.split("."))])
        hint = did_you_mean(key or "", words)
        raise UsageError(f"{key}: no such setting.{hint} List all with: regarde config")
    tell(f"{s.key}\n{textwrap.indent(textwrap.fill(f'{s.sentence} {s.facts}', 110), '    ')}\n" for s in shown)
