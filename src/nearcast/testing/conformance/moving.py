"""Edge cases of subscriptions that move and messages that expire, as one class of tests to inherit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.errors import NearcastError, SchemaError
from nearcast.model.delivery import Change
from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, Polygon
from nearcast.model.subscription import Subscription
from nearcast.testing.oracles.moving import MovingOracle, Step
from nearcast.testing.scenarios.moving import MovingComparison
from nearcast.testing.scenarios.worlds import WorldMaker

if TYPE_CHECKING:
    from nearcast.moving.engine import MovingMatcher

_LEFT, _RIGHT = Box(0, 0, 2, 2), Box(4, 0, 6, 2)


class MovingIndexTests:
    """Inherit, override `make_matcher`, and let pytest collect the subclass."""

    n_many = 1500
    """Subscriptions in the cases about large numbers; choose it smaller where kernels are interpreted."""

    def make_matcher(self, space: str = "lonlat", **options: Any) -> MovingMatcher:
        """An empty matcher with the index under test."""
        raise NotImplementedError

    def compare(self, space: str = "plane") -> MovingComparison:
        return MovingComparison(self.make_matcher(space), MovingOracle(space))

    # --- moving ------------------------------------------------------------------------------------------------------

    def test_a_message_enters_and_leaves_as_the_subscription_travels(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _LEFT)])
        assert both.publish([Message(7, ["a", "b"], (1, 1)), Message(8, ["a"], (5, 1))]) == {Step(1, 7, 1)}
        assert both.move({1: _RIGHT}) == {Step(1, 7, -1), Step(1, 8, 1)}
        assert both.move({1: Box(1, 0, 5, 1)}) == {Step(1, 7, 1)}
        assert both.move({1: None}) == set()
        assert both.move({1: Box(9, 9, 9, 9)}) == {Step(1, 7, -1), Step(1, 8, -1)}

    def test_borders_count_before_and_after_a_move(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], Box(0, 0, 1, 1)), Subscription(2, [], Box(1, 1, 1, 1))])
        both.publish([Message(x * 10 + y, ["a"], (x, y)) for x in range(4) for y in range(4)])
        for box in (Box(1, 1, 2, 2), Box(1, 1, 1, 1), Box(1, 0, 3, 0), Box(-5, -5, 0, 0), Box(0, 0, 3, 3)):
            both.move({1: box, 2: box})

    def test_unknown_ids_and_bad_regions_are_rejected(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription(1, ["a"], _LEFT), Subscription(2, ["a"], _LEFT)])
        both.publish([Message(7, ["a"], (5, 1))])
        assert both.move({9: _RIGHT, 1: Box(500, 0, 501, 0), 2: _RIGHT}) == {Step(2, 7, 1)}
        reasons = dict(both.matcher.report.rejected)
        assert "no subscription 9" in reasons[0]
        assert "500" in reasons[1]
        with pytest.raises(NearcastError, match="expected a dict"):
            both.matcher.move([(1, _RIGHT)])  # type: ignore[arg-type]

    def test_every_shape_travels_and_may_become_another(self) -> None:
        shapes = [Circle(1, 1, 1), Polygon([[(0, 0), (3, 0), (0, 3)]]), Box(0, 0, 2, 1), Circle(2, 2, 1.5), None]
        for space in ("plane", "lonlat"):
            both = self.compare(space)
            both.subscribe([Subscription(i, interest="a OR b AND NOT c", region=shape) for i, shape in enumerate(shapes)])
            words: tuple[list[str], ...] = (["a"], ["b"], ["b", "c"], ["a", "c"], [])
            both.publish([Message(i, words[i % 5], (i % 6, i // 6)) for i in range(36)])
            for round_ in range(len(shapes)):
                both.move({i: shapes[(i + round_ + 1) % len(shapes)] for i in range(len(shapes))})

    def test_boxes_and_the_first_other_shape_move_in_one_call(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(i, ["a"], _LEFT if i % 2 else _RIGHT) for i in range(6)])
        both.publish([Message(i, ["a"], (i, 1)) for i in range(7)])
        assert both.move({0: _LEFT, 1: Circle(5, 1, 1), 2: Box(3, 0, 4, 2), 3: _RIGHT})

    def test_a_lonlat_circle_travels_across_the_antimeridian(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription(1, ["a"], Circle(178.0, 0.0, 150_000.0))])
        both.publish([Message(i, ["a"], (x, 0.0)) for i, x in enumerate((177.5, 179.5, -179.5, -178.2, -177.0))])
        for x in (179.0, 179.9, 180.0, -180.0, -179.2, -178.0, 178.5):
            both.move({1: Circle(x, 0.25, 150_000.0)})

    def test_several_moves_of_one_subscription_in_a_table_count_as_one(self) -> None:
        matcher = self.make_matcher("plane")
        matcher.subscribe([Subscription(1, ["a"], _LEFT), Subscription(2, ["a"], _LEFT)])
        matcher.publish([Message(7, ["a"], (1, 1)), Message(8, ["a"], (5, 1)), Message(9, ["a"], (50, 1))])
        table = pa.table(
            {"id": [1, 2, 1, 1, 5], "x0": [49.0, 4, 4, 0, 0], "y0": [0.0] * 5, "x1": [51.0, 6, 6, 1, 1], "y1": [2.0] * 5}
        )
        changes = {tuple(row.values()) for row in matcher.move_table(table).to_pylist()}
        assert changes == {(2, 7, -1), (2, 8, 1)}
        assert [row for row, _ in matcher.report.rejected] == [4]
        assert matcher.current(1) == {7}

    def test_a_table_of_moves_takes_regions_too(self) -> None:
        matcher = self.make_matcher("plane")
        matcher.subscribe([Subscription("x", ["a"], _LEFT), Subscription("y", ["a"], _LEFT)])
        matcher.publish([Message("m", ["a"], (5, 1)), Message("n", ["a"], (1, 1))])
        wkt = ["POLYGON ((4 0, 8 0, 4 4, 4 0))", None, "POLYGON ((nonsense"]
        table = pa.table({"id": ["x", "y", "x"], "region": wkt, **{s: [None, 4.0, None] for s in ("x0", "y0", "x1", "y1")}})
        changes = matcher.move_table(table)
        assert changes.schema.names == ["subscription_id", "message_id", "change"]
        assert changes.schema.field("change").type == pa.int8()
        assert {tuple(row.values()) for row in changes.to_pylist()} == {("x", "m", 1), ("x", "n", -1), ("y", "n", -1)}
        assert [row for row, _ in matcher.report.rejected] == [2]
        with pytest.raises(SchemaError, match="expected x0"):
            matcher.move_table(pa.table({"id": ["x"]}))

    # --- messages and time -------------------------------------------------------------------------------------------

    def test_messages_leave_when_they_expire(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _LEFT)])
        both.publish([Message(i, ["a"], (1, 1), time=0, expires=i) for i in range(1, 5)])
        assert both.advance(0.5) == set()
        assert both.advance(2) == {Step(1, 1, -1), Step(1, 2, -1)}
        assert both.advance(1) == set()
        assert both.matcher.now == 2
        assert both.publish([Message(9, ["a"], (1, 1), time=3)]) == {Step(1, 3, -1), Step(1, 9, 1)}
        assert both.move({1: _RIGHT}) == {Step(1, 4, -1), Step(1, 9, -1)}

    def test_what_comes_and_goes_within_a_batch_is_not_reported(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _LEFT)])
        batch = [Message(1, ["a"], (1, 1), time=0, expires=3), Message(2, ["a"], (1, 1), time=5)]
        assert both.publish(batch) == {Step(1, 2, 1)}
        # Both are late; one has expired when it arrives, one has not.
        late = [Message(3, ["a"], (1, 1), time=1, expires=5), Message(4, ["a"], (1, 1), time=1, expires=6)]
        assert both.publish(late) == {Step(1, 4, 1)}
        assert both.matcher.report.rejected == []

    def test_the_id_of_a_living_message_is_taken_and_that_of_a_dead_one_is_free(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _LEFT), Subscription(2, ["a"], _RIGHT)])
        both.publish([Message(7, ["a"], (1, 1), time=0, expires=2)])
        again = [Message(7, ["a"], (5, 1), time=1), Message(8, ["a"], (5, 1)), Message(8, ["a"], (5, 1))]
        assert both.publish(again) == {Step(2, 8, 1)}
        assert both.publish([Message(7, ["a"], (5, 1), time=2, expires=4)]) == {Step(1, 7, -1), Step(2, 7, 1)}
        # One leaves the result and another one with the same id enters it: no change of ids, so no change is reported.
        assert both.publish([Message(7, ["a"], (5, 2), time=4)]) == set()

    def test_times_may_be_dates_and_columns_of_any_kind(self) -> None:
        matcher = self.make_matcher("plane")
        matcher.subscribe([Subscription(1, ["a"], _LEFT)])
        start = datetime(2020, 1, 1, tzinfo=UTC)
        matcher.publish([Message(1, ["a"], (1, 1), time=start, expires=start + timedelta(seconds=10))])
        common = {"keywords": [["a"]], "x": [1.0], "y": [1.0]}
        seconds = start.timestamp()
        stamp = pa.array([start + timedelta(seconds=20)], pa.timestamp("ms", "UTC"))
        matcher.publish_table(pa.table({"id": [2], **common, "time": [int(seconds) + 1], "expires": stamp}))
        matcher.publish_table(pa.table({"id": [3], **common, "time": [seconds + 2], "expires": pa.nulls(1)}))
        assert matcher.current(1) == {1, 2, 3}
        east = timezone(timedelta(hours=5))
        assert matcher.advance((start + timedelta(seconds=10)).astimezone(east)) == [Change(1, 1, -1)]
        assert matcher.advance_table(seconds + 20).to_pylist() == [{"subscription_id": 1, "message_id": 2, "change": -1}]
        rows = {"id": [4, 5, 6], "keywords": [["a"]] * 3, "x": [1.0] * 3, "y": [1.0] * 3}
        changes = matcher.publish_table(pa.table({**rows, "time": [99.0, np.inf, np.nan], "expires": [99.0, None, None]}))
        assert changes.num_rows == 0
        assert [row for row, _ in matcher.report.rejected] == [0, 1, 2]
        with pytest.raises(SchemaError, match="column 'time'"):
            matcher.publish_table(pa.table({"id": [4], **common, "time": ["noon"]}))
        with pytest.raises(NearcastError, match="time zone"):
            matcher.advance(datetime(2020, 1, 1))

    def test_ids_of_messages_are_of_one_kind(self) -> None:
        matcher = self.make_matcher("plane")
        matcher.subscribe([Subscription(1, ["a"], _LEFT)])
        assert matcher.publish([Message("m", ["a"], (1, 1)), Message(5, ["a"], (1, 1))]) == [Change(1, "m", 1)]
        assert [row for row, _ in matcher.report.rejected] == [1]

    def test_areas_are_messages_too(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(i, ["a"][: i % 2], Box(i, i, i + 1, i + 1)) for i in range(8)])
        locations = [Box(0, 0, 3, 3), Box(2, 2, 2, 9), Box(-9, -9, 99, 99), Box(4, 4, 4, 4)]
        both.publish([Message(i, ["a"], location, time=0, expires=5 + i) for i, location in enumerate(locations)])
        for step in range(4):
            both.move({i: Box(i + step, i, i + step + 1, i + 3) for i in range(8)})
            both.advance(4.0 + step)

    # --- subscribing -------------------------------------------------------------------------------------------------

    def test_a_new_subscription_gets_what_is_alive_also_by_words_nobody_asked_for_before(self) -> None:
        both = self.compare()
        both.publish([Message(7, ["a", "new"], (1, 1)), Message(8, ["a"], (1, 1)), Message(9, [], (1, 1))])
        assert both.subscribe([Subscription(1, ["new", "a"], _LEFT)]) == {Step(1, 7, 1)}
        assert both.subscribe([Subscription(2, ["a"], _LEFT)]) == {Step(2, 7, 1), Step(2, 8, 1)}
        assert len(both.subscribe([Subscription(3, [], _LEFT), Subscription(4, interest="NOT new", region=None)])) == 5
        both.publish([Message(10, ["later"], (1, 1))])
        assert both.subscribe([Subscription(5, ["later"], _LEFT)]) == {Step(5, 10, 1)}

    def test_replacing_reports_the_difference_and_unsubscribing_nothing(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _LEFT)])
        both.publish([Message(7, ["a"], (1, 1)), Message(8, ["a", "b"], (2, 2)), Message(9, ["b"], (1, 1))])
        assert both.subscribe([Subscription(1, ["b"], _LEFT)]) == {Step(1, 7, -1), Step(1, 9, 1)}
        both.unsubscribe([1, 1, 99])
        assert both.matcher.current(1) == both.matcher.current(99) == set()
        assert both.publish([Message(10, ["b"], (1, 1))]) == set()
        assert len(both.subscribe([Subscription(1, ["b"], _LEFT), Subscription(1, ["a"], _LEFT)])) == 3

    def test_thousands_travel_come_and_go(self) -> None:
        both = self.compare()
        rng = np.random.default_rng(3)
        n = self.n_many // 6
        words = ("a", "b", "c", "d", "e", "f")

        def some() -> list[str]:
            return [words[i] for i in rng.choice(6, int(rng.integers(4)), replace=False, p=[0.4, 0.25, 0.15, 0.1, 0.05, 0.05])]

        def box() -> Box:
            x, y = rng.integers(0, 40, 2).tolist()
            return Box(x, y, x + int(rng.integers(5)), y + int(rng.integers(5)))

        for round_ in range(6):
            both.subscribe([Subscription(round_ * n // 2 + i, some(), box()) for i in range(n)])
            batch = [
                Message(
                    round_ * n + i, [*some(), *some()], (*rng.integers(0, 44, 2).tolist(),), time=round_, expires=round_ + 2
                )
                for i in range(n)
            ]
            both.publish(batch)
            both.move({int(i): box() for i in rng.permutation(n * 3)[: n // 2]})
            both.unsubscribe(rng.permutation(n * 3)[: n // 5].tolist())
        both.advance(99)
        assert both.matcher.stats()["messages"] == 0

    # --- insight and disk --------------------------------------------------------------------------------------------

    def test_stats_explain_and_report(self) -> None:
        matcher = self.make_matcher("plane")
        matcher.subscribe([Subscription(1, ["a"], _LEFT), Subscription(2, interest="a AND NOT b", region=Circle(1, 1, 1))])
        matcher.publish([Message(7, ["a"], (1, 1), time=3, expires=9)])
        assert (matcher.report.messages, matcher.report.matches) == (1, 2)
        assert matcher.report.candidates >= 2
        stats = matcher.stats()
        assert (stats["subscriptions"], stats["messages"]) == (2, 1)
        assert int(stats["bytes"]) > 0
        for subscription in (1, 2):
            explanation = matcher.explain(Message(7, ["a"], (1, 1)), subscription)
            assert explanation.matched
            assert explanation.path
        assert "forbidden" in str(matcher.explain(Message(7, ["a", "b"], (1, 1)), 2))
        assert "expired" in str(matcher.explain(Message(7, ["a"], (1, 1), expires=3), 1))
        assert "no subscription" in str(matcher.explain(Message(7, ["a"], (1, 1)), 9))
        assert "not usable" in str(self.make_matcher("lonlat").explain(Message(7, ["a"], (1e9, 1)), 9))

    def test_saved_and_opened_goes_on_as_before(self, tmp_path: Path) -> None:
        for seed, space in ((1, "lonlat"), (2, "plane")):
            maker = WorldMaker(np.random.default_rng(seed), space)
            both = self.compare(space)
            both.save_and_open(tmp_path / f"empty-{seed}")
            both.subscribe(maker.subscriptions(24))
            messages = [Message(m.id, m.keywords, m.location, time=i, expires=i + 20) for i, m in enumerate(maker.messages(24))]
            both.publish(messages[:18])
            ids = list(both.oracle.subscriptions)
            both.move({id: maker.region() for id in ids[::2]})
            both.save_and_open(tmp_path / f"world-{seed}")
            both.move({id: maker.region() for id in ids[::3]})
            both.publish(messages[18:])
            both.subscribe(maker.subscriptions(10))
            both.save_and_open(tmp_path / f"world-{seed}")
            both.advance(30)

    def test_slots_of_dead_messages_are_used_again(self) -> None:
        matcher = self.make_matcher("plane")
        matcher.subscribe([Subscription(i, ["a"], Box(i, 0, i + 1, 1)) for i in range(5)])
        sizes = []
        for step in range(12):
            batch = [
                Message(step * 1000 + i, ["a", f"w{i % 7}"], (i % 7, 0.5), time=step, expires=step + 1) for i in range(700)
            ]
            assert len(matcher.publish(batch)) == sum(
                2 if x % 7 in (1, 2, 3, 4) else int(x % 7 in (0, 5)) for x in range(700)
            ) * (2 if step else 1)
            sizes.append(int(matcher.stats()["bytes"]))
        assert max(sizes[6:]) <= max(sizes[:6])
