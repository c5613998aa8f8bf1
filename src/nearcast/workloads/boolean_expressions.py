"""Subscriptions whose interest mixes AND and OR, over the messages of `tweets`.

Paper: Wang et al. 2017 (AP-Tree), §5.1.1: the keywords of a sampled message are cut in two runs joined by AND or OR, each run
is all AND or all OR. NOT is ours: the paper has none.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.errors import WorkloadError
from nearcast.workloads.base import Space
from nearcast.workloads.pool import MessagePool
from nearcast.workloads.pooled import PooledWorkload
from nearcast.workloads.randomness import draws, integers, stream_key, uniforms
from nearcast.workloads.sampling import RangeReading, SubscriptionSampling
from nearcast.workloads.tables import KeywordLists
from nearcast.workloads.tweets import Tweets
from nearcast.workloads.words import Frequencies

OPERATORS = (" AND ", " OR ")


@dataclass(frozen=True)
class BooleanExpressions(PooledWorkload):
    """Messages and keywords are words (list<string>); subscriptions have an `interest` and no `keywords`.

    `n_keywords` is 3 to 7 in the paper (5 when the number of subscriptions varies); `negated` is the share of subscriptions
    that also exclude one word of the vocabulary.
    """

    name: ClassVar[str] = "boolean_expressions"
    description: ClassVar[str] = "interests with AND and OR over the messages of tweets, as words (AP-Tree)"
    space: ClassVar[Space] = "plane"

    range: RangeReading = "side"
    stop_words: Literal["kept", "removed"] = "kept"
    vocabulary_size: int = 1_700_000
    pool: int = 12_700_000
    seed: int = 7
    range_low: float = 0.01
    range_high: float = 1.0
    n_keywords: int | tuple[int, int] = 5
    negated: float = 0.0
    frequencies: Frequencies = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.negated <= 1:
            raise WorkloadError(f"negated={self.negated!r} is not a share; give a number from 0 to 1")

    @cached_property
    def base(self) -> Tweets:
        """The workload behind: same messages, same places."""
        own = ("negated",)
        return Tweets(**{field.name: getattr(self, field.name) for field in fields(self) if field.name not in own})

    @property
    def source(self) -> MessagePool:
        return self.base.source

    @property
    def sampling(self) -> SubscriptionSampling:
        return self.base.sampling

    @property
    def words(self) -> pa.Array:
        return self.base.words

    def numbered(self, numbers: NDArray[np.int64]) -> pa.Table:
        return self.with_words(super().numbered(numbers))

    def subscriptions(self, n: int, seed: int = 1) -> pa.Table:
        keywords, boxes = self.sample_subscriptions(n, seed)
        ids = np.arange(n)
        spelled = quoted(self.words)
        interest = interests(keywords, ids, spelled, seed)
        if self.negated:
            excluded = self.base.chooser.lists(ids, np.ones(n, np.int64), seed, "excluded keyword").keyword
            is_negated = uniforms(stream_key(seed, "is negated"), ids) < self.negated
            # A word that is also wanted would make the interest impossible.
            is_negated &= ~np.isin(_pairs(ids, excluded), _pairs(np.repeat(ids, np.diff(keywords.start)), keywords.keyword))
            with_not = pc.binary_join_element_wise("(", interest, ") AND NOT ", spelled.take(pa.array(excluded)), "")
            interest = pc.if_else(pa.array(is_negated), with_not, interest)
        return pa.table({"id": ids, "interest": interest, **boxes._asdict()})

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "frequencies": self.base.describe()["frequencies"]}


def quoted(words: pa.Array) -> pa.Array:
    """The words as an interest spells them: those that would read as an operator in quotes."""
    is_operator = pc.is_in(words, value_set=pa.array(["and", "or", "not"]))
    return pc.if_else(is_operator, pc.binary_join_element_wise('"', words, '"', ""), words)


def interests(keywords: KeywordLists, ids: NDArray[np.int64], words: pa.Array, seed: int) -> pa.Array:
    """One interest for each list of keywords; rows of the same form are written together."""
    length = np.diff(keywords.start).astype(np.int64)
    cut = 1 + ((draws(stream_key(seed, "cut"), ids) * np.maximum(length - 1, 1)) >> 32)
    operators = integers(stream_key(seed, "operators"), ids, 0, 7)
    forms, form = np.unique((length * 64 + cut) * 8 + operators, return_inverse=True)
    pieces, order = [], []
    for position, code in enumerate(forms.tolist()):
        rows = np.flatnonzero(form == position)
        n_words, left = divmod(code // 8, 64)
        columns = [words.take(pa.array(keywords.keyword[keywords.start[rows] + offset])) for offset in range(n_words)]
        pieces.append(_written(columns, left, code % 8))
        order.append(rows)
    if not pieces:
        return pa.array([], pa.string())
    back = np.empty(ids.size, np.int64)
    back[np.concatenate(order)] = np.arange(ids.size)
    return pa.concat_arrays(pieces).take(pa.array(back))


def _written(columns: list[pa.Array], left: int, operators: int) -> pa.Array:
    """Bit 0 of `operators` joins the runs, bits 1 and 2 join the words of the left and the right one."""
    between, first, second = (OPERATORS[(operators >> bit) & 1] for bit in range(3))
    runs = [_run(columns[:left], first), _run(columns[left:], second)]
    return pc.binary_join_element_wise(*(run for run in runs if run is not None), between)


def _run(columns: list[pa.Array], operator: str) -> pa.Array | None:
    if not columns:
        return None
    joined = pc.binary_join_element_wise(*columns, operator)
    return joined if len(columns) == 1 else pc.binary_join_element_wise("(", joined, ")", "")


def _pairs(ids: NDArray[np.int64], keyword: NDArray[np.int32]) -> NDArray[np.int64]:
    paired: NDArray[np.int64] = (ids << 32) | keyword
    return paired
