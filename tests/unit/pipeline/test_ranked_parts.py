"""Parts of a ranked stream: the order of a batch, prefixes, who is concerned with a word, the process that keeps shards."""

from __future__ import annotations

import json
import os
import signal
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.pipeline.keeping.areas import RankedArea
from nearcast.pipeline.keeping.batch_log import write_log
from nearcast.pipeline.keeping.calling import _processes, call_keeper
from nearcast.pipeline.keeping.keeper import HOST, address_file
from nearcast.pipeline.keeping.layouts import Layout, publish_layout
from nearcast.pipeline.keeping.live_shards import LiveShards, Step
from nearcast.pipeline.keeping.sequencing import latest_changes, ordered_messages
from nearcast.pipeline.keeping.shard_calls import IdKinds, TakeCall, TellCall
from nearcast.pipeline.plan.shard_tree import WordNode
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.layouts import RankedPlace, store_plan
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.prefixes import is_in_prefix, suffix_lengths
from nearcast.pipeline.ranked.rules import RankingRules
from nearcast.pipeline.ranked.word_homes import concerns, word_homes
from nearcast.pipeline.store import Store
from support.ranked_input import StreamMaker, changes_of, rows_of

RULES = RankingRules(20, 0.0, "plane", 14.0, 0)


def test_the_order_of_messages_follows_from_the_rows_alone() -> None:
    rows = [(3, 5.0, "a"), (1, 7.0, "b"), (2, 5.0, "c"), (2, 5.0, "b")]
    table = pa.table({"id": [r[0] for r in rows], "time": [r[1] for r in rows], "keywords": [[r[2]] for r in rows]})
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        ordered = ordered_messages(table.take(order))
        assert list(zip(ordered["id"].to_pylist(), ordered["keywords"].to_pylist(), strict=True)) == [
            (2, ["b"]),
            (2, ["c"]),
            (3, ["a"]),
            (1, ["b"]),
        ]


def test_of_several_changes_the_last_counts() -> None:
    rows = [("a", 1, 1.0), ("a", -1, 2.0), ("b", -1, 3.0), ("b", 1, 3.0), ("c", 1, 1.0)]
    table = pa.table(
        {"id": [r[0] for r in rows], "change": pa.array([r[1] for r in rows], pa.int8()), "time": [r[2] for r in rows]}
    )
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]):
        put, removed = latest_changes(table.take(order))
        assert put.to_pylist() == [{"id": "b"}, {"id": "c"}]
        assert removed.to_pylist() == ["a"]


def _sample(words: list[str]) -> pa.Table:
    return pa.table({"id": [1], "keywords": [words], "x": [0.0], "y": [0.0]})


def test_examples_7_and_8_of_the_paper() -> None:
    plan = plan_ranked("keyword", 4, "plane", _sample([f"w{n}" for n in range(1, 11)]), _sample(["w1"]))
    assert isinstance(plan.root, WordNode)
    by_name = {plan.keywords.space.name(word): word for word in range(plan.keywords.n)}
    for number in range(1, 11):
        plan.root.child_of_word[by_name[f"w{number}"]] = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3][number - 1]
    order = plan.word_order()
    own = np.array([by_name[word] for word in ("w1", "w2", "w5", "w6")], np.int32)
    nowhere = np.zeros(4)
    assert word_homes(plan, order, own, nowhere, nowhere).tolist() == [0, 0, 1, 2]
    message = np.array([by_name[word] for word in ("w6", "w7", "w8", "w9")], np.int32)
    assert [bool(concerns(plan, order, message, shard).any()) for shard in range(4)] == [False, False, True, True]
    # With the sums of weights the paper takes, and with lengths, which are shorter.
    start, weight = np.array([0, 4]), np.array([0.4, 0.3, 0.2, 0.1])
    sums = weight[::-1].cumsum()[::-1]
    at_six, floor = np.array([0.6]), np.array([0.8])
    assert is_in_prefix(start, sums, at_six, floor).tolist() == [True, True, False, False]
    lengths = suffix_lengths(start, weight)
    assert lengths[0] == 1.0
    assert (np.diff(lengths) < 0).all()
    # Without a floor all words count; with the highest none does, unless the place is all that matters.
    assert is_in_prefix(start, lengths, at_six, np.zeros(1)).all()
    assert not is_in_prefix(start, lengths, np.zeros(1), np.array([1.1])).any()
    assert is_in_prefix(start, lengths, np.ones(1), np.ones(1)).all()


