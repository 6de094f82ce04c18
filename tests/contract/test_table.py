"""docs/combinations.md lists the combinations the contract is held against. `UPDATE_DOCS=1 pytest` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "combinations.md"

HEAD = """# Which combinations are tested

Placement, mechanism, score, normaliser, cell and encoder combine freely through the configuration. The contract tests
(tests/contract) run over the combinations below: every pair of choices that can go together occurs in at least one of
them. The Transformer is a placement too, without a cell and with self-attention for its encoder. It is also held to the
first promises with every mechanism and score there is (tests/models). Beside these the contract runs over Sutskever
with each cell, forward, deep with residuals; the stacked bidirectional encoder; Cho with the paper's cells and with
stacks of others; Bahdanau with either readout and the paper's own start; and the Transformer with each kind of norm,
position and tying, and with other heads to the source than its own.

"""


def test_the_table_in_the_docs_is_current(combinations: list[tuple[str, ...]], factors: dict[str, list[str]]) -> None:
    rows = [list(factors), ["---"] * len(factors), *combinations]
    table = HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(table, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == table
