"""The interface of `Matcher`, point by point as documented."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import IndexParameterError, NearcastError, SchemaError

SALE = nc.Subscription(1, keywords=["ipad", "sale"], region=nc.Box(0, 0, 10, 10))


def delivered(matcher: nc.Matcher, *messages: nc.Message) -> set[tuple[object, object]]:
    found = matcher.publish(messages)
    pairs: set[tuple[object, object]] = {(d.subscription_id, d.message_id) for d in found}
    assert len(pairs) == len(found)
    return pairs


# --- keywords ---------------------------------------------------------------------------------------------------------


def test_keywords_are_normalised_and_never_split() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, keywords=["STRASSE"]), nc.Subscription(2, keywords=["New York"])])
    assert delivered(matcher, nc.Message(7, keywords=["straße", "new", "york"], location=(0, 0))) == {(1, 7)}
    assert delivered(matcher, nc.Message(8, keywords=["new york"], location=(0, 0))) == {(2, 8)}


def test_quoted_phrases_are_analysed_like_text() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, interest='"Flash Flood!" OR tornado')])
    assert delivered(matcher, nc.Message(7, text="A flood, in a flash.", location=(0, 0))) == {(1, 7)}
    assert delivered(matcher, nc.Message(8, text="Flood only", location=(0, 0))) == set()


def test_no_keywords_means_the_region_only() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, keywords=[], region=nc.Box(0, 0, 1, 1)), nc.Subscription(2)])
    assert delivered(matcher, nc.Message(7, keywords=[], location=(1, 1))) == {(1, 7), (2, 7)}
    assert delivered(matcher, nc.Message(8, keywords=["new"], location=(2, 1))) == {(2, 8)}


def test_numbers_as_keywords_need_no_vocabulary_and_do_not_mix_with_words() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, keywords=[5, -9])])
    assert delivered(matcher, nc.Message(7, keywords=[-9, 5, 5, 3], location=(0, 0))) == {(1, 7)}
    assert delivered(matcher, nc.Message(8, keywords=["five"], location=(0, 0))) == set()
    assert "keep to one kind" in matcher.report.rejected[0][1]
    matcher.subscribe([nc.Subscription(2, keywords=["word"])])
    assert "keep to one kind" in matcher.report.rejected[0][1]
    with pytest.raises(SchemaError, match="keep to one kind"):
        matcher.match_table(pa.table({"id": [1], "keywords": [["x"]], "x": [0.0], "y": [0.0]}))


def test_before_any_subscription_both_kinds_of_keywords_are_taken() -> None:
    matcher = nc.Matcher()
    assert matcher.publish([nc.Message(1, keywords=[4], location=(0, 0)), nc.Message(2, keywords=["a"], location=(0, 0))]) == []
    assert matcher.report.rejected == []


def test_stemming_and_stop_words_apply_to_every_path() -> None:
    pytest.importorskip("Stemmer")
    matcher = nc.Matcher(analysis=nc.Analysis(stem="english", stop_words="english"))
    matcher.subscribe([nc.Subscription(1, keywords=["houses"]), nc.Subscription(2, interest='"the burning house"')])
    assert delivered(matcher, nc.Message(7, text="A house is burning", location=(0, 0))) == {(1, 7), (2, 7)}
    table = pa.table({"id": [8], "keywords": [["HOUSE", "burns"]], "x": [0.0], "y": [0.0]})
    assert sorted(matcher.match_table(table)["subscription_id"].to_pylist()) == [1, 2]


# --- ids --------------------------------------------------------------------------------------------------------------


def test_a_known_id_replaces_and_unknown_ids_are_ignored() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([SALE])
    matcher.subscribe([nc.Subscription(1, keywords=["ipad"], region=nc.Box(20, 20, 30, 30))])
    message = nc.Message(7, keywords=["ipad", "sale"], location=(5, 5))
    assert delivered(matcher, message) == set()
    assert delivered(matcher, nc.Message(7, keywords=["ipad"], location=(25, 25))) == {(1, 7)}
    matcher.unsubscribe([99, "other kind", 1])
    assert matcher.stats()["subscriptions"] == 0


def test_a_duplicate_within_one_batch_is_rejected_and_the_first_kept() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription("a", keywords=["x"]), nc.Subscription("a", keywords=["y"])])
    assert matcher.report.rejected == [(1, "the id 'a' comes twice in one batch; only its first row is used")]
    assert delivered(matcher, nc.Message(7, keywords=["x"], location=(0, 0))) == {("a", 7)}
    assert delivered(matcher, nc.Message(7, keywords=["y"], location=(0, 0))) == set()


def test_ids_keep_their_type_and_are_of_one_kind() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription("s", keywords=["x"]), nc.Subscription(5, keywords=["x"])])
    assert [row for row, _ in matcher.report.rejected] == [1]
    table = matcher.match_table(pa.table({"id": [2**40], "keywords": [["x"]], "x": [0.0], "y": [0.0]}))
    assert table.schema == pa.schema({"message_id": pa.int64(), "subscription_id": pa.string()})
    assert table.to_pylist() == [{"message_id": 2**40, "subscription_id": "s"}]
    with pytest.raises(SchemaError, match="string ids"):
        matcher.subscribe_table(pa.table({"id": [1], "keywords": [["x"]]}))


def test_messages_are_not_tracked() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1)])
    message = nc.Message(7, keywords=[], location=(0, 0))
    assert len(matcher.publish([message, message])) == 2


# --- space ------------------------------------------------------------------------------------------------------------


def test_lonlat_is_bounded_and_measured_in_metres() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, region=nc.Circle(0, 0, 111_200)), nc.Subscription(2, region=nc.Box(0, 0, 181, 1))])
    assert "outside" in matcher.report.rejected[0][1]
    assert delivered(matcher, nc.Message(7, keywords=[], location=(1, 0))) == {(1, 7)}
    assert delivered(matcher, nc.Message(8, keywords=[], location=(0, 91))) == set()
    assert "outside lonlat" in matcher.report.rejected[0][1]


def test_the_plane_takes_any_finite_numbers() -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe([nc.Subscription(1, region=nc.Circle(1000, 1000, 5)), nc.Subscription(2)])
    assert delivered(matcher, nc.Message(7, keywords=[], location=(1003, 1004))) == {(1, 7), (2, 7)}
    assert delivered(matcher, nc.Message(8, keywords=[], location=(-1.7e308, 1e-300))) == {(2, 8)}


def test_range_messages_meet_regions_they_touch() -> None:
    matcher = nc.Matcher(space="plane")
    ring = nc.Polygon([[(0, 0), (10, 0), (10, 10), (0, 10)], [(2, 2), (8, 2), (8, 8), (2, 8)]])
    matcher.subscribe([nc.Subscription(1, region=ring), nc.Subscription(2, region=nc.Circle(20, 20, 5))])
    assert delivered(matcher, nc.Message(7, keywords=[], location=nc.Box(3, 3, 7, 7))) == set()
    assert delivered(matcher, nc.Message(8, keywords=[], location=nc.Box(3, 3, 8, 7))) == {(1, 8)}
    assert delivered(matcher, nc.Message(9, keywords=[], location=nc.Box(10, 10, 16, 17))) == {(1, 9), (2, 9)}


# --- tables -----------------------------------------------------------------------------------------------------------


def test_tables_take_interests_and_regions_beside_plain_rows() -> None:
    geojson = '{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]}'
    table = pa.table(
        {
            "id": ["plain", "everywhere", "interest", "shape", "both"],
            "keywords": [["a"], ["a"], None, ["a"], []],
            "interest": [None, None, "a AND NOT b", None, "a OR b"],
            "region": [None, None, None, geojson, "POLYGON ((0 0, 4 0, 0 4, 0 0))"],
            "x0": [0.0, None, 0.0, None, 50.0],
            "y0": [0.0, None, 0.0, None, 50.0],
            "x1": [4.0, None, 4.0, None, 60.0],
            "y1": [4.0, None, 4.0, None, 60.0],
        }
    )
    matcher = nc.Matcher()
    matcher.subscribe_table(table)
    assert matcher.report.rejected == []
    messages = pa.table({"id": [1, 2, 3], "keywords": [["a"], ["A", "b"], ["a"]], "x": [1, 1, 3], "y": [1, 1, 3]})
    found = matcher.match_table(messages)
    got = set(zip(found["message_id"].to_pylist(), found["subscription_id"].to_pylist(), strict=True))
    everyone = {"plain", "everywhere", "interest", "shape", "both"}
    expected = {(1, s) for s in everyone} | {(2, s) for s in everyone - {"interest"}}
    assert got == expected | {(3, s) for s in ("plain", "everywhere", "interest")}


def test_messages_may_come_as_text_or_as_boxes() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, keywords=["hail"], region=nc.Box(0, 0, 1, 1))])
    texts = pa.table({"id": [1, 2], "text": ["Hail!", None], "x": [0.5, 0.5], "y": [0.5, 0.5], "time": [1.0, 2.0]})
    assert matcher.match_table(texts)["message_id"].to_pylist() == [1]
    assert matcher.report.rejected == [(1, "the text is null")]
    encoded = texts.set_column(1, "text", texts["text"].dictionary_encode())
    assert matcher.match_table(encoded)["message_id"].to_pylist() == [1]
    areas = pa.table(
        {
            "id": [3],
            "keywords": pa.array([["hail"]], pa.large_list(pa.large_string())),
            "x0": [1.0],
            "y0": [1.0],
            "x1": [2.0],
            "y1": [2.0],
        }
    )
    assert matcher.match_table(areas)["message_id"].to_pylist() == [3]


def test_messages_may_be_encoded_once_and_matched_again_after_a_change() -> None:
    matcher = nc.Matcher()
    matcher.subscribe([nc.Subscription(1, keywords=["hail"])])
    encoded = matcher.encode_table(pa.table({"id": [5, 6], "keywords": [["hail"], None], "x": [0.0, 0.0], "y": [0.0, 0.0]}))
    assert matcher.match_encoded(encoded).to_pylist() == [{"message_id": 5, "subscription_id": 1}]
    assert len(matcher.report.rejected) == 1
    matcher.subscribe([nc.Subscription(2, keywords=["hail"])])
    matcher.unsubscribe([1])
    assert matcher.match_encoded(encoded)["subscription_id"].to_pylist() == [2]


def test_columns_of_other_widths_and_chunks_are_read() -> None:
    matcher = nc.Matcher(space="plane")
    chunk = pa.table(
        {
            "id": pa.array([1], pa.int16()),
            "keywords": pa.array([["a"]], pa.list_(pa.string(), 1)),
            "x0": [0],
            "y0": [0],
            "x1": [2],
            "y1": [2],
        }
    )
    matcher.subscribe_table(pa.concat_tables([chunk, chunk.set_column(0, "id", pa.array([2], pa.int16()))]))
    encoded = pa.array([["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    messages = pa.table({"id": [9], "keywords": encoded, "x": pa.array([1.5], pa.float32()), "y": [1]})
    assert sorted(matcher.match_table(messages)["subscription_id"].to_pylist()) == [1, 2]
    empty = messages.slice(0, 0)
    assert matcher.match_table(empty).num_rows == 0
    matcher.subscribe_table(chunk.slice(0, 0))
    assert matcher.stats()["subscriptions"] == 2


def test_a_sliced_table_is_read_from_its_own_rows() -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe([nc.Subscription(1, keywords=["b"])])
    table = pa.table({"id": [1, 2, 3], "keywords": [["a"], ["b"], ["c"]], "x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 2.0]})
    assert matcher.match_table(table.slice(1, 1))["message_id"].to_pylist() == [2]
    assert matcher.match_table(table.slice(2))["message_id"].to_pylist() == []


# --- report, stats, explain -------------------------------------------------------------------------------------------


def test_the_report_tells_of_the_last_call() -> None:
    matcher = nc.Matcher("scan")
    matcher.subscribe([SALE, nc.Subscription(2, keywords=["x"])])
    matcher.publish([nc.Message(7, keywords=["ipad", "sale"], location=(5, 5))])
    report = matcher.report
    assert (report.messages, report.matches, report.candidates, report.rejected) == (1, 1, 2, [])
    assert "1 matches" in str(report)


def test_stats_tell_sizes() -> None:
    matcher = nc.Matcher("spatial_first")
    matcher.subscribe([SALE, nc.Subscription(2, interest="a OR b", region=nc.Circle(0, 0, 10))])
    stats = matcher.stats()
    assert (stats["subscriptions"], stats["clauses"], stats["copies"], stats["keywords"]) == (2, 3, 1.5, 4)
    assert stats["depth"] == 1
    assert int(stats["bytes"]) > int(stats["index_bytes"]) > 0


@pytest.mark.parametrize("index", list(nc.indexes()))
def test_explain_tells_why_or_the_first_reason_why_not(index: str) -> None:
    matcher = nc.Matcher(index)
    area = nc.Polygon([[(0, 0), (10, 0), (10, 10), (0, 10)], [(4, 4), (6, 4), (6, 6), (4, 6)]])
    matcher.subscribe(
        [
            SALE,
            nc.Subscription(2, interest="sale AND NOT used", region=area),
            nc.Subscription(3),
            nc.Subscription(4, interest="a OR sale"),
        ]
    )

    def why(keywords: list[str], place: object, subscription: int) -> nc.Explanation:
        return matcher.explain(nc.Message(7, keywords=keywords, location=place), subscription)  # type: ignore[arg-type]

    assert why(["ipad", "sale"], (5, 5), 1).matched
    assert "lacks the keyword 'ipad'" in why(["sale"], (5, 5), 1).reasons[0]
    assert "outside the region" in why(["sale", "ipad"], (50, 5), 1).reasons[0]
    assert "forbidden keyword 'used'" in str(why(["sale", "used"], (1, 1), 2))
    assert "outside the region" in str(why(["sale"], (5, 5), 2))
    assert "none of the forbidden" in str(why(["sale"], nc.Box(5, 5, 7, 7), 2))
    assert "no keywords are required" in str(why([], (1, 1), 3))
    assert why(["sale"], (1, 1), 4).reasons[0].startswith("the best of 2 alternatives")
    assert why(["sale"], (1, 1), 99) == nc.Explanation(False, ("there is no subscription 99",))
    assert "not usable" in why(["sale"], (500, 1), 1).reasons[0]
    assert all(why(["ipad", "sale"], (5, 5), s).path for s in (1, 2, 3, 4))


@pytest.mark.parametrize("index", list(nc.indexes()))
def test_a_history_of_messages_changes_no_answer(index: str) -> None:
    history = pa.table({"id": [1, 2], "keywords": [["a", "b"], ["a"]], "x": [0.0, 1.0], "y": [0.0, 1.0]})
    matcher = nc.Matcher(index, space="plane", history=history)
    matcher.subscribe([nc.Subscription(i, keywords=["a"], region=nc.Box(i, i, i + 2, i + 2)) for i in range(20)])
    assert delivered(matcher, nc.Message(7, keywords=["a", "b"], location=(2, 2))) == {(0, 7), (1, 7), (2, 7)}


def test_indexes_are_listed_with_paper_and_parameters() -> None:
    known = nc.indexes(kind="boolean")
    assert {"scan", "keyword_first", "spatial_first"} <= set(known)
    assert known["spatial_first"].parameters == {"node_capacity": 50}
    assert all(info.paper and info.summary for info in known.values())
    assert "ranked_scan" in nc.indexes(kind="ranked")
    with pytest.raises(IndexParameterError, match="no kind"):
        nc.indexes(kind="fuzzy")


def test_a_wrong_choice_of_index_is_explained() -> None:
    with pytest.raises(IndexParameterError, match="no index 'b-tree'; expected 'auto' or one of scan"):
        nc.Matcher(index="b-tree")
    with pytest.raises(IndexParameterError, match="takes node_capacity"):
        nc.Matcher(index="spatial_first", fanout=3)
    with pytest.raises(IndexParameterError, match="of type str; expected int"):
        nc.Matcher(index="spatial_first", node_capacity="50")
    with pytest.raises(IndexParameterError, match="expected 4 to 1024"):
        nc.Matcher(index="r-tree", node_capacity=2)
    with pytest.raises(NearcastError, match="no space 'mars'"):
        nc.Matcher(space="mars")


# --- save and open ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", list(nc.indexes()))
def test_another_process_opens_a_saved_matcher_and_gives_the_same_answers(index: str, tmp_path: Path) -> None:
    matcher = nc.Matcher(index, space="plane")
    matcher.subscribe([nc.Subscription(f"s{i}", keywords=[f"w{i % 7}"], region=nc.Box(i, i, i + 5, i + 5)) for i in range(50)])
    matcher.subscribe([nc.Subscription("c", interest="w1 OR w2", region=nc.Circle(9, 9, 4))])
    matcher.save(tmp_path / "saved")
    program = (
        "import sys, nearcast as nc\n"
        f"m = nc.Matcher.open({str(tmp_path / 'saved')!r})\n"
        "found = m.publish([nc.Message(i, keywords=['w1', 'w2'], location=(i, i)) for i in range(60)])\n"
        "print(sorted((d.subscription_id, d.message_id) for d in found))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    messages = [nc.Message(i, keywords=["w1", "w2"], location=(i, i)) for i in range(60)]
    assert out.strip() == str(sorted(delivered(matcher, *messages)))


def test_an_empty_matcher_can_be_saved(tmp_path: Path) -> None:
    nc.Matcher().save(tmp_path / "saved")
    matcher = nc.Matcher.open(tmp_path / "saved")
    matcher.subscribe([nc.Subscription(1)])
    assert delivered(matcher, nc.Message(7, keywords=[], location=(0, 0))) == {(1, 7)}


# --- life -------------------------------------------------------------------------------------------------------------


def test_the_dead_are_cleared_away_and_answers_stay() -> None:
    matcher = nc.Matcher("keyword_first", space="plane")
    ring = nc.Polygon([[(0, 0), (10, 0), (10, 10), (0, 10)], [(2, 2), (8, 2), (8, 8), (2, 8)]])
    matcher.subscribe([nc.Subscription("ring", interest="w0 AND NOT w9", region=ring), nc.Subscription("any", keywords=["w0"])])
    for round_ in range(4):
        matcher.subscribe(
            [nc.Subscription(f"t{i}", keywords=[f"w{i % 9}"], region=nc.Box(0, 0, round_, 1)) for i in range(700)]
        )
    matcher.unsubscribe([f"t{i}" for i in range(700)])
    assert matcher._subscriptions.clauses.n < 1000
    assert delivered(matcher, nc.Message(7, keywords=["w0"], location=(1, 1))) == {("ring", 7), ("any", 7)}
    assert delivered(matcher, nc.Message(7, keywords=["w0"], location=(5, 5))) == {("any", 7)}


def test_readers_run_beside_a_writer() -> None:
    matcher = nc.Matcher(space="plane")
    matcher.subscribe([nc.Subscription(1000, keywords=["a"])])
    problems: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                assert (1000, 7) in delivered(matcher, nc.Message(7, keywords=["a"], location=(0, 0)))
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(60):
        matcher.subscribe([nc.Subscription(i, keywords=["a"], region=nc.Box(-1, -1, 1, 1))])
        matcher.unsubscribe([i - 5])
    done.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(delivered(matcher, nc.Message(7, keywords=["a"], location=(0, 0)))) == 6
