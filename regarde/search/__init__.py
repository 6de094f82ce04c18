"""decoder -> search: greedy, beam, sampling. A search calls two methods of a state, `repeat` and `select`.

search = Beam(size=5)
hypotheses = search(model, encoding)      # for each sentence, the best first
"""

from regarde.search.hypothesis import Hypothesis
from regarde.search.settings import Beam, Greedy, Rules, Sampling, Search, adjusted

__all__ = ["Beam", "Greedy", "Hypothesis", "Rules", "Sampling", "Search", "adjusted"]
