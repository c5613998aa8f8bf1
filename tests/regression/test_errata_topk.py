"""Errata of Skype (Wang et al. 2016, the centralised part), each on an input that shows it.

The printed algorithms are written here literally, in plain Python; the ranker is right on the same input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.model.relevance import idf_weight, relevance, spatial_proximity, text_similarity
from nearcast.papers.ranked.group_pruned.index import GroupPruned
from nearcast.papers.ranked.skyband.buffers import _band_size, _turnovers
from nearcast.papers.ranked.skyband.engine import SkybandEngine
from nearcast.testing.oracles.ranked import RankedOracle
from nearcast.testing.scenarios.ranked import RankedComparison, run_ranked_worlds

PRUNED = ["individually_pruned", "group_pruned", "covering_quadtree"]
REACH = 10.0


def compare(window: Any, index: str = "group_pruned", buffer: Any = "auto", **options: Any) -> RankedComparison:
    """A ranker and the oracle in the plane; options of the index are among `options`."""
    idf = {name: options.pop(name) for name in ("idf", "n_documents") if name in options}
    ranker = nc.Ranker(window, index, buffer, space="plane", max_distance=REACH, **idf, **options)
    return RankedComparison(ranker, RankedOracle(window, "plane", REACH, **idf))


def top(both: RankedComparison, id: int) -> list[Any]:
    return [message for message, _ in both.ranker.top(id)]


# --- Algorithm 1 -----------------------------------------------------------------------------------------------------


class Vectors:
    """A text as the paper has it: unit weights in a common order, and what is left from each position on."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = sorted(words)
        self.weight = dict.fromkeys(self.words, 1 / math.sqrt(len(words)))

    def sum_from(self, word: str) -> float:
        return sum(weight for other, weight in self.weight.items() if other >= word)

    def most_from(self, word: str) -> float:
        return max((weight for other, weight in self.weight.items() if other >= word), default=0.0)


def printed_score(subscription: Vectors, message: Vectors, alpha: float, near: float, threshold: float) -> float | None:
    """Algorithm 1: lists are read one after the other, a posting that fails line 20 is skipped, what was summed is verified."""
    needed = (threshold - alpha * near) / (1 - alpha)
    similarity = 0.0
    for word in message.words:
        if word in subscription.weight and message.most_from(word) * subscription.sum_from(word) >= needed:
            similarity += message.weight[word] * subscription.weight[word]
    if similarity > 0 and alpha * near + (1 - alpha) * similarity >= threshold:
        return alpha * near + (1 - alpha) * similarity
    return None


@pytest.mark.parametrize("index", PRUNED)
def test_e2_a_message_with_the_very_words_of_a_subscription_is_lost_by_the_printed_algorithm(index: str) -> None:
    words = Vectors(["a", "b"])
    # Both lists are needed for the score; the second is skipped since it alone cannot reach the threshold.
    assert printed_score(words, words, 0.5, 1.0, 0.95) is None
    both = compare(nc.CountWindow(2), index, buffer="kmax", buffer_parameters={"factor": 1.0})
    both.subscribe([nc.RankedSubscription(1, ["a", "b"], (0, 0), k=1, spatial_weight=0.5)])
    both.publish([nc.Message(1, ["a", "b"], (1, 0))])
    assert [score for _, score in both.ranker.top(1)] == [pytest.approx(0.95)]
    both.publish([nc.Message(2, ["a", "b"], (0, 0))])
    assert top(both, 1) == [2]


def test_e2_many_results_are_lost_by_the_printed_algorithm() -> None:
    rng = np.random.default_rng(3)
    letters = list("abcdef")
    n_results = n_lost = 0
    for _ in range(2000):
        subscription, message = (Vectors(list(rng.choice(letters, int(rng.integers(1, 5)), replace=False))) for _ in range(2))
        alpha, near, threshold = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9]), rng.random(), rng.random()
        similar = text_similarity(dict.fromkeys(message.words, 1), subscription.words)
        if similar > 0 and relevance(alpha, near, similar) >= threshold + 1e-9:
            n_results += 1
            n_lost += printed_score(subscription, message, alpha, near, threshold) is None
    assert n_lost > n_results / 20
    run_ranked_worlds([_maker(index) for index in PRUNED], 2, seed=202)


