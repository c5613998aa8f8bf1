"""Why a message is in the list of a subscription or not: how near, how similar, at which rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nearcast.model.regions import Box
from nearcast.model.relevance import distance, relevance, spatial_proximity, text_similarity
from nearcast.model.spaces import Space


def explain_score(
    space: Space,
    max_distance: float,
    place: tuple[float, float],
    own: Sequence[str],
    spatial_weight: float,
    where: Box,
    counts: Mapping[str, int],
    weights: Mapping[str, float],
) -> tuple[float | None, list[str]]:
    """The score, or None without a word in common, and the parts of it in words; `own` are the words of the subscription."""
    common = [word for word in own if word in counts]
    if not common:
        return None, [f"no word in common: it has {_shown(list(counts))}, wanted is one of {_shown(own)}"]
    away = distance(space, *place, where.x0, where.y0)
    near = spatial_proximity(away, max_distance)
    similar = text_similarity(counts, own, weights.__getitem__)
    score = relevance(spatial_weight, near, similar)
    unit = " m" if space.is_lonlat else ""
    return score, [
        f"words in common: {_shown(common)}; similarity {similar:.6g}, weighted {1 - spatial_weight:g}",
        f"{away:.6g}{unit} away; proximity {near:.6g}, weighted {spatial_weight:g}",
        f"relevance {score:.6g}",
    ]


def explain_rank(score: float, listed: Sequence[float], place: int | None, k: int, is_in_window: bool) -> list[str]:
    """Where the score stands in a list of scores, best first; `place` is that of the message itself, if it is there."""
    if place is not None:
        return [f"rank {place + 1} of {len(listed)}"]
    is_full = len(listed) == k
    last = f"the last of its {k} messages has {listed[-1]:.6g}" if is_full else f"it has {len(listed)} of {k} messages"
    if is_in_window:
        return [f"not in the list: {last}"]
    would = "it would enter now" if len(listed) < k or score >= listed[-1] else "it would not enter now"
    return [f"not a message of the window; {would}: {last}"]


def _shown(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in sorted(words)) or "no words"
