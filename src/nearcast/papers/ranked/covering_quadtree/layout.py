"""Lists of subscriptions by cell and keyword, as flat arrays.

Paper: Chen et al. (CIQ), as Wang et al., Skype (VLDB 2016), §2.2 describe and compare it, without decay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

QUARTERS = 4

# Positions in `used`: postings given out so far; subscriptions filed; those that the frame was chosen for.
POSTINGS, FILED, FRAMED = 0, 1, 2


class Cover(NamedTuple):
    """The frame that is cut into cells, how often, and what distances mean. Outermost cells of the plane have no end."""

    is_lonlat: bool
    max_distance: float
    x0: float
    y0: float
    x1: float
    y1: float
    levels: int


class PostingArrays(NamedTuple):
    """List `i` is `first[i]` … `first[i] + size[i] - 1`, by number; its cell and keyword are number `i` of a number table."""

    first: np.ndarray  # int64[lists]
    size: np.ndarray  # int32[lists]
    room: np.ndarray  # int32[lists]
    subscriber: np.ndarray  # int32[postings]; links free chunks
    share: np.ndarray  # float32[postings], textual weight over the length of the subscription's vector, rounded up
    near: np.ndarray  # float32[subscriptions * levels * QUARTERS], spatial weight times proximity to a cell, rounded up
    free: np.ndarray  # int64[N_CLASSES]
    used: np.ndarray  # int64[3]