def _maker(index: str) -> Any:
    return lambda **options: nc.Ranker(index=index, **options)


def test_e3_a_common_word_without_weight_is_lost_by_the_printed_test() -> None:
    n_documents = 20
    textbook = math.log(n_documents / n_documents)
    assert not textbook * textbook > 0
    assert idf_weight(n_documents, n_documents) > 0
    both = compare(nc.CountWindow(3), idf={"a": n_documents}, n_documents=n_documents)
    both.subscribe([nc.RankedSubscription(1, ["a"], (0, 0))])
    both.publish([nc.Message(1, ["a"], (0, 0))])
    assert top(both, 1) == [1]


@pytest.mark.parametrize("index", PRUNED)
def test_e4_the_printed_thresholds_divide_by_zero_where_only_place_or_only_words_count(index: str) -> None:
    words = Vectors(["a"])
    with pytest.raises(ZeroDivisionError):
        printed_score(words, words, 1.0, 0.5, 0.4)
    both = compare(nc.CountWindow(9), index, buffer="kmax", buffer_parameters={"factor": 1.0})
    both.subscribe([nc.RankedSubscription(int(weight), ["a", "b"], (0, 0), 2, weight) for weight in (0.0, 1.0)])
    for number in range(12):
        both.publish([nc.Message(number, [["a", "b"], ["a"], ["b", "c"]][number % 3], (number % 5, 0))])


def test_e1_the_printed_prefix_asks_for_the_position_of_a_word_that_is_not_there() -> None:
    """Example 4: w1 is not among the words of m2."""
    message = {"w2": 0.4, "w3": 0.2, "w4": 0.1}
    with pytest.raises(ValueError, match="w1"):
        list(message).index("w1")
    assert max(weight for word, weight in message.items() if word >= "w1") == 0.4


def test_e8_a_group_bound_with_a_negative_proximity_prunes_a_member_that_is_reached() -> None:
    threshold, near, alphas = 0.5, -0.5, (0.1, 0.9)
    group_needs = min(threshold / (1 - a) for a in alphas) - max(a / (1 - a) for a in alphas) * near
    member_needs = threshold / (1 - 0.1) - 0.1 / (1 - 0.1) * near
    assert group_needs > 5 > member_needs == pytest.approx(0.611, abs=1e-3)
    assert spatial_proximity(15.0, REACH) == 0.0
    both = compare(nc.CountWindow(9), buffer="kmax", buffer_parameters={"factor": 1.0}, group_size=2)
    both.subscribe([nc.RankedSubscription(i, ["a"], (i % 2, 0), 1, alphas[i % 2]) for i in range(8)])
    for number in range(6):
        both.publish([nc.Message(number, [["a", "b"], ["a"]][number % 2], (30 - 5 * number, 0))])


def test_e10_an_index_that_is_not_told_of_lower_thresholds_loses_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(**options: Any) -> nc.Ranker:
        return nc.Ranker(index="group_pruned", buffer="kmax", buffer_parameters={"factor": 1.0}, **options)

    run_ranked_worlds(make, 12, seed=10)
    monkeypatch.setattr(GroupPruned, "thresholds_lowered", lambda *_: None)
    with pytest.raises(AssertionError, match=r"changes expected|the best of"):
        run_ranked_worlds(make, 12, seed=10)


# --- result buffers --------------------------------------------------------------------------------------------------


def test_e6_of_equally_relevant_messages_the_newer_one_is_first() -> None:
    both = compare(nc.CountWindow(9))
    both.subscribe([nc.RankedSubscription(1, ["a"], (0, 0), k=2)])
    both.publish([nc.Message(number, ["a"], (1, 0)) for number in range(4)])
    assert top(both, 1) == [3, 2]


