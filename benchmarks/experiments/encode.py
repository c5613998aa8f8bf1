"""Encoding: words of messages into sorted sets of keyword ids, chunk by chunk; `method` says how.

One thread. "vocabulary" starts from Arrow strings, "python_dict" from Python strings; making those is not in its time. Both end
with the ids of each message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.experiments import Experiment
from benchmarks.plan import Series
from benchmarks.record import Record
from nearcast.columns.arrow import list_offsets
from nearcast.columns.messages import keyword_sets_of
from nearcast.columns.vocabulary import Vocabulary
from nearcast.errors import NearcastError, PlanError
from nearcast.timing import time_passes
from nearcast.workloads import open_workload

Sets = list[list[int]]


class _Method(NamedTuple):
    """`prepare(lists)` is not timed, `encode(prepared)` is; `sets(encoded)` makes results comparable."""

    prepare: Callable[[pa.Array], Any]
    encode: Callable[[Any], Any]
    sets: Callable[[Any], Sets]


def _with_vocabulary(vocabulary: Vocabulary) -> _Method:
    def encode(lists: pa.Array) -> Any:
        start = list_offsets(lists)
        members = lists.values.slice(start[0], start[-1] - start[0])
        return keyword_sets_of(start, vocabulary.encode(members, grow=False).ids)

    def sets(encoded: Any) -> Sets:
        start, members = encoded
        return [members[begin:end].tolist() for begin, end in zip(start[:-1] - start[0], start[1:] - start[0], strict=True)]

    return _Method(lambda lists: lists, encode, sets)


def _with_python_dict(vocabulary: Vocabulary) -> _Method:
    id_of = {word: number for number, word in enumerate(vocabulary.words().to_pylist())}

    def encode(messages: list[list[str]]) -> Any:
        find = id_of.get
        return [[find(word) for word in words] for words in messages]

    def sets(encoded: Any) -> Sets:
        return [sorted({number for number in numbers if number is not None}) for numbers in encoded]

    return _Method(lambda lists: lists.to_pylist(), encode, sets)


METHODS: dict[str, Callable[[Vocabulary], _Method]] = {"vocabulary": _with_vocabulary, "python_dict": _with_python_dict}


class Encode(Experiment[None]):
    """The vocabulary holds all words of the workload."""

    subject = "method"
    methods = METHODS
    metrics = ("us_per_message",)

    def read_parameters(self, series: Series) -> None:
        if series.parameters:
            raise PlanError(f"method {series.subject!r} of {self.plan.name!r} takes no parameters")

    def check_plan(self) -> None:
        if self.plan.check.against != "other":
            against = self.plan.check.against
            raise PlanError(f"plan {self.plan.name!r} checks against {against!r}; encodings are checked against 'other'")

    def prepare(self) -> None:
        point = self.point
        workload = open_workload(point.workload, **point.workload_parameters)
        self.vocabulary = Vocabulary()
        self.vocabulary.encode(workload.words, grow=True)
        lists = workload.with_words(workload.messages(point.size.n_messages, self.plan.seed))["keywords"].combine_chunks()
        self.chunks = [lists.slice(first, point.size.chunk) for first in range(0, len(lists), point.size.chunk)]
        self.sample = lists.slice(0, self.plan.check.messages)
        n_words = len(lists.flatten())
        self.facts = {"workload": workload.describe(), "vocabulary": len(self.vocabulary), "words": n_words}
        self.answers: list[Sets] = []

    def measure(self, series: Series) -> Record:
        method = METHODS[series.subject](self.vocabulary)
        self.answers.append(method.sets(method.encode(method.prepare(self.sample))))
        chunk_seconds = time_passes(self.chunks, method.encode, self.point.size.repetitions, method.prepare)
        return Record(dict(self.facts), chunk_seconds, np.array([len(chunk) for chunk in self.chunks], np.int64))

    def check(self, records: Sequence[Record]) -> None:
        series = self.point.series
        for position, record in enumerate(records):
            other = (position + 1) % len(records)
            if self.answers[position] != self.answers[other]:
                raise NearcastError(f"{series[position].label!r} and {series[other].label!r} give different ids")
            against = series[other].subject
            record.facts["check"] = {"against": against, "messages": len(self.sample), "equal": len(records) > 1}


EXPERIMENT = Encode
