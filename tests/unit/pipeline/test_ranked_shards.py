"""The shards of a ranked stream, without Spark: all mechanisms tell what one process tells, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import nearcast as nc
from nearcast.pipeline.plan.shard_plan import ShardPlan
from nearcast.pipeline.ranked.batch_log import RankedBatch
from nearcast.pipeline.ranked.fused_shard import FusedShard
from nearcast.pipeline.ranked.homes import FUSED
from nearcast.pipeline.ranked.owner import Owner
from nearcast.pipeline.ranked.planning import plan_ranked
from nearcast.pipeline.ranked.reported_index import ReportedIndex
from nearcast.pipeline.ranked.scout import Scout
from nearcast.pipeline.ranked.split_shard import SplitShard
from nearcast.pipeline.settings import MECHANISMS
from nearcast.ranked.tick_engine import RankedEngine
from nearcast.testing.budget import current_budget
from support.ranked_input import WORDS, Change, StreamMaker, changes_of, rows_of

N_SEEDS = 40 if current_budget().is_soak else 1
N_BATCHES = 6
COUNTED, TIMED = nc.CountWindow(20), nc.TimeWindow(15.0)
Settings = dict[str, object]


def settings_of(window: nc.CountWindow | nc.TimeWindow, seed: int) -> Settings:
    idf = {word: 1 + 5 * number for number, word in enumerate(WORDS)} if seed % 2 else None
    return {
        "window": window,
        "space": "plane",
        "max_distance": 14.0,
        "idf": idf,
        "n_documents": None if idf is None else 100,
        # Little room in lists: floors rise and fall often.
        "buffer_parameters": {"spare": 0.5},
    }


class Shards:
    """The shards of a layout in one process."""

    def __init__(self, mechanism: str, n_shards: int, first: RankedBatch, settings: Settings, lag: int = 1) -> None:
        self.settings, self.n = settings, n_shards
        self.plans = [plan_ranked(mechanism, n_shards, "plane", first.put, first.messages) for _ in range(n_shards)]
        self.engines: list[FusedShard | SplitShard] = [
            self.fused(number, plan) if mechanism in FUSED else self.split(number, plan, lag)
            for number, plan in enumerate(self.plans)
        ]
        self.floors: list[pa.Table] = []
        self.number = 0

    def fused(self, number: int, plan: ShardPlan) -> FusedShard | SplitShard:
        return FusedShard.new(number, plan, self.settings)

    def split(self, number: int, plan: ShardPlan, lag: int) -> FusedShard | SplitShard:
        return SplitShard(number, plan, self.owner(), Scout(number, plan, self.settings), lag)

    def owner(self) -> Owner:
        return Owner(**self.settings)  # type: ignore[arg-type]

    def take(self, batch: RankedBatch) -> list[Change]:
        told = [engine.tell(self.number, batch, self.floors) for engine in self.engines]
        taken = [
            engine.take(self.number, batch, [tables[shard] for tables in told if shard in tables])
            for shard, engine in enumerate(self.engines)
        ]
        self.floors = [one.floors for one in taken if one.floors is not None]
        self.number += 1
        return sorted(row for one in taken for row in rows_of(one.changes))


def n_wrong(shards: type[Shards], mechanism: str, n_shards: int, seed: int, window: object = COUNTED, lag: int = 1) -> int:
    """How many batches a world of shards tells other changes of than one process."""
    assert isinstance(window, nc.CountWindow | nc.TimeWindow)
    settings = settings_of(window, seed)
    batches = list(StreamMaker(seed).batches(N_BATCHES))
    ranker = nc.Ranker(**settings)  # type: ignore[arg-type]
    world = shards(mechanism, n_shards, batches[0], settings, lag)
    return sum(world.take(batch) != changes_of(ranker, batch) for batch in batches)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_all_mechanisms_tell_the_changes_of_one_process(mechanism: str) -> None:
    """With both windows, and floors that are known after one, two or three batches."""
    for seed in range(N_SEEDS):
        for n_shards, window, lag in ((4, TIMED, 1), (5, COUNTED, 3)):
            known_after = 1 if mechanism in FUSED else lag + (lag > 1) * (seed % 2)
            assert n_wrong(Shards, mechanism, n_shards, 7 * seed + lag, window, known_after) == 0, (seed, n_shards)


# --- what must go wrong, or the test above shows nothing -------------------------------------------------------------------


class WithoutSelfService(Shards):
    """Owners that wait for others to learn of a floor that fell."""

    def owner(self) -> Owner:
        class Trusting(ReportedIndex):
            def _looks_itself(self) -> NDArray[np.int32]:
                return np.empty(0, np.int32)

            def find_more(self, subscribers, window, found, place, numbers):  # type: ignore[no-untyped-def]
                return super().find_more(subscribers, window, found, place, numbers[:0])

        return owner_with(Trusting, self.settings)


def owner_with(index: type[ReportedIndex], settings: Settings) -> Owner:
    class Chosen(Owner):
        index_class = index

    return Chosen(**settings)  # type: ignore[arg-type]


class WithScoresOfTheLast(Shards):
    """Copies that go by the score of the last message shown, and not by the floor down to which the list is known."""

    def owner(self) -> Owner:
        class Eager(Owner):
            def _floors(self, ranking: RankedEngine, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
                floors = super()._floors(ranking, numbers).copy()
                for at, number in enumerate(numbers.tolist()):
                    _, shown, score = ranking.lists(np.array([number], np.int32))
                    if len(shown) == ranking.subscriptions.layout().k[number]:
                        floors[at] = score[-1]
                return floors

        return Eager(**self.settings)  # type: ignore[arg-type]


class WithListsInCopies(Shards):
    """Every shard of a word has a list of its own, of the messages that come there; the union is told."""

    def __init__(self, mechanism: str, n_shards: int, first: RankedBatch, settings: Settings, lag: int = 1) -> None:
        super().__init__(mechanism, n_shards, first, settings, lag)
        self.rankers = [nc.Ranker(**settings) for _ in range(n_shards)]  # type: ignore[arg-type]

    def take(self, batch: RankedBatch) -> list[Change]:
        told: set[Change] = set()
        for number, (plan, ranker) in enumerate(zip(self.plans, self.rankers, strict=True)):
            put, messages = rows_with_words_of(plan, number, batch.put), rows_with_words_of(plan, number, batch.messages)
            told |= set(changes_of(ranker, RankedBatch.of(put, batch.removed, messages)))
        return sorted(told)


def rows_with_words_of(plan: ShardPlan, shard: int, table: pa.Table) -> pa.Table:
    from nearcast.pipeline.ranked.word_homes import concerns

    order = plan.word_order()
    words = [plan.keywords.add(row) for row in table["keywords"].to_pylist()]
    is_here = [bool(concerns(plan, order, ids, shard).any()) for ids in words]
    return table.filter(pa.array(is_here, pa.bool_()))


@pytest.mark.parametrize(
    ("shards", "mechanism"),
    [(WithoutSelfService, "keyword"), (WithScoresOfTheLast, "prefix"), (WithListsInCopies, "keyword")],
)
def test_without_what_makes_it_exact_it_is_not(shards: type[Shards], mechanism: str) -> None:
    assert n_wrong(shards, mechanism, 4, seed=1) > 0


def test_a_shard_that_was_saved_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    for mechanism in ("location", "prefix"):
        batches = list(StreamMaker(3).batches(N_BATCHES))
        settings = settings_of(COUNTED, 3)
        ranker = nc.Ranker(**settings)  # type: ignore[arg-type]
        world = Shards(mechanism, 3, batches[0], settings)
        for number, batch in enumerate(batches):
            assert world.take(batch) == changes_of(ranker, batch)
            if number != 2:
                continue
            kind: type[FusedShard] | type[SplitShard] = FusedShard if mechanism in FUSED else SplitShard
            plans = [plan_ranked(mechanism, 3, "plane", batches[0].put, batches[0].messages) for _ in range(3)]
            for shard in range(3):
                folder = tmp_path / f"{mechanism}-{number}-{shard}"
                folder.mkdir()
                world.engines[shard].save(folder)
                world.engines[shard] = kind.open(shard, plans[shard], settings, folder)
            world.plans = plans


@pytest.mark.parametrize(("before", "after"), [("hashing", "prefix"), ("keyword", "location"), ("prefix", "keyword_first")])
def test_a_stream_moves_to_other_shards_and_goes_on(tmp_path: Path, before: str, after: str) -> None:
    batches = list(StreamMaker(5).batches(N_BATCHES))
    settings = settings_of(TIMED, 5)
    ranker = nc.Ranker(**settings)  # type: ignore[arg-type]
    world = Shards(before, 2, batches[0], settings)
    for number, batch in enumerate(batches):
        if number == 4:
            tables: Sequence[pa.Table] = [engine.subscriptions() for engine in world.engines]
            (tmp_path / "old").mkdir()
            world.engines[0].save(tmp_path / "old")
            moved = Shards(after, 3, batch, settings)
            kind: type[FusedShard] | type[SplitShard] = FusedShard if after in FUSED else SplitShard
            moved.engines = [
                kind.moved(shard, moved.plans[shard], settings, tmp_path / "old", [table for table in tables if table.num_rows])
                for shard in range(3)
            ]
            moved.number, world = world.number, moved
        assert world.take(batch) == changes_of(ranker, batch), number
