"""`group_pruned`: lists by keyword in groups; a group is skipped if no member can be reached.

`individually_pruned` has the same lists and tests every entry: the difference is what groups save.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import resized, resized_fields
from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.kernels.pools import N_CLASSES, NO_CHUNK
from nearcast.papers.ranked.group_pruned.kernels.group import (
    ENTRIES,
    FILED,
    GROUPS,
    LAST_RANK,
    MOST,
    N_BOUNDS,
    N_FIELDS,
    UNRANKED,
    GroupedListArrays,
    GroupingRules,
)
from nearcast.papers.ranked.group_pruned.kernels.insert import find_entry, insert_many, rekey_many, remove_many
from nearcast.papers.ranked.group_pruned.kernels.match import run_ticks
from nearcast.papers.ranked.skyband.tick_index import TickArrays, TickIndex
from nearcast.ranked.index import DistanceScale
from nearcast.ranked.kernels.layouts import POSITION, TickRules
from nearcast.ranked.subscriptions import RankedSubscriptions

_BY_KEYWORD: dict[str, tuple[type[np.generic], int]] = {
    "rank": (np.int32, UNRANKED),
    "weight": (np.float64, 0),
    "first_group": (np.int64, 0),
    "n_groups": (np.int32, 0),
    "group_capacity": (np.int32, 0),
}
_BY_GROUP = {"first_entry": np.int64, "n_entries": np.int32, "entry_capacity": np.int32, "follows": np.int64}
# This many subscriptions wait to be scored, while their records are prefetched.
_PENDING = 256
_COUNT_NAMES = ("lists_seen", "groups_seen", "groups_placed", "groups_entered", "entries_seen", "scored")


@dataclass(frozen=True, slots=True)
class GroupParameters(Parameters):
    """`group_size`: most members of a group; `weight_groups`: the finest division by spatial weight, in parts of 1."""

    group_size: int = 8
    weight_groups: int = 10

    def __post_init__(self) -> None:
        if not 2 <= self.group_size <= 10_000:
            raise IndexParameterError(f"group_size={self.group_size!r} is not possible; expected 2 to 10000")
        if not 1 <= self.weight_groups <= 10_000:
            raise IndexParameterError(f"weight_groups={self.weight_groups!r} is not possible; expected 1 to 10000")


class GroupPruned(TickIndex):
    """Each subscription is filed under all its keywords, in groups similar in location, spatial weight and keyword share."""

    name = "group_pruned"
    aliases = ("igpt",)
    paper = "Wang et al., Skype (VLDB 2016)"
    summary = "lists by keyword, in groups by place and weight, sorted by threshold and left early"
    parameters_class = GroupParameters
    is_grouped = True
    """Whether groups are tested as a whole, and left early."""

    # Thresholds that rose by less are not filed again: pruning with a lower one is correct.
    laziness = 0.005

    def __init__(self, parameters: GroupParameters) -> None:
        super().__init__(parameters)
        self._clear(DistanceScale(False, 1.0))
        self._counts = np.zeros(len(_COUNT_NAMES), np.int64)

    def _clear(self, distances: DistanceScale) -> None:
        assert isinstance(self.parameters, GroupParameters)
        self._distances = distances
        self._grouping = GroupingRules(*distances, self.parameters.group_size, 1.0 / self.parameters.weight_groups)
        empty: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, (dtype, _) in _BY_KEYWORD.items()}
        empty |= {name: np.empty(0, dtype) for name, dtype in _BY_GROUP.items()}
        empty |= {"bound": np.empty((N_BOUNDS, 0)), "subscription": np.empty(0, np.int32), "entry": np.empty(0, np.float32)}
        empty |= {"after": np.empty(0, np.int64)}
        empty |= {name: np.full(N_CLASSES, NO_CHUNK, np.int64) for name in ("free_groups", "free_entries")}
        self._lists = GroupedListArrays(**empty, used=np.zeros(5, np.int64), key=np.empty(0))
        self._stamp = np.zeros(1, np.int64)
        self._message, self._bits = np.empty((4, 0)), np.empty(0, np.int64)
        self._over, self._opened, self._pending = np.empty(0), np.empty(0, np.int64), np.empty(_PENDING, np.int32)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def build(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], distances: DistanceScale) -> None:
        self._clear(distances)
        self.insert(subscriptions, threshold, subscriptions.alive())

    def insert(self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]) -> None:
        self._rank_keywords(subscriptions, numbers)
        n = subscriptions.n
        # With a reserve, so that not every new subscription copies the array.
        self._lists = resized_fields(self._lists, {"key": n + n // 8}, needed=n)
        rows, done = subscriptions.layout(), 0
        while True:
            done = int(insert_many(self._lists, rows, threshold, numbers, done, self._grouping))
            if done == len(numbers):
                return
            self._reserve(rows.n_words[numbers[done]])

    def delete(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        remove_many(self._lists, subscriptions.layout(), numbers)

    def thresholds_lowered(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        # A threshold that rose without being filed again may still be above the key.
        below = numbers[threshold[numbers] < self._lists.key[numbers]]
        rekey_many(self._lists, subscriptions.layout(), threshold, below)

    def thresholds_raised(
        self, subscriptions: RankedSubscriptions, threshold: NDArray[np.float64], numbers: NDArray[np.int32]
    ) -> None:
        above = numbers[threshold[numbers] > self._lists.key[numbers] + self.laziness]
        rekey_many(self._lists, subscriptions.layout(), threshold, above)

    def _rank_keywords(self, subscriptions: RankedSubscriptions, numbers: NDArray[np.int32]) -> None:
        """Rank new keywords before all others, the rarest of them first."""
        rows = subscriptions.layout()
        length = rows.n_words[numbers].astype(np.int64)
        at = np.repeat(rows.first[numbers] - np.cumsum(length) + length, length) + np.arange(int(length.sum()))
        words, count = np.unique(rows.keyword[at], return_counts=True)
        n_known = len(self._lists.rank)
        if len(words) and words[-1] >= n_known:
            n_words = int(words[-1]) + 1 + n_known // 4
            grown = {name: resized(getattr(self._lists, name), n_words, fill) for name, (_, fill) in _BY_KEYWORD.items()}
            self._lists = self._lists._replace(**grown)
        is_new = self._lists.rank[words] == UNRANKED
        new, order = words[is_new], np.argsort(-count[is_new], kind="stable")
        last = int(self._lists.used[LAST_RANK])
        self._lists.rank[new[order]] = last - 1 - np.arange(len(new))
        self._lists.weight[new] = rows.weight_of[new]
        self._lists.used[LAST_RANK] = last - len(new)

    def _reserve(self, n_words: int) -> None:
        """Reserve memory for groups and entries, at least for a subscription with `n_words` keywords."""
        lists = self._lists
        n_longest = int(lists.used[MOST])
        n_groups = lists.n_entries.size * 5 // 4 + int(n_words) * (n_longest + n_longest // 4 + 8)
        n_entries = lists.subscription.size * 5 // 4 + int(n_words) * 4 * (self._grouping.group_size + 8)
        n = dict.fromkeys((*_BY_GROUP, "bound"), n_groups) | dict.fromkeys(("subscription", "after"), n_entries)
        self._lists = resized_fields(lists, n | {"entry": n_entries * N_FIELDS})

    # --- messages ----------------------------------------------------------------------------------------------------

    def run_ticks(self, arrays: TickArrays, last: int, rules: TickRules) -> int:
        n_subscriptions = len(arrays.subscriptions.is_alive)
        if n_subscriptions >= len(self._stamp):
            # The last element counts messages.
            self._stamp = np.zeros(2 * n_subscriptions + 1, np.int64)
        n_words = int(np.diff(arrays.window.keyword_start[int(arrays.run.at[POSITION]) : last + 1]).max(initial=0))
        if n_words > self._message.shape[1]:
            self._message, self._bits = np.empty((4, 2 * n_words)), np.empty(2 * n_words, np.int64)
        n_groups = int(self._lists.used[MOST])
        if n_groups > len(self._over):
            self._over, self._opened = np.empty(2 * n_groups), np.empty(2 * n_groups, np.int64)
        scratch = (self._message, self._bits, self._over, self._opened, self._pending, self._stamp, self._counts)
        return int(run_ticks(self._lists, self._distances, scratch, self.is_grouped, *arrays, last, rules))

    # --- insight and disk --------------------------------------------------------------------------------------------

    def explain(self, subscriptions: RankedSubscriptions, number: int) -> list[str]:
        rows, lists = subscriptions.layout(), self._lists
        lines = []
        for word in rows.keyword[rows.first[number] : rows.first[number] + rows.n_words[number]].tolist():
            group, position = find_entry(lists, rows, number, word)
            of = f"group {group - lists.first_group[word] + 1} of {lists.n_groups[word]}"
            at = position - lists.first_entry[group] + 1
            lines.append(f"keyword {word}: {of}, place {at} of {lists.n_entries[group]}, threshold {lists.key[number]:.6g}")
        return lines

    def stats(self) -> dict[str, int | float]:
        lists = self._lists
        n_groups = int(lists.n_groups.sum())
        sizes = {"lists": int(np.count_nonzero(lists.n_groups)), "groups": n_groups, "filed": int(lists.used[FILED])}
        return {**super().stats(), **sizes, **dict(zip(_COUNT_NAMES, self._counts.tolist(), strict=True))}

    def arrays(self) -> dict[str, NDArray[Any]]:
        lists = self._lists
        n_groups, n_entries = int(lists.used[GROUPS]), int(lists.used[ENTRIES])
        used = {name: getattr(lists, name)[:n_groups] for name in _BY_GROUP}
        used |= {"bound": lists.bound[:, :n_groups], "subscription": lists.subscription[:n_entries]}
        used |= {"entry": lists.entry[: n_entries * N_FIELDS], "after": lists.after[:n_entries]}
        return {**lists._asdict(), **used}

    def restore(self, arrays: Mapping[str, NDArray[Any]], distances: DistanceScale) -> None:
        self._clear(distances)
        self._lists = GroupedListArrays(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})


@dataclass(frozen=True, slots=True)
class EntryParameters(GroupParameters):
    """Groups are read from beginning to end, so larger ones, contiguous in memory, are better."""

    group_size: int = 48


class IndividuallyPruned(GroupPruned):
    """The lists of `group_pruned`, read from beginning to end."""

    name = "individually_pruned"
    aliases = ("ipt",)
    paper = "Wang et al., Skype (VLDB 2016)"
    summary = "lists by keyword, every entry tested by words, place and threshold"
    parameters_class = EntryParameters
    is_grouped = False
