"""A matcher takes over subscriptions of several others, with their positions, and reports no changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.model.inputs import Id

AROUND = nc.Box(0, 0, 2, 2)
AWAY = nc.Box(8, 8, 9, 9)


def some(matcher: nc.MovingMatcher, *ids: Id) -> tuple[nc.MovingMatcher, pa.Array]:
    return matcher, pa.array(ids)


def test_what_travelled_elsewhere_is_taken_over_where_it_is() -> None:
    first, second = nc.MovingMatcher(space="plane"), nc.MovingMatcher(space="plane")
    first.subscribe([nc.Subscription(1, keywords=["jazz"], region=AWAY), nc.Subscription(2, keywords=["sale"])])
    second.subscribe(
        [
            # The words in another order than those of the first, one of them unwanted, and a circle.
            nc.Subscription(4, interest="sale AND NOT jazz", region=nc.Circle(9, 9, 1)),
            nc.Subscription(5, keywords=["straße", "jazz", "sale"], region=AROUND),
            nc.Subscription(3, keywords=["jazz"], region=AWAY),
        ]
    )
    message = nc.Message(7, keywords=["jazz", "sale", "straße"], location=(1, 1), time=0, expires=9)
    for matcher in (first, second):
        matcher.publish([message, nc.Message(8, keywords=["sale"], location=(1, 1))])
        matcher.move({1: AROUND, 3: AROUND, 4: nc.Circle(1, 1, 1)})
        matcher.unsubscribe([2])
    assert first.subscription_ids().to_pylist() == [1]
    first.take_over([some(first, 1), some(second, 4, 5, 99)])
    assert sorted(first.subscription_ids().to_pylist()) == [1, 4, 5]
    assert {id: first.current(id) for id in (1, 3, 4, 5)} == {1: {7}, 3: set(), 4: {8}, 5: {7}}
    assert first.now == 0
    assert {(c.subscription_id, c.message_id, c.change) for c in first.advance(9)} == {(1, 7, -1), (5, 7, -1)}
    # Nothing was reported, and it works like any other.
    assert [(c.subscription_id, c.change) for c in first.move({4: AWAY, 5: AWAY})] == [(4, -1)]


def test_stems_are_not_stemmed_again() -> None:
    analysis = nc.Analysis(stem="english")
    # The stem of "emotionally" is "emot"; that of "generously" is "generous", whose own is "generous"; some differ.
    words = ["university", "generously", "news", "dying", "emotionally", "agreed", "sensational", "abilities"]
    changing = [word for word in words if analysis.keyword(analysis.keyword(word)) != analysis.keyword(word)]
    assert changing
    first, second = nc.MovingMatcher(analysis=analysis), nc.MovingMatcher(analysis=analysis)
    second.subscribe([nc.Subscription(word, keywords=[word]) for word in words])
    first.take_over([some(second, *words)])
    for word in words:
        assert {c.subscription_id for c in first.publish([nc.Message(f"m {word}", keywords=[word], location=(0, 0))])} >= {word}


def test_numbers_are_taken_over_and_kinds_are_not_mixed() -> None:
    first, second, other = (nc.MovingMatcher(space="plane") for _ in range(3))
    second.subscribe([nc.Subscription(1, keywords=[70, 7]), nc.Subscription(2, keywords=[])])
    first.take_over([some(second, 1, 2)])
    changes = first.publish([nc.Message(5, keywords=[7, 70], location=(0, 0)), nc.Message(6, keywords=[7], location=(0, 0))])
    assert {(c.subscription_id, c.message_id) for c in changes} == {(1, 5), (2, 5), (2, 6)}
    other.subscribe([nc.Subscription(1, keywords=["seven"])])
    with pytest.raises(nc.NearcastError, match="keep to one kind"):
        first.take_over([some(other, 1)])
    with pytest.raises(nc.NearcastError, match="safe regions"):
        nc.MovingMatcher(safe_region=True, positions=lambda ids: {}).take_over([])