class World:
    """A stream with one shard in a keeper."""

    def __init__(self, folder: Path) -> None:
        self.store, self.area = Store(folder / "work"), RankedArea("rank")
        self.batches = list(StreamMaker(9).batches(4))
        plan = plan_ranked("keyword", 2, "plane", self.batches[0].put, self.batches[0].messages)
        self.layout = Layout(store_plan(self.store, self.area, plan), 0, "keyword", 2)
        publish_layout(self.store, self.area, self.layout)
        self.place = RankedPlace(self.store, str(folder / "host"), "rank", RULES, self.layout)
        self.ranker = nc.Ranker(**RULES.engine_settings(self.store))
        self.expected = [changes_of(self.ranker, batch) for batch in self.batches]
        for number, batch in enumerate(self.batches):
            write_log(self.store, self.area, number, batch)

    def step(self, number: int) -> Step:
        return Step(number, self.batches[number].mark, self.batches[number - 1].mark if number else "")

    def calls(self, number: int) -> tuple[list[TellCall], list[TakeCall]]:
        told, kinds = self.area.told(number), IdKinds("bigint", "bigint")
        tell = [TellCall(self.place, shard, self.step(number), told) for shard in range(2)]
        take = [TakeCall(self.place, shard, self.step(number), told, "notes", kinds, number == 1) for shard in range(2)]
        return tell, take


def test_shards_are_found_again_from_a_snapshot_and_the_log(tmp_path: Path) -> None:
    world = World(tmp_path)
    shards = LiveShards()
    for number in range(4):
        tell, take = world.calls(number)
        for told in tell:
            told.run(shards)
        found = []
        for call in take:
            first = call.run(shards)
            # A task that runs again gets the same answer, here and in a process that knows nothing.
            assert call.run(shards) == first
            again = LiveShards()
            assert sorted(_rows(call.run(again))) == sorted(_rows(first))
            found += _rows(first)
        assert sorted(found) == world.expected[number], number
        if number == 2:
            shards = LiveShards()


def _rows(content: bytes) -> list[tuple[int, object, object, int, float]]:
    return rows_of(pa.ipc.open_stream(content).read_all())


def test_a_keeper_is_started_answers_and_is_replaced(tmp_path: Path) -> None:
    world = World(tmp_path)
    host = str(tmp_path / "host")
    address = address_file(tmp_path / "host" / "ranked")

    def take(number: int) -> list[tuple[int, object, object, int, float]]:
        tell, taken = world.calls(number)
        for call in tell:
            call_keeper(host, call)
        return sorted(row for call in taken for row in _rows(call_keeper(host, call)))

    assert take(0) == world.expected[0]
    assert address.stat().st_mode & 0o077 == 0
    facts = json.loads(address.read_text())
    process = facts["process"]
    # Somebody who does not know the secret, as he looks for another keeper: nothing happens.
    with pytest.raises(AuthenticationError):
        Client((HOST, facts["port"]), authkey=b"another")
    # A call that cannot be answered is an error of the caller, and nothing else.
    with pytest.raises(nc.NearcastError, match="FileNotFoundError"):
        call_keeper(host, TellCall(world.place, 0, Step(9, "no such mark", "nor this"), "told"))
    assert take(1) == world.expected[1]
    assert json.loads(address.read_text())["process"] == process
    # Killed, it is replaced by the next call.
    os.kill(process, signal.SIGKILL)
    assert take(2) == world.expected[2]
    second = json.loads(address.read_text())["process"]
    assert second != process
    # Without its file nobody can call it: it ends.
    address.unlink()
    while _is_alive(second):
        time.sleep(0.05)
    assert take(3) == world.expected[3]
    os.kill(json.loads(address.read_text())["process"], signal.SIGKILL)
    _processes.pop(tmp_path / "host" / "ranked").wait()


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_saved_batch_is_the_first_that_was_written(tmp_path: Path) -> None:
    store, area = Store(tmp_path), RankedArea("rank")
    first, second = StreamMaker(1).batches(2)
    assert write_log(store, area, 0, first) is first
    found = write_log(store, area, 0, second)
    assert found.mark == first.mark
    assert found.put.equals(first.put)
    assert found.messages.equals(first.messages)
    assert RankedBatch.from_bytes(second.to_bytes()).removed.equals(second.removed)
