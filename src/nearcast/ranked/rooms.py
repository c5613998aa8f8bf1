"""Places for lists of one length in a pool: those that were freed first, then new ones at its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def starts_of_rooms(freed: list[int], room: int, n_lists: int, n_used: int) -> tuple[NDArray[np.int64], int]:
    """Where `n_lists` lists begin, and how many of them are new; `freed` places that are taken are no longer in it."""
    n_again = min(len(freed), n_lists)
    start = np.empty(n_lists, np.int64)
    start[:n_again] = freed[len(freed) - n_again :]
    del freed[len(freed) - n_again :]
    n_new = n_lists - n_again
    start[n_again:] = n_used + room * np.arange(n_new)
    return start, n_new
