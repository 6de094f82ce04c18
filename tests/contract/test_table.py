"""docs/combinations.md lists the combinations the contract is held against. `UPDATE_DOCS=1 pytest` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "combinations.md"

HEAD = """# Which combinations are tested

Placement, mechanism, score, normalizer, cell and encoder can be combined freely in the configuration. The contract
tests (tests/contract) run over the combinations below, in which every possible pair of choices occurs at least once.
The Transformer counts as a placement, without a cell and with self-attention as its encoder. tests/models also checks
its main properties with every mechanism and every score. In addition, the contract tests run over Sutskever with each
cell, with the source not reversed, and deep with residual connections; the stacked bidirectional encoder; Cho with
the paper's cells and with stacks of other cells; Bahdanau with both readouts and the paper's initialization; and the
Transformer with each kind of norm, position and tying, and with a different number of heads for attention to the
source.

"""


def test_the_table_in_the_docs_is_current(combinations: list[tuple[str, ...]], factors: dict[str, list[str]]) -> None:
    rows = [list(factors), ["---"] * len(factors), *combinations]
    table = HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(table, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == table
