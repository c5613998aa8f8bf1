"""The words that subscriptions are looked for under, and the shard of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.pipeline.plan.routing import WordOrder
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.prefixes import is_in_prefix, suffix_lengths
from nearcast.pipeline.ranked.word_homes import word_homes, word_ranks
from nearcast.ranked.subscriptions import RankedSubscriptionBatch


class FiledWords(NamedTuple):
    """Subscription `s` is looked for under `word[start[s]:start[s + 1]]`, rarest first, each in the shard `home`."""

    start: NDArray[np.int64]
    word: NDArray[np.int32]
    home: NDArray[np.int64]


def filed_words(
    plan: ShardPlan, order: WordOrder, weights: NDArray[np.float64], batch: RankedSubscriptionBatch, floor: NDArray[np.float64]
) -> FiledWords:
    """By a plan by words: all words of a subscription, or those of the prefix that its floor allows."""
    start, word = batch.keyword_start, batch.keyword
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rarity, tie = word_ranks(order, word)
    word = word[np.lexsort((tie, rarity, row))]
    if plan.mechanism != "keyword":
        is_in = is_in_prefix(start, suffix_lengths(start, weights[word]), batch.spatial_weight, floor)
        row, word = row[is_in], word[is_in]
        start = np.searchsorted(row, np.arange(len(start)))
    return FiledWords(start, word, word_homes(plan, order, word, batch.x[row], batch.y[row]))
