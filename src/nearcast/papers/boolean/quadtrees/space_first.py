"""`space_first_quadtree`: an inverted list per quadtree cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.quadtrees.cell_index import CellIndex, CellParameters
from nearcast.papers.boolean.quadtrees.kernels.space_first import match_messages
from nearcast.papers.boolean.quadtrees.layout import MEAN_KEYWORDS, N_MESSAGES, PlaceArrays

# How many messages the frequency among the clauses weighs against what was counted in the history.
_PRIOR_MESSAGES = 16.0


@dataclass(frozen=True, slots=True)
class SpaceFirstQuadtreeParameters(CellParameters):
    """`message_length`: mean number of keywords of a message where there is no history (the paper's tweets have 9)."""

    message_length: float = 9.0

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is made anew, which the short form does not survive.
        CellParameters.__post_init__(self)
        if not self.message_length > 0:
            raise IndexParameterError(f"message_length={self.message_length!r} is not possible; expected more than 0")


class SpaceFirstQuadtree(CellIndex):
    """Each clause in the cheapest cells for its rarest keyword, posted there under that keyword."""

    name = "space_first_quadtree"
    aliases = ("iq-tree",)
    paper = "IQ-Tree of Chen et al. 2013, as described in Wang et al. 2017 (AP-Tree), section 3.1"
    summary = "quadtree cells chosen by cost; in each cell clauses are posted under their rarest keyword"
    parameters_class = SpaceFirstQuadtreeParameters
    parameters: SpaceFirstQuadtreeParameters
    is_space_first = True
    match_kernel = staticmethod(match_messages)

    def owner_weights(self, frequency: NDArray[np.int64], places: PlaceArrays) -> NDArray[np.float64]:
        """The share of messages that have the keyword. Paper: P(k).

        Without a history it is the keyword's share among all keywords of the clauses, times the keywords of a message: a
        message has that many chances to have it.
        """
        n_messages = float(places.facts[N_MESSAGES])
        mean = float(places.facts[MEAN_KEYWORDS]) if n_messages else self.parameters.message_length
        weight = np.ones(len(frequency) + 1)
        weight[1:] = np.minimum(1.0, frequency / max(1, int(frequency.sum())) * mean)
        if n_messages:
            counted = np.zeros(len(weight))
            n_known = min(len(weight), len(places.own_start) - 1)
            counted[:n_known] = np.diff(places.own_start)[:n_known]
            weight[1:] = (counted[1:] + _PRIOR_MESSAGES * weight[1:]) / (n_messages + _PRIOR_MESSAGES)
        return weight

    def owner_trees(self, n_posted: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.ones(len(n_posted), np.uint8)
