"""`regarde translate`: the filter of `regarde predict`, by its name for translation."""

from __future__ import annotations

import functools
from inspect import getdoc
from types import FunctionType

from regarde.cli.predict import predict

translate = FunctionType(predict.__code__, predict.__globals__, "translate", predict.__defaults__)
functools.update_wrapper(translate, predict, assigned=["__annotations__"], updated=[])  # its options

_shared = (getdoc(predict) or "").split("\n\n")[2:-1]
translate.__doc__ = "\n\n".join(
    [
        "Translate lines from standard input to standard output.",
        *_shared,
        'Example: echo "3 mars 1999" | regarde translate runs/dates',
    ]
)
