"""Under which of its words a ranked subscription is looked for: so many, rarest first, that no message without them matters.

Paper: Wang et al. 2017 (Skype), §7.3.4: the loose prefix, Eq. 18 in its undivided form, with the floor θ in place of kScore:
the list is only known down to the floor. The words behind a prefix can add at most the length of their part of the vector,
which is less than the paper's sum of weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EPS = 1e-9


def suffix_lengths(start: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each word of each subscription the length of the vector of it and those behind it; the whole has length 1."""
    square = weight * weight
    total = np.concatenate([[0.0], np.cumsum(square)])
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rest = total[start[1:]][row] - total[:-1]
    whole = total[start[1:]][row] - total[start[:-1]][row]
    # Sums of this kind are off by a little; a bound must not be too low.
    return np.asarray(np.minimum(1.0, np.sqrt(np.maximum(rest, 0.0) / np.where(whole > 0, whole, 1.0)) + EPS))


def is_in_prefix(
    start: NDArray[np.int64], most_behind: NDArray[np.float64], spatial_weight: NDArray[np.float64], floor: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which words are in the prefixes: `most_behind[i]` is the most that word `i` and those behind it can be similar."""
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return np.asarray((1.0 - spatial_weight[row]) * most_behind >= floor[row] - spatial_weight[row] - EPS)
