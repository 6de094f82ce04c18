"""decoder -> search: greedy, beam, sampling. A search knows two verbs of a state, `repeat` and `select`.

search = Beam(size=5)
hypotheses = search(model, encoding)      # for each sentence, the best first
"""

from __future__ import annotations

from dataclasses import replace

from regarde.search.beam import Beam
from regarde.search.hypothesis import Hypothesis
from regarde.search.rules import Rules
from regarde.search.single import Greedy, Sampling

Search = Greedy | Beam | Sampling

__all__ = ["Beam", "Greedy", "Hypothesis", "Rules", "Sampling", "Search", "adjusted"]


def adjusted(
    search: Search,
    *,
    beam: int | None = None,
    n_best: int = 1,
    alpha: float | None = None,
    prune: float | None = None,
) -> Search:
    """The same search with other settings; several answers need a beam at least as wide, 5 unless said."""
    if beam is None and n_best == search.n_best and alpha is None and prune is None:
        return search
    size = beam or max(search.width, n_best, 5 if n_best > 1 else 1)
    if size == 1:
        return Greedy(rules=search.rules)
    wide = search if isinstance(search, Beam) else Beam(rules=search.rules)
    alpha, prune = (wide.alpha if alpha is None else alpha), (wide.prune if prune is None else prune)
    return replace(wide, size=size, n_best=n_best, alpha=alpha, prune=prune)
