"""The default workload: its distributions, and every message from its number alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from nearcast.errors import EnvironmentProblem, WorkloadError
from nearcast.workloads.short_messages import Tweets
from nearcast.workloads.tables import KeywordLists, keywords_as_words
from nearcast.workloads.words import made_up_words, ranked_words, word_frequencies

Scale = Callable[[int], int]


def lists_of(table: pa.Table) -> KeywordLists:
    lists = table["keywords"].combine_chunks()
    return KeywordLists(lists.offsets.to_numpy(), lists.values.to_numpy())


def test_the_tables_have_the_columns_of_the_public_interface(small_tweets: Tweets) -> None:
    keywords = pa.field("item", pa.int32())
    messages, subscriptions = small_tweets.messages(5).schema, small_tweets.subscriptions(5).schema
    assert messages.names == ["id", "keywords", "x", "y", "time"]
    assert messages.types == [pa.int64(), pa.list_(keywords), pa.float64(), pa.float64(), pa.float64()]
    assert subscriptions.names == ["id", "keywords", "x0", "y0", "x1", "y1"]
    assert subscriptions.types == [pa.int64(), pa.list_(keywords), *[pa.float64()] * 4]


def test_equal_parameters_give_equal_tables_and_seeds_differ(small_tweets: Tweets) -> None:
    again = Tweets(vocabulary_size=20_000, pool=200_000, frequencies="curve")
    assert again.messages(300).equals(small_tweets.messages(300))
    assert again.subscriptions(300).equals(small_tweets.subscriptions(300))
    assert not again.messages(300, seed=2).equals(small_tweets.messages(300))
    assert not again.subscriptions(300, seed=2).equals(small_tweets.subscriptions(300))
    other = Tweets(vocabulary_size=20_000, pool=200_000, frequencies="curve", seed=8)
    assert not other.history(100).equals(small_tweets.history(100))


def test_any_message_is_made_again_from_its_number(small_tweets: Tweets) -> None:
    stream = small_tweets.messages(1000)
    numbers = stream["id"].to_numpy()
    rows = np.array([999, 0, 500, 500, 3])
    assert small_tweets.messages_at(numbers[rows]).equals(stream.take(rows).combine_chunks())


def test_more_subscriptions_begin_with_the_same_ones(small_tweets: Tweets) -> None:
    assert small_tweets.subscriptions(400).slice(0, 100).equals(small_tweets.subscriptions(100))


def test_history_is_the_first_twentieth_and_the_stream_comes_after(small_tweets: Tweets) -> None:
    assert small_tweets.history(10_000)["id"].to_numpy()[-1] == 9_999
    assert small_tweets.messages(50)["id"].to_numpy().min() >= 10_000
    with pytest.raises(WorkloadError, match="history of tweets has 10000"):
        small_tweets.history(10_001)
    with pytest.raises(WorkloadError, match="stream of tweets has 190000"):
        small_tweets.messages(190_001)
    with pytest.raises(WorkloadError, match="0 to 199999"):
        small_tweets.messages_at(np.array([200_000]))


def test_nothing_asked_gives_empty_tables(small_tweets: Tweets) -> None:
    assert small_tweets.messages(0).num_rows == 0
    assert small_tweets.subscriptions(0).num_rows == 0
    assert small_tweets.with_words(small_tweets.subscriptions(0))["keywords"].type == pa.list_(pa.string())


def test_messages_have_3_to_20_distinct_keywords_9_on_average(small_tweets: Tweets, scale: Scale) -> None:
    lists = lists_of(small_tweets.messages(scale(20_000)))
    length = np.diff(lists.start)
    assert length.min() >= 3
    assert length.max() <= 20
    assert abs(length.mean() - 8.92) < 0.35
    pairs = np.repeat(np.arange(length.size), length) * 100_000 + lists.keyword
    assert np.unique(pairs).size == pairs.size


def test_locations_gather_in_towns(small_tweets: Tweets, scale: Scale) -> None:
    table = small_tweets.messages(scale(20_000))
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    assert min(x.min(), y.min()) >= 0
    assert max(x.max(), y.max()) <= 1
    per_cell = np.sort(np.histogram2d(x, y, bins=50, range=((0, 1), (0, 1)))[0].ravel())[::-1]
    # A twentieth of the cells holds most of the messages; uniform places would put 5 % there.
    assert per_cell[:125].sum() / x.size > 0.6


def test_a_subscription_wants_keywords_of_one_message_and_is_a_square_around_it(small_tweets: Tweets) -> None:
    subscriptions = small_tweets.subscriptions(2000)
    length = np.diff(lists_of(subscriptions).start)
    assert sorted(set(length.tolist())) == [1, 2, 3, 4, 5]
    assert abs(length.mean() - 2.97) < 0.15
    side = subscriptions["x1"].to_numpy() - subscriptions["x0"].to_numpy()
    assert np.allclose(side, subscriptions["y1"].to_numpy() - subscriptions["y0"].to_numpy())
    assert side.min() >= 0.0001 - 1e-12
    assert 0.0098 < side.max() <= 0.01 + 1e-12


def test_ranges_can_be_read_as_area_and_fixed() -> None:
    fixed = Tweets(vocabulary_size=1000, pool=1000, range="area", range_low=1.0, range_high=1.0, frequencies="curve")
    subscriptions = fixed.subscriptions(20)
    assert np.allclose(subscriptions["x1"].to_numpy() - subscriptions["x0"].to_numpy(), 0.1)


def test_keyword_numbers_can_be_fixed_and_drawn_from_the_vocabulary() -> None:
    drawn = Tweets(vocabulary_size=1000, pool=1000, n_keywords=3, keyword_choice="zipf", frequencies="zipf")
    lists = lists_of(drawn.subscriptions(200))
    assert set(np.diff(lists.start).tolist()) == {3}
    most_frequent = drawn.chooser.keyword_of_rank[0]
    assert (lists.keyword == most_frequent).sum() > 20


def test_matches_per_message_are_those_the_targets_name(scale: Scale) -> None:
    tweets = Tweets(frequencies="curve", vocabulary_size=scale(1_700_000), pool=1_000_000)
    n_subscriptions = scale(50_000)
    subscriptions, messages = tweets.subscriptions(n_subscriptions), tweets.messages(1000)
    x0, y0, x1, y1 = (subscriptions[name].to_numpy() for name in ("x0", "y0", "x1", "y1"))
    required = lists_of(subscriptions)
    n_matches = 0
    for message in messages.to_pylist():
        inside = (x0 <= message["x"]) & (message["x"] <= x1) & (y0 <= message["y"]) & (message["y"] <= y1)
        has = set(message["keywords"])
        for row in np.flatnonzero(inside):
            n_matches += has.issuperset(required.keyword[required.start[row] : required.start[row + 1]].tolist())
    per_million = n_matches / 1000 * 1_000_000 / n_subscriptions
    assert 20 < per_million < 40


def test_without_stop_words_frequent_words_are_rare() -> None:
    with_stop_words, without_stop_words = (word_frequencies(50_000, "curve", skip) for skip in (0, 150))
    assert with_stop_words[0] > 0.05
    assert without_stop_words[0] < 0.002
    assert np.isclose(without_stop_words.sum(), 1.0)


def test_the_curve_is_close_to_the_real_frequencies() -> None:
    pytest.importorskip("wordfreq", reason="the package wordfreq (extra bench) is not installed")
    for skip in (0, 150):
        real, curve = (word_frequencies(1_700_000, source, skip) for source in ("wordfreq", "curve"))
        for top in (1, 10, 100, 1000, 100_000):
            assert np.isclose(real[:top].sum(), curve[:top].sum(), rtol=0.04)
        assert np.isclose((real**2).sum(), (curve**2).sum(), rtol=0.06)


def test_real_words_are_distinct_and_need_no_quotes() -> None:
    pytest.importorskip("wordfreq", reason="the package wordfreq (extra bench) is not installed")
    words = ranked_words(330_000, "wordfreq")
    assert len(words.unique()) == 330_000
    assert words[0].as_py() == "the"
    assert words[329_999].as_py() == "w330000"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wordfreq", None)
    with pytest.raises(EnvironmentProblem, match=r"nearcast\[bench\]"):
        Tweets(vocabulary_size=1000, pool=1000, frequencies="wordfreq").messages(1)
    assert Tweets(vocabulary_size=1000, pool=1000).describe()["frequencies"] == "curve"


def test_words_replace_ids_one_to_one(small_tweets: Tweets) -> None:
    table = small_tweets.messages(50)
    # A slice does not start at offset zero, and several chunks must be joined.
    part = pa.concat_tables([table.slice(10, 5), table.slice(30, 5)])
    spelled = small_tweets.with_words(part)
    assert spelled["keywords"].type == pa.list_(pa.string())
    for ids, words in zip(part["keywords"].to_pylist(), spelled["keywords"].to_pylist(), strict=True):
        assert [small_tweets.word(keyword) for keyword in ids] == words
    assert small_tweets.with_words(spelled).equals(spelled)
    assert len(small_tweets.words.unique()) == small_tweets.vocabulary_size
    with pytest.raises(WorkloadError, match="0 to 19999"):
        small_tweets.word(20_000)


def test_made_up_words_are_numbered() -> None:
    assert made_up_words(9, 3).to_pylist() == ["w9", "w10", "w11"]
    lists = pa.table({"keywords": pa.array([[0], [], [2, 1]], pa.list_(pa.int32()))})
    assert keywords_as_words(lists, made_up_words(1, 3))["keywords"].to_pylist() == [["w1"], [], ["w3", "w2"]]


@pytest.mark.parametrize(
    "parameters",
    [{"range": "volume"}, {"stop_words": "some"}, {"keyword_choice": "best"}, {"n_keywords": 0}, {"n_keywords": (3, 2)},
     {"range_low": 2.0}, {"range_low": -1.0}, {"frequencies": "dictionary"}, {"vocabulary_size": 5}],
)  # fmt: skip
def test_unusable_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(WorkloadError):
        Tweets(**{"vocabulary_size": 1000, "pool": 1000, "frequencies": "curve", **parameters}).subscriptions(1)  # type: ignore[arg-type]


def test_a_vocabulary_too_small_for_the_messages_is_refused() -> None:
    with pytest.raises(WorkloadError, match="vocabulary_size at least twice"):
        Tweets(vocabulary_size=40, pool=1000, n_keywords=25, keyword_choice="zipf", frequencies="curve").subscriptions(1)
