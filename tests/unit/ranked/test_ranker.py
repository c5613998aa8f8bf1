"""The interface of `Ranker`: what it accepts, what it rejects and why, what it reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError, SchemaError
from nearcast.papers.ranked.skyband.buffers import best_rank


def ranker(window: Any = None, **options: Any) -> nc.Ranker:
    return nc.Ranker(window or nc.CountWindow(3), space="plane", max_distance=10.0, **options)


def wanting(id: Any, *words: str, k: int = 2, weight: float = 0.5) -> nc.RankedSubscription:
    return nc.RankedSubscription(id, list(words), (0.0, 0.0), k=k, spatial_weight=weight)


def sent(id: Any, *words: str, x: float = 0.0, time: float | None = None) -> nc.Message:
    return nc.Message(id, list(words), (x, 0.0), time=time)


def test_messages_enter_and_leave_as_the_window_slides() -> None:
    best = ranker()
    assert best.subscribe([wanting(1, "jazz")]) == []
    assert best.publish([sent(10, "jazz", x=5.0)]) == [nc.RankChange(0, 1, 10, 1, 0.75)]
    assert best.publish([sent(11, "jazz"), sent(12, "jazz", x=1.0)]) == [
        nc.RankChange(1, 1, 11, 1, 1.0),
        nc.RankChange(2, 1, 12, 1, 0.95),
        nc.RankChange(2, 1, 10, -1, 0.75),
    ]
    assert best.top(1) == [(11, 1.0), (12, 0.95)]
    # 10 and 11 fall out; nothing takes the place of 11.
    assert best.publish([sent(13, "blues"), sent(14, "blues")]) == [nc.RankChange(4, 1, 11, -1, 1.0)]
    assert best.top(1) == [(12, 0.95)]
    assert best.report.messages == 2
    assert best.top(99) == []


def test_net_changes_leave_out_what_comes_and_goes_within_a_call() -> None:
    best = ranker(nc.CountWindow(1), changes="net")
    best.subscribe([wanting(1, "jazz")])
    changes = best.publish([sent(10, "jazz"), sent(11, "jazz"), sent(12, "jazz", x=5.0)])
    assert changes == [nc.RankChange(2, 1, 12, 1, 0.75)]


def test_a_window_of_time_goes_by_the_times_of_messages() -> None:
    best = ranker(nc.TimeWindow(10.0))
    best.subscribe([wanting(1, "jazz")])
    best.publish([sent(10, "jazz", time=100.0), sent(11, "jazz", x=5.0, time=95.0), sent(12, "jazz", time=80.0)])
    assert best.top(1) == [(10, 1.0), (11, 0.75)]
    assert best.now == 100.0
    assert best.advance(105.0) == [nc.RankChange(2, 1, 11, -1, 0.75)]
    assert best.advance(50.0) == []
    assert best.publish([sent(13, "jazz")]) == []
    assert "needs one" in best.report.rejected[0][1]


def test_a_new_subscription_finds_the_messages_that_are_there() -> None:
    best = ranker()
    best.publish([sent(10, "jazz"), sent(11, "blues"), sent(12, "jazz", x=2.0)])
    assert {(c.message_id, c.change) for c in best.subscribe([wanting("a", "jazz")])} == {(10, 1), (12, 1)}
    # Replaced by one with other words.
    changes = best.subscribe([wanting("a", "blues", k=1)])
    assert {(c.message_id, c.change) for c in changes} == {(10, -1), (12, -1), (11, 1)}
    best.unsubscribe(["a", "b"])
    assert best.top("a") == []


def test_rare_words_weigh_more_and_weights_can_be_renewed() -> None:
    best = ranker(idf={"common": 99, "rare": 0}, n_documents=99)
    best.subscribe([wanting(1, "common", "rare", weight=0.0)])
    best.publish([sent(10, "common", "x"), sent(11, "rare", "x")])
    (first, high), (second, low) = best.top(1)
    assert (first, second) == (11, 10)
    assert high > low
    changes = best.refresh_idf(None)
    assert {(c.message_id, c.change) for c in changes} == {(10, -1), (11, -1), (10, 1), (11, 1)}
    assert best.top(1) == [(11, 0.5), (10, 0.5)] or best.top(1)[0][1] == pytest.approx(0.5)


def test_what_cannot_be_used_is_rejected_with_a_reason() -> None:
    best = ranker()
    best.subscribe([wanting(1, "jazz"), wanting(1, "blues"), "no subscription", wanting("a", "jazz")])  # type: ignore[list-item]
    reasons = dict(best.report.rejected)
    assert reasons.keys() == {1, 2, 3}
    assert "twice" in reasons[1]
    assert "expected a nearcast.RankedSubscription" in reasons[2]
    assert "another kind" in reasons[3]
    best.publish([sent(10, "jazz")])
    best.publish(
        [
            sent(10, "jazz"),
            nc.Message(11, ["jazz"], nc.Box(0, 0, 1, 1)),
            nc.Message(12, ["jazz"], (0, 0), time=1, expires=2),
            sent(13, "jazz"),
        ]
    )
    reasons = dict(best.report.rejected)
    assert reasons.keys() == {0, 1, 2}
    assert "still in the window" in reasons[0]
    assert "at points" in reasons[1]
    assert "give none" in reasons[2]
    best.publish([sent("text", "jazz")])
    assert "another kind" in best.report.rejected[0][1]


def test_a_table_says_the_same_as_objects_and_bad_rows_are_told() -> None:
    best = ranker()
    rows = {
        "id": [1, 2, 3, 4, 5, 1, None],
        "keywords": [["jazz"], ["jazz"], ["jazz"], [], None, ["jazz"], ["jazz"]],
        "x": [0.0, None, 0.0, 0.0, 0.0, 0.0, 0.0],
        "y": [0.0] * 7,
        "k": [2, 2, 0, 2, 2, 2, 2],
        "spatial_weight": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 2.0],
    }
    best.subscribe_table(pa.table(rows))
    reasons = dict(best.report.rejected)
    assert reasons.keys() == {1, 2, 3, 4, 5, 6}
    for row, words in ((1, "null"), (2, "k is 0"), (3, "at least one"), (4, "null"), (5, "twice"), (6, "null")):
        assert words in reasons[row]
    messages = pa.table({"id": [10, 11], "keywords": [["jazz"], ["jazz"]], "x": [5.0, 0.0], "y": [0.0, 0.0]})
    changes = best.publish_table(messages)
    assert changes.column_names == ["tick", "subscription_id", "message_id", "change", "score"]
    assert changes["change"].type == pa.int8()
    assert best.top_table()["message_id"].to_pylist() == [11, 10]
    with pytest.raises(SchemaError, match="expected id, keywords, x, y"):
        best.subscribe_table(pa.table({"id": [1], "x": [0.0], "y": [0.0]}))
    plain = ranker()
    plain.subscribe_table(pa.table({"id": [1], "keywords": [["jazz"]], "x": [0.0], "y": [0.0]}))
    plain.publish_table(messages)
    assert plain.top(1) == best.top(1)


def test_explain_tells_words_distance_and_rank() -> None:
    best = ranker()
    best.subscribe([wanting(1, "jazz", k=1)])
    best.publish([sent(10, "jazz"), sent(11, "jazz", x=5.0)])
    text = str(best.explain(sent(10, "jazz"), 1))
    for words in ("'jazz'", "similarity 1", "proximity 1", "relevance 1", "rank 1 of 1"):
        assert words in text
    assert best.explain(sent(10, "jazz"), 1).matched
    assert "not in the list" in str(best.explain(sent(11, "jazz", x=5.0), 1))
    assert "it would not enter now" in str(best.explain(sent(12, "jazz", x=9.0), 1))
    assert "it would enter now" in str(best.explain(sent(12, "jazz"), 1))
    assert "no word in common" in str(best.explain(sent(12, "blues"), 1))
    assert "no subscription" in str(best.explain(sent(12, "blues"), 2))
    assert "not usable" in str(best.explain(nc.Message(1, ["jazz"], nc.Box(0, 0, 1, 1)), 1))
    with pytest.raises(nc.NearcastError, match="given 1 first; expected"):
        best.explain(1, sent(12, "blues"))  # type: ignore[arg-type]


def test_a_saved_ranker_goes_on_where_it_was(tmp_path: Path) -> None:
    kmax: dict[str, Any] = {"index": "group_pruned", "buffer": "kmax", "buffer_parameters": {"factor": 2.0}}
    best = ranker(nc.TimeWindow(10.0), idf={"jazz": 1}, n_documents=5, **kmax)
    best.subscribe([wanting("a", "jazz", "blues")])
    best.publish([sent("x", "jazz", time=1.0), sent("y", "blues", x=3.0, time=2.0)])
    best.save(tmp_path / "saved")
    opened = nc.Ranker.open(tmp_path / "saved")
    assert opened.top("a") == best.top("a")
    assert opened.stats()["buffer"] == "kmax"
    assert opened.advance(11.5) == best.advance(11.5) != []


def test_stats_tell_memory_by_part() -> None:
    best = ranker()
    best.subscribe([wanting(1, "jazz")])
    best.publish([sent(10, "jazz")])
    stats = best.stats()
    parts = [value for name, value in stats.items() if name.endswith("_bytes")]
    assert stats["bytes"] == sum(parts)  # type: ignore[arg-type]
    assert (stats["subscriptions"], stats["messages"], stats["held_per_subscription"]) == (1, 1, 1.0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"window": 5}, "expected nc.CountWindow"),
        ({"changes": "all"}, "give 'tick' or 'net'"),
        ({"buffer": "bag"}, "there is no buffer 'bag'"),
        ({"buffer_parameters": {"size": 3}}, "has no option 'size'"),
        ({"buffer": "kmax", "buffer_parameters": {"factor": 0.5}}, "factor=0.5"),
        ({"buffer": "skyband", "buffer_parameters": {"ratio": 0}}, "ratio=0"),
        ({"buffer": "cost_skyband", "buffer_parameters": {"refill_cost": -1.0}}, "refill_cost=-1.0"),
        ({"index": "guess"}, "there is no ranked index 'guess'"),
        ({"idf": {"jazz": 5}, "n_documents": 3}, "'jazz' is in 5 documents of 3"),
        ({"idf": {"jazz": "many"}, "n_documents": 3}, "expected an int >= 0"),
        ({"n_documents": 3}, "without idf"),
        ({"max_distance": 0.0}, "expected a finite number > 0"),
        ({"bounds": (-1.2e308, 0, 1.2e308, 1), "max_distance": None}, "max_distance is inf"),
        ({"max_distance": None}, "needs one of them"),
    ],
)
def test_a_ranker_that_cannot_be_is_refused(options: dict[str, Any], complaint: str) -> None:
    given = {"window": nc.CountWindow(3), "space": "plane", "max_distance": 10.0, **options}
    with pytest.raises(nc.NearcastError, match=complaint) as caught:
        nc.Ranker(**given)
    assert isinstance(caught.value, IndexParameterError | nc.NearcastError)


@pytest.mark.parametrize("buffer", ["cost_skyband", "skyband", "kmax"])
@pytest.mark.parametrize("index", ["impact_grid", "auto"])
def test_an_index_that_finds_ahead_goes_with_one_buffer(index: str, buffer: str) -> None:
    complaint = (
        f"buffer '{buffer}' does not go with index 'impact_grid'; expected 'floor' or 'auto': "
        "give one of these, or an index that is driven message by message, as 'group_pruned' is"
    )
    with pytest.raises(IndexParameterError, match=f"^{complaint}$"):
        nc.Ranker(nc.CountWindow(3), index, buffer)


def test_the_reach_comes_from_the_bounds_or_the_earth() -> None:
    near = nc.Ranker(nc.CountWindow(3), space="plane", bounds=(0, 0, 3, 4))
    near.subscribe([wanting(1, "jazz", weight=1.0)])
    near.publish([sent(10, "jazz", x=2.5)])
    assert near.top(1) == [(10, 0.5)]
    world = nc.Ranker(nc.CountWindow(3), bounds=nc.Box(0, 0, 3, 4))
    world.subscribe([wanting(1, "jazz", weight=1.0)])
    world.publish([sent(10, "jazz", x=180.0)])
    assert world.top(1)[0][1] == pytest.approx(0.0, abs=1e-7)
    nc.Ranker(nc.CountWindow(3))


def barely_enough(max_distance: float, index: str = "group_pruned", window_index: str = "auto") -> nc.Ranker:
    """A ranker whose buffers hold no message beyond the best, or as few as they can."""
    buffer, held = ("floor", {"spare": 0.0}) if index == "impact_grid" else ("kmax", {"factor": 1.0})
    return nc.Ranker(
        nc.CountWindow(5),
        index,
        buffer,
        "plane",
        max_distance=max_distance,
        window_index=window_index,
        buffer_parameters=held,
    )


@pytest.mark.parametrize("index", nc.indexes("ranked"))
def test_distances_too_small_for_float32_count(index: str) -> None:
    ranker = barely_enough(1e-50, index)
    ranker.publish([sent(10, "jazz", x=1.5e-50)])
    ranker.subscribe([nc.RankedSubscription(1, ["jazz"], (1e-50, 0.0), k=1, spatial_weight=1.0)])
    ranker.publish([sent(11, "jazz", x=1e-50)])
    assert [message for message, _ in ranker.top(1)] == [11]


@pytest.mark.parametrize("window_index", ["window_grid", "window_ir_tree"])
def test_distances_whose_squares_are_nothing_are_none(window_index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranked.window_segments.TAIL", 1)
    ranker = barely_enough(1e-170, window_index=window_index)
    ranker.publish([sent(10, "jazz"), sent(11, "jazz", x=0.9e-170)])
    ranker.subscribe([wanting(1, "jazz", k=1, weight=1.0)])
    assert [message for message, _ in ranker.top(1)] == [11]


def test_options_of_an_index_are_not_dropped_in_silence(tmp_path: Path) -> None:
    nc.Ranker(nc.CountWindow(5)).save(tmp_path / "saved")
    with pytest.raises(nc.NearcastError, match="without index"):
        nc.Ranker.open(tmp_path / "saved", group_size=3)


def test_a_saved_ranker_may_tell_something_else_when_it_is_opened(tmp_path: Path) -> None:
    best = ranker(nc.CountWindow(2))
    best.subscribe([wanting(1, "jazz", k=1)])
    best.save(tmp_path / "saved")
    arriving = [sent(10, "jazz", x=3.0), sent(11, "jazz")]
    assert len(nc.Ranker.open(tmp_path / "saved").publish(arriving)) == 3
    assert [change.message_id for change in nc.Ranker.open(tmp_path / "saved", changes="net").publish(arriving)] == [11]
    with pytest.raises(nc.NearcastError, match="changes='some' is unknown"):
        nc.Ranker.open(tmp_path / "saved", changes="some")


def test_buffers_hold_more_where_refills_are_dear() -> None:
    # The table of the corrected cost model, for k = 20.
    ranks = [best_rank(20, cost) for cost in (1e3, 1e4, 1e5, 1e6, 1e7)]
    assert ranks == sorted(ranks)
    assert ranks == pytest.approx([27, 35, 41, 45, 50], abs=2)


def test_shards_are_saved_explained_and_counted_as_one(tmp_path: Path) -> None:
    best = ranker(threads=3)
    best.subscribe([wanting(number, "jazz", "blues") for number in range(7)])
    assert len(best.publish([sent(10, "jazz"), sent(11, "blues", x=2.0)])) == 14
    best.unsubscribe([4, 5, 99])
    assert best.explain(sent(10, "jazz"), 6).matched
    assert not best.explain(sent(10, "jazz"), 5).matched
    assert (best.stats()["threads"], best.stats()["subscriptions"], best.stats()["messages"]) == (3, 5, 2)
    best.save(tmp_path / "saved")
    again = nc.Ranker.open(tmp_path / "saved", "ranked_scan")
    assert again.top_table().equals(best.top_table())
    assert again.top_table().num_rows == 10
    assert [again.top(number) for number in range(7)] == [best.top(number) for number in range(7)]
    assert sorted(map(str, again.advance(1e9))) == sorted(map(str, best.advance(1e9)))


@pytest.mark.parametrize("threads", [0, True, 1.5])
def test_an_impossible_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(nc.NearcastError, match=r"threads=.* is not possible; expected a number from 1 on$"):
        ranker(threads=threads)


def test_example_1_of_the_paper_the_oldest_ends_as_the_fifth_arrives() -> None:
    """The scores are lost with the figure of the paper: locations here give the lists it names."""
    best = ranker(nc.CountWindow(4))
    places = {"u1": 0.0, "u2": 4.0, "u3": 9.0}
    best.subscribe([nc.RankedSubscription(id, ["w"], (x, 0.0), k=1, spatial_weight=1.0) for id, x in places.items()])
    best.publish([sent(f"e{number}", "w", x=x) for number, x in enumerate((0.0, 4.0, 1.0, 7.0), start=1)])
    assert [best.top(id)[0][0] for id in places] == ["e1", "e2", "e4"]
    changes = {(change.subscription_id, change.message_id, change.change) for change in best.publish([sent("e5", "w", x=9.0)])}
    assert changes == {("u1", "e1", -1), ("u1", "e3", 1), ("u3", "e4", -1), ("u3", "e5", 1)}
