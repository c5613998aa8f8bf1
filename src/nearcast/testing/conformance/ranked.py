"""Edge cases of ranked lists and windows, as one class of tests to inherit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nearcast.model.message import Message
from nearcast.model.regions import Box
from nearcast.model.subscription import RankedSubscription
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.testing.oracles.ranked import RankStep
from nearcast.testing.scenarios.ranked import RankedComparison, RankedRun

if TYPE_CHECKING:
    from nearcast.ranked.engine import Ranker

_HERE = (0.0, 0.0)


def _messages_at(distances: list[float], first: int = 0) -> list[Message]:
    """One message per distance from `_HERE`, all with the keyword `a`."""
    return [Message(first + number, ["a"], (x, 0.0)) for number, x in enumerate(distances)]


class RankedIndexTests:
    """Inherit, override `make_ranker`, and let pytest collect the subclass."""

    def make_ranker(self, **options: Any) -> Ranker:
        """An empty ranker with the index under test; `options` are those of `Ranker` except the index and its buffer."""
        raise NotImplementedError

    def compare(self, window: CountWindow | TimeWindow, **options: Any) -> RankedComparison:
        """An empty ranker and an empty oracle, in the plane unless `options` say otherwise."""
        options = {"window": window, "space": "plane", "max_distance": 10.0, **options}
        return RankedComparison(self.make_ranker(**options), RankedRun.make_oracle(**options))

    # --- order -------------------------------------------------------------------------------------------------------

    def test_the_nearest_of_equal_words_is_first(self) -> None:
        both = self.compare(CountWindow(9))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=2)])
        assert both.publish(_messages_at([4.0, 2.0])) == {RankStep(0, 1, 0, 1, 0.8), RankStep(1, 1, 1, 1, 0.9)}
        assert both.publish(_messages_at([3.0], first=2)) == {RankStep(2, 1, 0, -1, 0.8), RankStep(2, 1, 2, 1, 0.85)}
        assert both.ranker.top(1) == [(1, 0.9), (2, 0.85)]

    def test_of_equal_scores_the_newer_is_first(self) -> None:
        both = self.compare(CountWindow(9))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=2)])
        both.publish(_messages_at([1.0] * 5))
        assert [message for message, _ in both.ranker.top(1)] == [4, 3]
        both.publish([Message(number, ["b"], _HERE) for number in range(10, 18)])
        assert [message for message, _ in both.ranker.top(1)] == [4]

    @pytest.mark.parametrize("weight", [0.0, 1.0])
    def test_only_the_words_or_only_the_distance_may_count(self, weight: float) -> None:
        both = self.compare(CountWindow(20))
        both.subscribe([RankedSubscription(k, ["a", "b"], (k, 0), k=k, spatial_weight=weight) for k in range(1, 5)])
        words = (["a", "b"], ["a"], ["b", "c"], ["c"], ["a", "a", "b"])
        for number in range(30):
            both.publish([Message(number, words[number % 5], (number % 7, 0))])

    def test_beyond_the_maximal_distance_only_the_words_count(self) -> None:
        both = self.compare(CountWindow(9))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=9, spatial_weight=1.0), RankedSubscription(2, ["a"], _HERE, k=9)])
        both.publish(_messages_at([10.0, 10.5, 1e6, 9.0]))
        assert [score for _, score in both.ranker.top(2)] == pytest.approx([0.55, 0.5, 0.5, 0.5])

    def test_a_message_without_a_common_word_is_in_no_list(self) -> None:
        both = self.compare(CountWindow(9))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=9, spatial_weight=1.0)])
        assert both.publish([Message(1, ["b"], _HERE), Message(2, [], _HERE), Message(3, ["never", "heard"], _HERE)]) == set()

    def test_rare_words_weigh_more_and_weights_can_be_refreshed(self) -> None:
        both = self.compare(CountWindow(9), idf={"common": 99, "rare": 0}, n_documents=99)
        both.subscribe([RankedSubscription(1, ["common", "rare"], _HERE, k=1, spatial_weight=0.0)])
        both.publish([Message(1, ["rare", "x"], _HERE), Message(2, ["common", "x"], _HERE)])
        assert [message for message, _ in both.ranker.top(1)] == [1]
        both.refresh_idf({"common": 0, "rare": 99}, 99)
        assert [message for message, _ in both.ranker.top(1)] == [2]
        both.refresh_idf(None)
        assert [message for message, _ in both.ranker.top(1)] == [2]

    # --- windows -----------------------------------------------------------------------------------------------------

    def test_the_oldest_message_leaves_and_the_next_best_takes_its_rank(self) -> None:
        both = self.compare(CountWindow(3))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=1)])
        both.publish(_messages_at([0.0, 4.0, 2.0]))
        assert both.publish([Message(9, ["b"], _HERE)]) == {RankStep(3, 1, 0, -1, 1.0), RankStep(3, 1, 2, 1, 0.9)}

    def test_a_window_of_one_message(self) -> None:
        both = self.compare(CountWindow(1))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=3)])
        assert len(both.publish(_messages_at([1.0, 2.0, 3.0]))) == 5
        assert both.publish([Message(9, ["b"], _HERE)]) == {RankStep(3, 1, 2, -1, 0.85)}

    def test_a_list_longer_than_the_window_has_all_its_messages(self) -> None:
        both = self.compare(CountWindow(4))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=40)])
        both.publish(_messages_at([float(x % 6) for x in range(12)]))
        assert len(both.ranker.top(1)) == 4

    def test_a_window_of_time_takes_late_messages_and_drops_what_is_too_old(self) -> None:
        both = self.compare(TimeWindow(10.0))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=2)])
        times = [100.0, 95.0, 90.0, 80.0, None, 104.0]
        both.publish([Message(number, ["a"], (number, 0), time=time) for number, time in enumerate(times)])
        assert both.run.engine.report.rejected[0][0] == 4
        assert {message for message, _ in both.ranker.top(1)} == {0, 1}
        both.advance(105.0)
        assert {message for message, _ in both.ranker.top(1)} == {0, 5}
        assert both.advance(50.0) == set()
        both.advance(1e9)
        assert both.ranker.top(1) == []

    def test_messages_of_one_time_leave_together(self) -> None:
        both = self.compare(TimeWindow(5.0))
        both.subscribe([RankedSubscription(1, ["a"], _HERE, k=3)])
        both.publish([Message(number, ["a"], (number, 0), time=1.0) for number in range(6)])
        assert len(both.advance(6.0)) == 3

    def test_net_changes_leave_out_what_enters_and_leaves_within_a_call(self) -> None:
        both = self.compare(CountWindow(1), changes="net")
        both.subscribe([RankedSubscription(1, ["a"], _HERE)])
        assert both.publish(_messages_at([1.0, 2.0, 5.0])) == {RankStep(2, 1, 2, 1, 0.75)}

    # --- subscribing and rows ----------------------------------------------------------------------------------------

    def test_a_new_subscription_gets_what_is_in_the_window_and_a_replaced_one_the_difference(self) -> None:
        both = self.compare(CountWindow(3))
        both.publish([Message(1, ["a"], _HERE), Message(2, ["b"], _HERE), Message(3, ["a"], (2, 0))])
        assert {(c.message_id, c.change) for c in both.subscribe([RankedSubscription("x", ["a"], _HERE)])} == {(1, 1), (3, 1)}
        changes = both.subscribe([RankedSubscription("x", ["b"], _HERE), RankedSubscription("x", ["a"], _HERE)])
        assert {(c.message_id, c.change) for c in changes} == {(1, -1), (3, -1), (2, 1)}
        both.unsubscribe(["x", "x", "y"])
        assert both.publish([Message(4, ["b"], _HERE)]) == set()

    def test_rows_that_cannot_be_used_are_rejected_and_make_no_tick(self) -> None:
        both = self.compare(CountWindow(3), space="lonlat", max_distance=1e6)
        both.subscribe([RankedSubscription(1, ["a"], _HERE), RankedSubscription(2, ["a"], (181, 0))])
        batch = [
            Message(1, ["a"], _HERE),
            Message(1, ["a"], _HERE),
            Message(2, ["a"], Box(0, 0, 1, 1)),
            Message(3, ["a"], (0, 91)),
            Message(4, ["a"], Box(0, 0, 0, 0)),
            Message(5, ["a"], _HERE, time=1, expires=2),
        ]
        assert {(c.tick, c.message_id) for c in both.publish(batch)} == {(0, 1), (1, 4)}

    def test_many_come_and_go(self) -> None:
        both = self.compare(CountWindow(12))
        for round_ in range(8):
            ids = range(round_ * 10, round_ * 10 + 20)
            both.subscribe([RankedSubscription(i, ["a", "b", "c"][: 1 + i % 3], (i % 9, i % 5), 1 + i % 4) for i in ids])
            first = round_ * 6
            both.publish([Message(i, ["a", "b", "c"][i % 3 :], (i % 8, i % 4)) for i in range(first, first + 6)])
            both.unsubscribe([i for i in ids if i % 4 == round_ % 4])

    def test_saved_and_opened_goes_on_as_before(self, tmp_path: Path) -> None:
        for name, window in (("count", CountWindow(6)), ("time", TimeWindow(6.0))):
            both = self.compare(window, idf={"a": 3, "b": 1}, n_documents=5)
            both.save_and_open(tmp_path / f"empty-{name}")
            both.subscribe([RankedSubscription(i, ["a", "b"][: 1 + i % 2], (i, 0), 2) for i in range(8)])
            messages = [Message(i, ["a", "b"][i % 2 :], (i % 5, 0), time=i) for i in range(16)]
            both.publish(messages[:8])
            both.save_and_open(tmp_path / f"world-{name}")
            both.publish(messages[8:12])
            both.subscribe([RankedSubscription(3, ["b"], (0, 0), 4)])
            both.save_and_open(tmp_path / f"world-{name}")
            both.publish(messages[12:])
            both.unsubscribe([1, 2])
