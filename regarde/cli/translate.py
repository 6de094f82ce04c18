"""`regarde translate`: the filter of `regarde predict`, by its name for translation."""

from __future__ import annotations

import functools
from inspect import getdoc
from typing import Any

from regarde.cli.predict import predict


@functools.wraps(predict)  # with its options
def translate(**options: Any) -> None:
    predict(**options)


_shared = (getdoc(predict) or "").split("\n\n")[2:-1]
translate.__doc__ = "\n\n".join(
    [
        "Translate lines from standard input to standard output.",
        *_shared,
        'Example: echo "3 mars 1999" | regarde translate runs/dates',
    ]
)
