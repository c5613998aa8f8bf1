"""A batch over several threads, ids straight from clauses, and a merge beside the readers."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.engine.threads import BackgroundMerge, run_in_threads, split_rows, usable_threads
from nearcast.testing.budget import INTERPRETED, current_budget

N_WORDS = 20
# Where kernels are interpreted, fewer rows do.
IS_SLOW = current_budget() == INTERPRETED


def subscriptions(n: int, first: int = 0, seed: int = 1, step: int = 1, has_names: bool = False) -> pa.Table:
    rng = np.random.default_rng([seed, first])
    x, y = rng.random((2, n))
    ids = [first + step * i for i in range(n)]
    words = [[f"w{k}" for k in sorted({int(k) for k in rng.integers(0, N_WORDS, 2)})] for _ in range(n)]
    named = pa.array([f"s{i}" for i in ids]) if has_names else pa.array(ids, pa.int64())
    return pa.table({"id": named, "keywords": words, "x0": x, "y0": y, "x1": x + 0.2, "y1": y + 0.2})


def messages(n: int, has_names: bool = False) -> pa.Table:
    rng = np.random.default_rng(7)
    words = [[f"w{int(k)}" for k in rng.integers(0, N_WORDS, 8)] for _ in range(n)]
    ids = pa.array([f"m{i}" for i in range(n)]) if has_names else pa.array(np.arange(n) + 10)
    return pa.table({"id": ids, "keywords": words, "x": rng.random(n), "y": rng.random(n)})


def pairs(table: pa.Table) -> list[Any]:
    return sorted(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.parametrize("has_names", [False, True])
@pytest.mark.parametrize("step", [1, 3])
def test_ids_straight_from_clauses_are_those_of_a_scan(has_names: bool, step: int) -> None:
    # Ids that count up, ids with gaps, names; a replaced one stands elsewhere than its number.
    given = subscriptions(1200, 5, step=step, has_names=has_names)
    for is_replaced in (False, True):
        answers = []
        for index in ("auto", "scan"):
            matcher = nc.Matcher(index, "plane")
            matcher.subscribe_table(given)
            if is_replaced:
                matcher.subscribe_table(given.slice(3, 4))
            answers.append(pairs(matcher.match_table(messages(50, has_names))))
        assert answers[0] == answers[1]
        assert answers[0]


def test_threads_give_the_answers_of_one() -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions(200))
    n = 2500 if IS_SLOW else 5000
    given = messages(n)
    given = given.set_column(
        2, "x", pa.array([None if row == n - 7 else value for row, value in enumerate(given["x"].to_pylist())])
    )
    alone, report = matcher.match_table(given), matcher.report
    beside = matcher.match_table(given, threads=3)
    assert pairs(beside) == pairs(alone)
    assert beside.schema == alone.schema
    assert matcher.report == report
    assert [row for row, _ in report.rejected] == [n - 7]
    assert pairs(matcher.match_table(given, threads=None)) == pairs(alone)


def test_few_rows_are_not_worth_a_thread() -> None:
    assert [usable_threads(4, n) for n in (0, 1, 2047, 2048, 10**6)] == [1, 1, 1, 2, 4]
    assert usable_threads(None, 10**6) >= 1
    assert split_rows(0, 1) == [(0, 0)]
    assert split_rows(10, 3) == [(0, 3), (3, 3), (6, 4)]


def test_many_rows_are_cut_into_as_many_pieces_for_each_thread() -> None:
    pieces = split_rows(100_000, 2)
    assert len(pieces) == 14
    assert [first for first, _ in pieces] == [sum(length for _, length in pieces[:at]) for at in range(len(pieces))]
    assert {length for _, length in pieces} <= {7142, 7143}
    assert len(split_rows(8192, 1)) == 1


def test_pieces_come_back_in_order_whoever_took_them() -> None:
    names = set()

    def work(first: int, length: int) -> int:
        names.add(threading.current_thread().name)
        return first + length

    for _ in range(20):
        assert run_in_threads(work, split_rows(90_000, 3), 3) == [30_000 * number // 4 for number in range(1, 13)]
    # Helpers stay, with what they hold, instead of coming anew each time.
    assert len(names) <= 1 + max(1, (os.cpu_count() or 1) - 1)


@pytest.mark.parametrize("bad", [0, 45_000, 82_500])
def test_what_a_piece_runs_into_is_raised(bad: int) -> None:
    def work(first: int, length: int) -> int:
        return 1 // (first - bad)

    with pytest.raises(ZeroDivisionError):
        run_in_threads(work, split_rows(90_000, 3), 3)


def test_pieces_give_the_answers_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions(200))
    given = messages(300)
    given = given.set_column(
        2, "x", pa.array([None if row == 222 else value for row, value in enumerate(given["x"].to_pylist())])
    )
    whole, report = matcher.match_table(given), matcher.report
    monkeypatch.setattr("nearcast.engine.threads._MOST_ROWS", 50)
    in_pieces = matcher.match_table(given)
    assert in_pieces.combine_chunks().equals(whole.combine_chunks())
    assert matcher.report == report
    assert [row for row, _ in report.rejected] == [222]


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_impossible_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(nc.NearcastError, match=r"threads=.*expected"):
        nc.Matcher(space="plane").match_table(messages(1), threads=threads)


@pytest.fixture
def _merges_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.boolean.frequency_grid.index._MERGED_AT_ONCE", 0)
    monkeypatch.setattr("nearcast.boolean.frequency_grid.index._LEAST_DELTA", 50)


@pytest.mark.usefixtures("_merges_beside")
def test_a_merge_runs_beside_readers_and_loses_nothing() -> None:
    matcher, scanned = nc.Matcher(space="plane"), nc.Matcher("scan", "plane")
    given = messages(8 if IS_SLOW else 40)
    stop, problems = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                matcher.match_table(given)
            except Exception as problem:  # noqa: BLE001 - told below
                problems.append(problem)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for first in range(0, 900 if IS_SLOW else 3000, 300):
            for one in (matcher, scanned):
                one.subscribe_table(subscriptions(300, first))
                one.unsubscribe(range(first, first + 40, 3))
        matcher.wait_for_merge()
        assert not matcher.is_merging
    finally:
        stop.set()
        reader.join()
    assert not problems
    assert int(matcher.stats()["late"]) < 600
    assert pairs(matcher.match_table(given)) == pairs(scanned.match_table(given))


def test_settle_is_the_old_name_of_wait_for_merge() -> None:
    with pytest.warns(DeprecationWarning, match="use Matcher.wait_for_merge"):
        nc.Matcher().settle()


def test_who_waits_is_told_what_a_merge_ran_into() -> None:
    merge = BackgroundMerge()
    merge.wait()
    merge.start(lambda: 1 // 0, lambda merged: None)
    with pytest.raises(ZeroDivisionError):
        merge.wait()
    merge.wait()
    assert not merge.is_running


def test_a_report_is_about_the_last_call_of_the_same_thread() -> None:
    matcher = nc.Matcher("scan", "plane")
    matcher.subscribe([nc.Subscription(number, ["fire"], nc.Box(0, 0, 1, 1)) for number in range(3)])
    n_messages = {"many": 40, "few": 2}
    turn, seen = threading.Barrier(len(n_messages)), dict[str, list[int]]()

    def read(name: str) -> None:
        messages = [nc.Message(number, ["fire"], (0.5, 0.5)) for number in range(n_messages[name])]
        seen[name] = []
        for _ in range(20):
            matcher.publish(messages)
            # Everybody has published before anybody looks.
            turn.wait(30)
            seen[name].append(matcher.report.messages)

    readers = [threading.Thread(target=read, args=(name,)) for name in n_messages]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert seen == {"many": [40] * 20, "few": [2] * 20}
    assert matcher.report.messages == 0
