"""Kind "encode": words of messages into sorted sets of keyword ids, chunk by chunk; `method` says how.

One thread. "vocabulary" starts from Arrow strings; "python_dict" from Python strings, so what it takes to make those is not
in its number. Both end with the ids of each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.plan import Plan, Point
from benchmarks.record import Record
from nearcast.columns.arrow import list_offsets
from nearcast.columns.messages import keyword_sets_of
from nearcast.columns.vocabulary import Vocabulary
from nearcast.errors import NearcastError, PlanError
from nearcast.timing import time_passes
from nearcast.workloads import open_workload

Sets = list[list[int]]


class _Method(NamedTuple):
    """`prepare(lists)` is not timed, `encode(prepared)` is, `sets(encoded)` makes its results comparable."""

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


def measure_encoding(plan: Plan, point: Point, say: Callable[[str], None]) -> list[Record]:
    """One record per series; the words of the whole workload are the vocabulary."""
    for series in point.series:
        if series.subject not in METHODS or series.parameters:
            raise PlanError(f"method {series.subject!r} of {plan.name!r}: expected one of {', '.join(METHODS)}, no parameters")
    if plan.check.against != "other":
        raise PlanError(f"plan {plan.name!r} checks against {plan.check.against!r}; encodings are checked against 'other'")
    say("generating")
    workload = open_workload(point.workload, **point.workload_parameters)
    vocabulary = Vocabulary()
    vocabulary.encode(workload.words, grow=True)
    lists = workload.with_words(workload.messages(point.size.n_messages, plan.seed))["keywords"].combine_chunks()
    chunks = [lists.slice(first, point.size.chunk) for first in range(0, len(lists), point.size.chunk)]
    sample = lists.slice(0, plan.check.messages)
    records, answers = [], []
    for series in point.series:
        say(series.label)
        method = METHODS[series.subject](vocabulary)
        answers.append(method.sets(method.encode(method.prepare(sample))))
        chunk_seconds = time_passes(chunks, method.encode, point.size.repetitions, method.prepare)
        facts = {"workload": workload.describe(), "vocabulary": len(vocabulary), "words": len(lists.flatten())}
        records.append(Record(facts, chunk_seconds, np.array([len(chunk) for chunk in chunks], np.int64)))
    for position, record in enumerate(records):
        other = (position + 1) % len(records)
        if answers[position] != answers[other]:
            raise NearcastError(f"{point.series[position].label!r} and {point.series[other].label!r} give different ids")
        against = point.series[other].subject
        record.facts["check"] = {"against": against, "messages": len(sample), "equal": len(records) > 1}
    return records