def test_e11_a_subscription_with_few_messages_is_searched_for_in_vain_at_every_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    n_window, n_messages, k = 5, 40, 3
    matches = [number % 3 == 0 for number in range(n_messages)]
    # As printed: whenever a message ends and fewer than k are held. There are never more than two.
    printed = sum(matches[n_window:])
    assert printed > 10
    refills: list[int] = []
    refill = SkybandEngine._refill

    def counting(self: SkybandEngine, numbers: Any) -> None:
        refills.append(len(numbers))
        refill(self, numbers)

    monkeypatch.setattr(SkybandEngine, "_refill", counting)
    both = compare(nc.CountWindow(n_window))
    both.subscribe([nc.RankedSubscription(1, ["a"], (0, 0), k)])
    both.publish([nc.Message(number, ["a" if matches[number] else "b"], (0, 0)) for number in range(n_messages)])
    assert refills == [1]


def skyband_size(scores: Sequence[float], k: int) -> int:
    """Messages with fewer than k newer ones that are at least as relevant; the newest is the last."""
    return sum(sum(later >= score for later in scores[i + 1 :]) < k for i, score in enumerate(scores))


@pytest.mark.parametrize(("n", "k"), [(20, 20), (42, 20), (60, 10)])
def test_e12_the_printed_size_of_a_skyband_lacks_k(n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    mean = np.mean([skyband_size(rng.random(n).tolist(), k) for _ in range(200)])
    printed = k * math.log(n / k)
    assert printed < mean - k / 2
    assert _band_size(n, k) == pytest.approx(mean, rel=0.03)


def test_e15_a_late_message_that_counts_as_the_newest_drives_out_one_that_outlives_it() -> None:
    held = [(0.5, 5.0, 0)]

    def printed_arrival(score: float, time: float, k: int) -> list[tuple[float, float, int]]:
        """The new message dominates all that are at most as relevant."""
        counted = [(s, t, n + (s <= score)) for s, t, n in held]
        return [entry for entry in [*counted, (score, time, 0)] if entry[2] < k]

    # The late one leaves the window at 13, the other one at 15: then nothing is left.
    assert [entry for entry in printed_arrival(0.8, 3.0, 1) if entry[1] > 13.0 - 10.0] == []
    both = compare(nc.TimeWindow(10.0), buffer="skyband", buffer_parameters={"ratio": 1.0})
    both.subscribe([nc.RankedSubscription(1, ["a"], (0, 0), k=1, spatial_weight=1.0)])
    both.publish([nc.Message(1, ["a"], (5, 0), time=5.0), nc.Message(2, ["a"], (2, 0), time=3.0)])
    assert top(both, 1) == [2]
    both.publish([nc.Message(3, ["b"], (0, 0), time=13.0)])
    assert top(both, 1) == [1]


@pytest.mark.parametrize(("k", "n", "simulated"), [(5, 5, 0.5), (5, 13, 45), (20, 24, 1.6), (20, 36, 81)])
def test_e17_the_time_to_a_refill_is_not_that_of_a_free_walk(k: int, n: int, simulated: float) -> None:
    """Windows until fewer than k of about n messages are left, in a simulated first-in first-out window."""
    printed = (n - k + 1) * (3 * n - k + 2) / (2 * n)
    assert abs(math.log(_turnovers(n, k) / simulated)) < abs(math.log(printed / simulated))
    assert abs(math.log(_turnovers(n, k) / simulated)) < math.log(1.5)


def test_e19_a_threshold_from_before_the_search_may_be_above_the_kth_score() -> None:
    """Old messages were near, new ones are far: none reaches the threshold of the last search."""
    both = compare(nc.CountWindow(4), buffer="skyband", buffer_parameters={"ratio": 1.0})
    both.subscribe([nc.RankedSubscription(1, ["a"], (0, 0), k=2)])
    both.publish([nc.Message(number, ["a"], (0, 0)) for number in range(4)])
    before = min(score for _, score in both.ranker.top(1))
    both.publish([nc.Message(4 + number, ["a"], (9, 0)) for number in range(4)])
    assert [score for _, score in both.ranker.top(1) if score >= before] == []
    assert top(both, 1) == [7, 6]
