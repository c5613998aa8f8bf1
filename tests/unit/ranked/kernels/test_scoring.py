"""The sum over the words that a message and a subscription share, by lanes and word by word."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.kernels.compile import kernel
from nearcast.ranked.kernels.layouts import RECORD, WORDS, WindowArrays
from nearcast.ranked.kernels.scoring import NOTHING_IN_COMMON, dot_of
from nearcast.ranked.subscriptions import RankedSubscriptionBatch, RankedSubscriptions

N_KEYWORDS, GONE = 60, 7


@kernel
def dots_of_all(subscriptions, window, common, dots):  # type: ignore[no-untyped-def]
    n_places = window.keyword_start.size - 1
    for s in range(dots.size // n_places):
        for place in range(n_places):
            dots[s * n_places + place] = dot_of(subscriptions, window, s, place, common)


def runs_of(draw: np.random.Generator, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Sets of ascending keywords, one after the other, and where each begins."""
    sets = [np.sort(draw.choice(N_KEYWORDS, size, replace=False)) for size in sizes]
    return np.cumsum([0, *sizes]), np.concatenate(sets).astype(np.int32)


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_the_words_in_common_from_the_smallest_value_up(seed: int) -> None:
    draw = np.random.default_rng(seed)
    wanted = draw.integers(1, 9, 40).tolist()
    start, keyword = runs_of(draw, wanted)
    n, half = len(wanted), np.full(len(wanted), 0.5)
    subscriptions = RankedSubscriptions()
    batch = RankedSubscriptionBatch(np.arange(n, dtype=np.int32), half, half, half, np.ones(n, np.int32), start, keyword)
    subscriptions.put(batch, np.ones(N_KEYWORDS))
    # Words of messages also stand after those of a record; for a removed subscription all do.
    subscriptions.clear_keywords(np.array([GONE], np.int32))
    rows = subscriptions.layout()
    for s in range(n):
        if wanted[s] < 5:
            rows.record_words[2 * RECORD * s + WORDS + wanted[s] : 2 * RECORD * s + WORDS + 5] = draw.integers(0, N_KEYWORDS)
    sizes = [0, 1, 15, 16, 17, 31, 32, 33, 48, N_KEYWORDS, *draw.integers(1, N_KEYWORDS, 10).tolist()]
    message_start, message_keyword = runs_of(draw, sizes)
    value = draw.random(len(message_keyword))
    others = {name: np.empty(0) for name in WindowArrays._fields}
    window = WindowArrays(**others | {"keyword_start": message_start, "keyword": message_keyword, "value": value})
    dots = np.empty(n * len(sizes))
    dots_of_all(rows, window, np.empty(N_KEYWORDS), dots)
    n_none = 0
    for s in range(n):
        own = set(keyword[start[s] : start[s + 1]].tolist()) if s != GONE else set()
        for place in range(len(sizes)):
            at = range(message_start[place], message_start[place + 1])
            found = sorted(value[i] for i in at if int(message_keyword[i]) in own)
            assert dots[s * len(sizes) + place] == (sum(found) if found else NOTHING_IN_COMMON)
            n_none += not found
    assert n_none > n
