"""Workloads of single papers: long messages, uniform words, message groups, boolean expressions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nearcast.errors import WorkloadError
from nearcast.model.interest import parse_interest
from nearcast.workloads import open_workload
from nearcast.workloads.randomness import integers, stream_key
from nearcast.workloads.variants import BooleanExpressions, PaperGroups

SMALL = {"vocabulary_size": 20_000, "pool": 20_000}


def lengths(table: pa.Table) -> np.ndarray:
    return np.diff(table["keywords"].combine_chunks().offsets.to_numpy())


@pytest.mark.parametrize(("name", "mean"), [("cars", 30), ("ais", 50), ("reviews", 37)])
def test_long_messages_have_the_mean_of_the_paper(name: str, mean: float) -> None:
    length = lengths(open_workload(name, **SMALL, frequencies="curve").messages(1000))
    assert abs(length.mean() - mean) < mean * 0.06


def test_cars_keep_to_their_roads() -> None:
    table = open_workload("cars", **SMALL, frequencies="curve").messages(2000)
    occupied = np.histogram2d(table["x"].to_numpy(), table["y"].to_numpy(), bins=100, range=((0, 1), (0, 1)))[0] > 0
    assert occupied.mean() < 0.13


def test_reviews_come_back_to_popular_places() -> None:
    table = open_workload("reviews", **SMALL, frequencies="curve", n_places=500).messages(2000)
    _, visits = np.unique(np.stack([table["x"].to_numpy(), table["y"].to_numpy()]), axis=1, return_counts=True)
    assert visits.size <= 500
    assert visits.max() > 5 * visits.mean()


def test_words_of_points_of_interest_are_equally_frequent() -> None:
    workload = open_workload("poi", vocabulary_size=200, pool=20_000)
    counts = np.bincount(workload.messages(2000)["keywords"].combine_chunks().values.to_numpy(), minlength=200)
    assert counts.max() < 1.5 * counts.mean()
    length = lengths(workload.subscriptions(2000))
    assert sorted(set(length.tolist())) == [1, 2, 3, 4, 5, 6]
    assert abs(length.mean() - 3.5) < 0.15


@pytest.mark.parametrize(("length", "least", "most"), [("short", 6, 20), ("long", 100, 1000)])
@pytest.mark.parametrize("over", ["tweets", "poi"])
def test_message_groups_differ_in_messages_only(length: str, least: int, most: int, over: str) -> None:
    point, ranged = (
        open_workload("paper_groups", **SMALL, length=length, shape=shape, over=over) for shape in ("point", "range")
    )
    n_keywords = lengths(point.messages(40))
    assert least <= n_keywords.min() <= n_keywords.max() <= most
    assert ranged.messages(40).schema.names == ["id", "keywords", "x0", "y0", "x1", "y1", "time"]
    assert ranged.messages(40)["keywords"].equals(point.messages(40)["keywords"])
    assert ranged.subscriptions(50).equals(point.subscriptions(50))


def test_range_messages_lie_around_the_points_and_have_a_width_and_height_of_their_own() -> None:
    boxes, points = (PaperGroups(**SMALL, shape=shape, over="poi").messages(200) for shape in ("range", "point"))  # type: ignore[arg-type]
    x0, y0, x1, y1 = (boxes[name].to_numpy() for name in ("x0", "y0", "x1", "y1"))
    assert np.allclose((x0 + x1) / 2, points["x"].to_numpy())
    assert np.allclose((y0 + y1) / 2, points["y"].to_numpy())
    assert not np.allclose(x1 - x0, y1 - y0)
    assert (x1 - x0).max() <= 0.01 + 1e-12


def test_the_vocabulary_of_a_group_is_that_of_its_base() -> None:
    assert open_workload("paper_groups").vocabulary_size == 1_700_000
    assert open_workload("paper_groups", over="poi").vocabulary_size == 100_000


def test_unknown_groups_are_refused() -> None:
    with pytest.raises(WorkloadError, match="'short', 'long'"):
        open_workload("paper_groups", length="medium")


def test_a_burst_repeats_its_first_message_nearby() -> None:
    bursts, tweets = (
        open_workload(name, **SMALL, **more, frequencies="curve")
        for name, more in (("bursts", {"burst": 10, "every": 100}), ("tweets", {}))
    )
    table, plain = bursts.messages(400), tweets.messages(400)
    number = table["id"].to_numpy()
    is_again = (number % 100 < 10) & (number % 100 > 0)
    assert table["id"].equals(plain["id"])
    assert table.filter(pa.array(~is_again)).equals(plain.filter(pa.array(~is_again)))
    words, first = table["keywords"].to_pylist(), {n: i for i, n in enumerate(number.tolist())}
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    for at in np.flatnonzero(is_again & np.isin(number - number % 100, number)).tolist():
        begin = first[int(number[at] - number[at] % 100)]
        assert words[at] == words[begin]
        assert 0 < np.abs(places[at] - places[begin]).max() <= 1e-4
    assert bursts.subscriptions(50).equals(tweets.subscriptions(50))
    with pytest.raises(WorkloadError, match="1 <= burst <= every"):
        open_workload("bursts", burst=5, every=4)


def test_interests_hold_for_the_message_they_were_made_from() -> None:
    workload = BooleanExpressions(**SMALL, n_keywords=(1, 7), frequencies="curve")  # type: ignore[arg-type]
    subscriptions = workload.subscriptions(300)
    assert subscriptions.schema.names == ["id", "interest", "x0", "y0", "x1", "y1"]
    sampled = workload.messages_at(integers(stream_key(1, "sampled message"), np.arange(300), 0, workload.pool - 1))
    kinds = set()
    for text, words in zip(subscriptions["interest"].to_pylist(), sampled["keywords"].to_pylist(), strict=True):
        assert parse_interest(text).holds(set(words)), text
        kinds |= {kind for kind in (" AND ", " OR ") if kind in text}
    assert kinds == {" AND ", " OR "}


def test_an_interest_has_two_runs_of_one_operator_each() -> None:
    texts = BooleanExpressions(**SMALL, n_keywords=5, frequencies="curve").subscriptions(100)["interest"].to_pylist()  # type: ignore[arg-type]
    for text in texts:
        for run in text.replace(")", "(").split("("):
            assert not (" AND " in run.strip(" ANDOR") and " OR " in run.strip(" ANDOR"))


def test_operators_are_quoted_and_excluded_words_are_not_wanted() -> None:
    pytest.importorskip("wordfreq", reason="the package wordfreq (extra bench) is not installed")
    workload = BooleanExpressions(**SMALL, frequencies="wordfreq", negated=0.5)  # type: ignore[arg-type]
    texts = workload.subscriptions(400)["interest"].to_pylist()
    assert any('"and"' in text for text in texts)
    negated = [text for text in texts if " AND NOT " in text]
    assert 120 < len(negated) < 280
    for text in negated:
        required, excluded = text.rsplit(" AND NOT ", 1)
        assert excluded not in required.replace("(", " ").replace(")", " ").split()
    for text in texts:
        assert parse_interest(text).clauses()


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(WorkloadError, match="share"):
        BooleanExpressions(negated=1.5)
