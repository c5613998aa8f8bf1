"""The arrays of the ranked-key inverted list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.kernels.pools import ListPool

CATCH_ALL = 0  # the list of clauses without keywords
NOT_POSTED = -1


class PostingArrays(NamedTuple):
    """List `1 + w` of the pool holds the clauses posted under keyword `w`, list CATCH_ALL those without keywords."""

    frequency: np.ndarray  # int64[n_keywords]: filed clauses that name the keyword
    posted_list: np.ndarray  # int32[n_clauses]: the list a clause stands in, or NOT_POSTED
    posted_at: np.ndarray  # int32[n_clauses]: its position there
    pool: ListPool
