"""The worked examples of the paper (Figure 4), as far as their numbers are printed. Its weights are not of unit length."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest

from nearcast.papers.ranked.group_pruned.kernels.match import rest_bound
from nearcast.papers.ranked.kernels import distance_to_border, distance_to_box, nearness

MAX_DISTANCE = 1.6
S1 = {"w1": 0.4, "w2": 0.3, "w3": 0.2, "w4": 0.1}
S2 = {"w1": 0.7, "w2": 0.5, "w3": 0.2}
S3 = {"w1": 0.5, "w2": 0.4, "w3": 0.3, "w4": 0.1}
M1 = {"w4": 1.0}
M2 = {"w2": 0.4, "w3": 0.2, "w4": 0.1}
M3 = {"w2": 0.7, "w3": 0.3, "w4": 0.2}


def after(weights: dict[str, float], word: str) -> list[float]:
    return [weight for other, weight in weights.items() if other > word]


def bound_at(wanted: dict[str, float], message: dict[str, float], word: str) -> float:
    """What the keyword and those after it add at most, if it is the first common one."""
    rest, left = after(wanted, word), after(message, word)
    follows = rest_bound(sum(rest), math.hypot(*rest), max(left, default=0.0), math.hypot(*left))
    return float(wanted[word] * message[word] + follows)


def prefix(wanted: dict[str, float], message: dict[str, float] | None, needed: float) -> list[str]:
    """The keywords that can be the first common one; without a message, for any weights of one."""
    kept = []
    for word in wanted:
        total = sum(weight for other, weight in wanted.items() if other >= word)
        most = 1.0 if message is None else max((w for other, w in message.items() if other >= word), default=0.0)
        if most * total < needed:
            break
        kept.append(word)
    return kept


def needed(threshold: float, alpha: float, near: float) -> float:
    return (threshold - alpha * near) / (1 - alpha)


def test_what_is_left_from_each_keyword_on() -> None:
    expected = [(S1, [1.0, 0.6, 0.3, 0.1]), (S2, [1.4, 0.7, 0.2]), (S3, [1.3, 0.8, 0.4, 0.1]), (M2, [0.7, 0.3, 0.1])]
    for weights, left in expected:
        assert list(accumulate(reversed(weights.values())))[::-1] == pytest.approx(left)


def test_examples_2_and_3_a_message_with_the_last_keyword_only() -> None:
    assert needed(0.7, 0.6, 0.98) == pytest.approx(0.28)
    assert prefix(S1, None, 0.28) == ["w1", "w2", "w3"]
    assert bound_at(S1, M1, "w4") == pytest.approx(0.1)
    assert bound_at(S1, M1, "w4") < 0.28


def test_example_4_the_weights_of_the_message_make_the_prefix_shorter() -> None:
    assert needed(0.7, 0.6, 0.99) == pytest.approx(0.265)
    assert prefix(S1, None, 0.265) == ["w1", "w2", "w3"]
    assert prefix(S1, M2, 0.265) == ["w1"]
    assert bound_at(S1, M2, "w2") <= 0.4 * 0.6 < 0.265


def test_definitions_6_to_8_inner_and_outer_bounds() -> None:
    box = (0.0, 0.0, 1.0, 1.0)
    inner, outer = distance_to_border(False, 0.25, 0.5, *box), distance_to_box(False, -0.3, 0.5, *box)
    assert nearness(inner, MAX_DISTANCE) == pytest.approx(0.84375)
    assert nearness(outer, MAX_DISTANCE) == pytest.approx(0.8125)
    assert nearness(inner + outer, MAX_DISTANCE) == pytest.approx(0.65625)


def test_example_5_the_inner_bound_makes_the_difference() -> None:
    assert needed(0.6, 0.5, 1.0) == pytest.approx(0.2)
    assert prefix(S2, M2, 0.2) == ["w1", "w2"]
    assert needed(0.6, 0.5, 0.65625) == pytest.approx(0.54375)
    assert prefix(S2, M2, 0.54375) == ["w1"]
    assert bound_at(S2, M2, "w2") < 0.54375


def test_example_6_keywords_not_seen_yet() -> None:
    assert prefix(S3, M3, 0.48) == ["w1", "w2"]
    # The paper has .28 + .12; ours is never above it.
    assert 0.28 < bound_at(S3, M3, "w2") <= 0.28 + 0.12 < 0.48
