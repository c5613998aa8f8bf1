"""Reports, explanations and statistics of a matcher, and reads while another thread writes."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle
from nearcast.model.subscription import Subscription
from nearcast.testing.budget import current_budget
from nearcast.testing.conformance.base import Cases, messages_at
from nearcast.testing.scenarios.boolean import BooleanComparison
from nearcast.testing.scenarios.worlds import WorldMaker

_N_READERS = 3
_N_ROUNDS = 25


class InsightCases(Cases):
    """Counters, `explain`, `stats`, and reads while another thread writes."""

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    @pytest.mark.parametrize("seed", range(current_budget().seeds))
    def test_the_work_never_exceeds_that_of_a_scan(self, space: str, seed: int) -> None:
        both = self.compare(space)
        subscriptions, messages = WorldMaker(np.random.default_rng([3, seed]), space).world(150)
        both.subscribe(subscriptions[:100])
        both.subscribe(subscriptions[100:])
        both.unsubscribe([s.id for s in subscriptions[:30]])
        pairs = both.publish(messages)
        report = both.matcher.report
        assert report.messages == len(messages)
        assert len(pairs) == report.matches <= report.candidates <= both.most_candidates(len(messages))
        assert report.nodes_visited >= 0

    def test_the_report_is_of_the_last_call(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], Box(0, 0, 1, 1)), Subscription(1, ["a"], Box(0, 0, 1, 1))])
        assert len(both.matcher.report.rejected) == 1
        both.publish(messages_at([(0, 0), (1, 1), (5, 5)]))
        assert (both.matcher.report.messages, both.matcher.report.matches) == (3, 2)
        assert both.matcher.report.rejected == []
        both.publish([])
        assert (both.matcher.report.messages, both.matcher.report.matches, both.matcher.report.candidates) == (0, 0, 0)

    def test_matching_does_not_depend_on_the_size_of_the_batch(self) -> None:
        both = self.compare()
        subscriptions, messages = WorldMaker(np.random.default_rng(8), "plane").world(100)
        both.subscribe(subscriptions)
        together = both.publish(messages)
        work = both.matcher.report.candidates
        singly = 0
        for message in messages:
            assert both.publish([message]) == {pair for pair in together if pair.message_id == message.id}
            singly += both.matcher.report.candidates
        assert singly == work

    def test_more_deliveries_than_any_first_guess_of_room(self) -> None:
        matcher = self.make_matcher("plane")
        n = min(self.n_many, 1000)
        matcher.subscribe([Subscription(i, [], Box(0, 0, 1, 1)) for i in range(n)])
        pairs = matcher.publish(messages_at([(0, 0), (5, 5), (1, 1)] * 5))
        assert len(pairs) == len({(d.subscription_id, d.message_id) for d in pairs}) == 10 * n

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    @pytest.mark.parametrize("seed", range(current_budget().seeds))
    def test_explanations_agree_with_deliveries(self, space: str, seed: int) -> None:
        rng = np.random.default_rng([4, seed])
        maker = WorldMaker(rng, space)
        both = self.compare(space)
        subscriptions, messages = maker.world(40)
        both.subscribe(subscriptions)
        both.publish(messages)
        for _ in range(60):
            message = messages[int(rng.integers(len(messages)))]
            id = subscriptions[int(rng.integers(len(subscriptions)))].id
            explanation = both.matcher.explain(message, id)
            expected = both.oracle.matches(id, message)
            assert explanation.matched == expected, (explanation, message, both.oracle.subscriptions[id])
            assert explanation.reasons
            assert all(explanation.reasons)
            assert explanation.path
            assert str(explanation)

    def test_explaining_what_does_not_exist(self) -> None:
        both = self.compare("lonlat")
        message = Message(1, ["a"], (0, 0))
        for id in (5, "five"):
            assert not both.matcher.explain(message, id).matched
        both.subscribe([Subscription(1, ["a"], Circle(0, 0, 10)), Subscription(2, ["a"])])
        both.unsubscribe([2])
        for id in (5, 2, "five"):
            explanation = both.matcher.explain(message, id)
            assert not explanation.matched
            assert str(id) in " ".join(explanation.reasons)
        assert not both.matcher.explain(Message(1, ["a"], (0, 91)), 1).matched
        assert both.matcher.explain(message, 1).matched

    def test_stats_count_what_is_there(self, tmp_path: Path) -> None:
        both = self.compare()
        assert both.matcher.stats()["subscriptions"] == 0
        both.subscribe([Subscription(i, ["a"], Box(0, 0, 1, 1)) for i in range(10)])
        both.subscribe([Subscription(5, ["b"], Box(0, 0, 1, 1)), Subscription(11, interest="a OR b OR c")])
        both.unsubscribe([0, 1])
        for _ in range(2):
            stats = both.matcher.stats()
            assert stats["subscriptions"] == 9
            assert int(stats["bytes"]) > 0
            assert float(stats["copies"]) >= 1
            assert int(stats["depth"]) >= 1
            both.save_and_open(tmp_path / "saved")

    def test_reads_in_threads_beside_a_writer(self) -> None:
        matcher = self.make_matcher("plane")
        maker = WorldMaker(np.random.default_rng(21), "plane")
        staying = [Subscription(i, ["sale"][: i % 2], Box(i % 5, i % 7, i % 5 + 3, i % 7 + 3)) for i in range(60)]
        messages = [Message(i, ["sale", "jazz"][: i % 3], (i % 8, i % 9)) for i in range(30)]
        matcher.subscribe(staying)
        always = {(d.subscription_id, d.message_id) for d in matcher.publish(messages)}
        stop = threading.Event()
        problems: list[str] = []

        def read() -> None:
            while not stop.is_set():
                try:
                    pairs = [(d.subscription_id, d.message_id) for d in matcher.publish(messages)]
                except Exception as error:  # noqa: BLE001 - the test reports any error
                    problems.append(repr(error))
                    return
                if len(pairs) != len(set(pairs)) or not always <= set(pairs):
                    problems.append("a read lost or repeated a delivery that no write touched")
                    return

        readers = [threading.Thread(target=read) for _ in range(_N_READERS)]
        for reader in readers:
            reader.start()
        both = self.compare("plane")
        both.oracle.subscribe(staying)
        try:
            for round_ in range(_N_ROUNDS):
                ids = range(1000 + 40 * round_, 1040 + 40 * round_)
                maker.is_plain, maker.has_numbers = round_ % 2 == 0, False
                batch = [maker.subscription(id) for id in ids]
                gone = list(ids[::2]) if round_ % 3 else list(range(1000, ids.stop))
                for engine in (matcher, both.oracle):
                    engine.subscribe(batch)
                    engine.unsubscribe(gone)
        finally:
            stop.set()
            for reader in readers:
                reader.join()
        assert problems == []
        BooleanComparison(matcher, both.oracle).publish(messages)
