"""Edge cases of subscribing, replacing, unsubscribing, saving and opening."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, Polygon
from nearcast.model.subscription import Subscription
from nearcast.testing.budget import current_budget
from nearcast.testing.conformance.base import Cases, messages_at
from nearcast.testing.oracles.boolean import Pair
from nearcast.testing.scenarios.boolean import BooleanComparison
from nearcast.testing.scenarios.worlds import WorldMaker

_HERE = (1.0, 1.0)
_AROUND = Box(0, 0, 2, 2)
_ELSEWHERE = Box(10, 10, 12, 12)


class UpdateCases(Cases):
    """The same answers whatever happened before."""

    def test_empty_batches(self) -> None:
        both = self.compare()
        both.subscribe([])
        both.unsubscribe([])
        assert both.publish([]) == set()
        both.subscribe([Subscription(1, ["a"], _AROUND)])
        both.subscribe([])
        assert both.publish([]) == set()
        assert both.publish(messages_at([_HERE])) == {Pair(1, 0)}

    def test_empty_batches_when_ids_are_text(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription("x", ["a"], _AROUND)])
        both.subscribe([])
        both.unsubscribe([])
        both.subscribe([Subscription("y", ["a"], Box(0, 0, 999, 1))])
        both.unsubscribe([5])
        assert both.publish(messages_at([_HERE])) == {Pair("x", 0)}

    def test_a_known_id_replaces(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _AROUND), Subscription(2, ["a"], _AROUND)])
        both.subscribe([Subscription(1, ["a"], _ELSEWHERE)])
        assert both.publish(messages_at([_HERE, (11, 11)])) == {Pair(2, 0), Pair(1, 1)}
        both.subscribe([Subscription(1, ["b"], _ELSEWHERE)])
        assert both.publish(messages_at([(11, 11)])) == set()
        both.subscribe([Subscription(1, interest="NOT a OR b", region=Circle(11, 11, 1))])
        assert both.publish([Message(5, ["c"], (11, 11)), Message(6, ["a"], (11, 11))]) == {Pair(1, 5)}
        both.subscribe([Subscription(1, ["a"], _AROUND)])
        assert both.publish(messages_at([_HERE, (11, 11)])) == {Pair(1, 0), Pair(2, 0)}
        assert both.matcher.stats()["subscriptions"] == 2

    def test_an_equal_subscription_again_changes_nothing(self) -> None:
        both = self.compare()
        for _ in range(5):
            both.subscribe([Subscription(1, ["a"], _AROUND)])
        assert both.publish(messages_at([_HERE])) == {Pair(1, 0)}

    def test_of_two_equal_ids_in_one_batch_the_first_is_kept(self) -> None:
        both = self.compare()
        batch = [Subscription(1, ["a"], _AROUND), Subscription(2, ["a"], _AROUND), Subscription(1, ["a"], _ELSEWHERE)]
        both.subscribe(batch)
        ((row, reason),) = both.matcher.report.rejected
        assert row == 2
        assert "1" in reason
        assert both.publish(messages_at([_HERE, (11, 11)])) == {Pair(1, 0), Pair(2, 0)}

    def test_a_duplicate_of_a_known_id_replaces_once(self) -> None:
        both = self.compare()
        both.subscribe([Subscription("x", ["a"], _AROUND)])
        both.subscribe([Subscription("x", ["a"], _ELSEWHERE), Subscription("x", ["b"], _AROUND)])
        assert both.publish([Message(0, ["a", "b"], _HERE), Message(1, ["a"], (11, 11))]) == {Pair("x", 1)}

    def test_unknown_ids_are_ignored_when_unsubscribing(self) -> None:
        both = self.compare()
        both.unsubscribe([1, 2, 3])
        both.subscribe([Subscription(1, ["a"], _AROUND), Subscription(2, ["a"], _AROUND)])
        both.unsubscribe([7, 1, -1, 1, 2**62])
        assert both.publish(messages_at([_HERE])) == {Pair(2, 0)}
        assert not both.matcher.report.rejected

    def test_deleting_twice_is_deleting_once(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(i, ["a"], _AROUND) for i in range(3)])
        for _ in range(3):
            both.unsubscribe([1])
        assert both.publish(messages_at([_HERE])) == {Pair(0, 0), Pair(2, 0)}
        assert both.matcher.stats()["subscriptions"] == 2

    def test_subscribing_again_after_deleting(self) -> None:
        both = self.compare()
        for round_ in range(4):
            both.subscribe([Subscription("x", ["a"], Box(round_, round_, round_ + 1, round_ + 1))])
            assert both.publish(messages_at([(round_, round_)])) == {Pair("x", 0)}
            both.unsubscribe(["x"])
            assert both.publish(messages_at([(round_, round_)])) == set()

    def test_deleting_everything_leaves_an_index_that_works(self) -> None:
        both = self.compare()
        for first in (0, 1000):
            both.subscribe([Subscription(first + i, ["a", "b"][: i % 3], Box(i, 0, i + 3, 3)) for i in range(50)])
            both.publish(messages_at([(5, 1), Box(0, 0, 100, 100)]))
            both.unsubscribe(list(range(2000)))
            assert both.publish(messages_at([(5, 1), Box(0, 0, 100, 100)])) == set()

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    @pytest.mark.parametrize("seed", range(current_budget().seeds))
    def test_inserted_after_the_build_and_deleted_and_inserted_again(self, space: str, seed: int) -> None:
        maker = WorldMaker(np.random.default_rng(seed), space)
        maker.has_polygons = False
        both = self.compare(space)
        subscriptions, messages = maker.subscriptions(600), maker.messages(80)
        both.subscribe(subscriptions[:300])
        both.publish(messages[:20])
        for start in range(300, 600, 60):
            both.subscribe(subscriptions[start : start + 60])
        both.publish(messages[20:40])
        gone = [s.id for s in subscriptions[::2]]
        both.unsubscribe(gone)
        both.publish(messages[40:60])
        both.subscribe([maker.subscription(id) for id in gone[:200]])
        both.subscribe(maker.subscriptions(100))
        both.publish(messages[60:])

    def test_one_by_one_equals_all_at_once(self) -> None:
        subscriptions, messages = WorldMaker(np.random.default_rng(5), "plane").world(80)
        together, single = self.compare(), self.compare()
        together.subscribe(subscriptions)
        for subscription in subscriptions:
            single.subscribe([subscription])
        answers = {pair for message in messages for pair in single.publish([message])}
        assert answers == together.publish(messages)

    def test_thousands_come_and_go_and_the_answers_stay(self) -> None:
        both = self.compare()
        rng = np.random.default_rng(11)
        staying = [Subscription(i, ["a", "b", "c"][: i % 4], Box(i % 9, i % 7, i % 9 + 2, i % 7 + 2)) for i in range(40)]
        staying += [
            Subscription(50 + i, interest="a AND NOT b OR c", region=Polygon([[(i, 0), (i + 3, 0), (i, 3)]])) for i in range(10)
        ]
        both.subscribe(staying)
        messages = [Message(i, ["a", "b", "c", "d"][: i % 5], (i % 10, i % 8)) for i in range(40)]
        before = both.publish(messages)
        per_round = self.n_many // 6
        for round_ in range(6):
            numbers = range(1000 + round_ * per_round, 1000 + (round_ + 1) * per_round)
            corners = rng.integers(0, 20, (per_round, 2)).tolist()
            both.subscribe(
                [Subscription(n, ["a", "d"], Box(x, y, x + 1, y + 1)) for n, (x, y) in zip(numbers, corners, strict=True)]
            )
            if round_ % 2 == 0:
                both.publish(messages[:5])
            both.unsubscribe(list(numbers))
        assert both.publish(messages) == before
        assert both.matcher.stats()["subscriptions"] == 50
        both.subscribe([Subscription(0, ["d"], _AROUND), Subscription(9999, ["d"], _AROUND)])
        both.publish(messages)

    def test_replacing_thousands_of_times(self) -> None:
        both = self.compare()
        for round_ in range(self.n_many // 50):
            both.subscribe([Subscription(i, ["a"], Box(round_, i, round_ + 1, i)) for i in range(30)])
        last = self.n_many // 50 - 1
        assert len(both.publish(messages_at([(last, 3), (last + 1, 4), (last - 1, 5), Box(0, 0, last, 29)]))) == 2 + 30

    def test_saved_and_opened_gives_the_same_answers_and_can_be_changed(self, tmp_path: Path) -> None:
        for seed, space in ((1, "lonlat"), (2, "plane"), (3, "plane"), (4, "lonlat")):
            maker = WorldMaker(np.random.default_rng(seed), space)
            both = self.compare(space)
            subscriptions, messages = maker.world(90)
            both.subscribe(subscriptions[:60])
            both.unsubscribe([s.id for s in subscriptions[:10]])
            before = both.publish(messages)
            both.save_and_open(tmp_path / f"world-{seed}")
            assert both.publish(messages) == before
            self._change(both, maker, subscriptions)
            after = both.publish(messages)
            # Into the same folder again: what is open must not be disturbed.
            both.save_and_open(tmp_path / f"world-{seed}")
            assert both.publish(messages) == after

    def _change(self, both: BooleanComparison, maker: WorldMaker, subscriptions: list[Subscription]) -> None:
        both.subscribe(subscriptions[60:])
        both.unsubscribe([s.id for s in subscriptions[5:40]])
        both.subscribe([maker.subscription(s.id) for s in subscriptions[::3]])

    def test_changes_after_opening_leave_the_folder_as_it_was(self, tmp_path: Path) -> None:
        both = self.compare()
        both.subscribe([Subscription(i, ["a"], _AROUND) for i in range(10)])
        both.matcher.save(tmp_path / "saved")
        changed = type(both.matcher).open(tmp_path / "saved")
        changed.unsubscribe(range(10))
        changed.subscribe([Subscription(77, ["new"], _ELSEWHERE)])
        again = type(both.matcher).open(tmp_path / "saved")
        assert len(again.publish(messages_at([_HERE]))) == 10
        assert again.publish([Message(1, ["new"], (11, 11))]) == []

    def test_an_empty_matcher_can_be_saved(self, tmp_path: Path) -> None:
        both = self.compare("lonlat")
        both.save_and_open(tmp_path / "empty")
        assert both.publish(messages_at([_HERE])) == set()
        both.subscribe([Subscription("x", ["a"], _AROUND)])
        assert both.publish(messages_at([_HERE])) == {Pair("x", 0)}
