"""How relevant a message is to a ranked subscription: the definition, in plain Python.

Paper: Wang et al., Skype (VLDB 2016), §2. Here idf is smoothed and may be left out, as the design says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from nearcast.errors import NearcastError

LONLAT_MAX_DISTANCE_M = 20_015_115
"""Half the circumference of the Earth: the default `max_distance` in lonlat."""

Word = TypeVar("Word", str, int)


def spatial_proximity(distance: float, max_distance: float) -> float:
    """1 at the same place, falling linearly to 0 at `max_distance` and beyond."""
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

    `weight` gives the idf of a word. Sums are exact (`fsum`), so that the order of words does not matter.
    """
    words = set(subscription_words)
    common = [word for word in words if message_counts.get(word, 0) > 0]
    if not common:
        return 0.0
    dot = math.fsum(message_counts[word] * weight(word) ** 2 for word in common)
    message_norm = math.sqrt(math.fsum((count * weight(word)) ** 2 for word, count in message_counts.items()))
    subscription_norm = math.sqrt(math.fsum(weight(word) ** 2 for word in words))
    if message_norm == 0.0 or subscription_norm == 0.0:
        return 0.0
    return min(1.0, dot / (message_norm * subscription_norm))


def relevance(spatial_weight: float, proximity: float, similarity: float) -> float:
    """The weighted mean of proximity and similarity."""
    return spatial_weight * proximity + (1.0 - spatial_weight) * similarity
