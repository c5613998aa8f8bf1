"""How relevant a message is to a ranked subscription: the definition, in plain Python.

Paper: Wang et al., Skype (VLDB 2016), §2. Here idf is smoothed and optional. Results are ordered by exactly these floats, so
every engine computes them with the same operations in the same order, whatever number it gives to a word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from nearcast.errors import NearcastError
from nearcast.model.spaces import Space, haversine_m

LONLAT_MAX_DISTANCE_M = 20_015_115
"""Half the circumference of the Earth: the default `max_distance` in lonlat."""

Word = TypeVar("Word", str, int)


def distance(space: Space, x0: float, y0: float, x1: float, y1: float) -> float:
    """Great-circle metres in lonlat; Euclidean in the plane, by plain squares (a difference beyond 1e154 is infinite)."""
    if space.is_lonlat:
        return haversine_m(x0, y0, x1, y1)
    dx, dy = x1 - x0, y1 - y0
    return math.sqrt(dx * dx + dy * dy)


def spatial_proximity(distance: float, max_distance: float) -> float:
    """1 at distance 0, falling linearly to 0 at `max_distance` and beyond."""
    if not max_distance > 0:
        raise NearcastError(f"max_distance is {max_distance!r}; expected a number > 0")
    return max(0.0, 1.0 - distance / max_distance)


def idf_weight(df: float, n_documents: float) -> float:
    """Smoothed inverse document frequency of a word that `df` of `n_documents` documents contain."""
    if df < 0 or n_documents < 0:
        raise NearcastError(f"df={df!r} and n_documents={n_documents!r} were given; expected counts >= 0")
    return math.log((n_documents + 1) / (df + 1)) + 1


def unit_weight(word: object) -> float:
    """The weight of every word when there is no idf table."""
    return 1.0


def text_similarity(
    message_counts: Mapping[Word, int], subscription_words: Iterable[Word], weight: Callable[[Word], float] = unit_weight
) -> float:
    """Cosine of the tf-idf vectors, each normalised over all its words; 0 without a common word.

    `weight` gives the idf of a word.
    """
    words = set(subscription_words)
    common = [word for word in words if message_counts.get(word, 0) > 0]
    if not common:
        return 0.0
    dot = steady_sum(message_counts[word] * (weight(word) * weight(word)) for word in common)
    message_norm = length(count * weight(word) for word, count in message_counts.items())
    subscription_norm = length(weight(word) for word in words)
    if message_norm == 0.0 or subscription_norm == 0.0:
        return 0.0
    return min(1.0, dot / (message_norm * subscription_norm))


def length(components: Iterable[float]) -> float:
    """The Euclidean length of a vector with these components."""
    return math.sqrt(steady_sum(component * component for component in components))


def steady_sum(values: Iterable[float]) -> float:
    """The sum from the smallest value up: the same to the last bit in any order of the values, and cheap in a kernel."""
    total = 0.0
    for value in sorted(values):
        total += value
    return total


def relevance(spatial_weight: float, proximity: float, similarity: float) -> float:
    """The weighted mean of proximity and similarity."""
    return spatial_weight * proximity + (1.0 - spatial_weight) * similarity
