"""The bundled sample ranked: a few thousand subscribers who want the best three, told in words for a few of them."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.pipeline.progress import OnNews as Hear
from nearcast.pipeline.progress import watch_stream as listening
from nearcast.pipeline.ranked.sources import read_rows
from nearcast.pipeline.ranked.stream import start_rank
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import StreamFolders as StreamArea
from nearcast.workloads import sample_messages, sample_notes, sample_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEST = 3
WINDOW = 5_000
REACH_M = 500_000.0
"""News from farther away than this is not near at all."""
_NOT_WANTED = re.compile(r"NOT\s+\(?[^\s()]+|\b(?:AND|OR)\b|[()]")
_HOW_NEAR = re.compile(r" within about \d+ km of ")


@dataclass(frozen=True, slots=True)
class TopStory:
    """A list as it was after each batch: of each message its place and the beginning of its text, best first."""

    note: str
    lists: list[list[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class RankedSummary:
    """What ranking the sample did."""

    subscriptions: int
    changes: int
    stories: list[TopStory]
    folder: str


def ranked_subscriptions() -> pa.Table:
    """The subscriptions of the sample as ranked ones: the words they want, the middle of where they want them."""
    given = sample_subscriptions()
    rows = []
    for row in given.select(["id", "interest", "x0", "y0", "x1", "y1"]).to_pylist():
        words = _NOT_WANTED.sub(" ", row["interest"] or "").replace('"', " ").split()
        if words and row["x0"] is not None:
            middle = {"x": (row["x0"] + row["x1"]) / 2, "y": (row["y0"] + row["y1"]) / 2}
            rows.append({"id": row["id"], "keywords": sorted(set(words)), **middle, "k": BEST})
    return pa.Table.from_pylist(rows)


def rank_sample(session: SparkSession, settings: PipelineSettings, hear: Hear, n_stories: int = 3) -> RankedSummary:
    """Rank the messages that the settings name; what an earlier run left is removed."""
    work = Path(settings.work)
    shutil.rmtree(work / "ranked-subscriptions", ignore_errors=True)
    (work / "ranked-subscriptions").mkdir(parents=True)
    subscriptions = ranked_subscriptions()
    pq.write_table(subscriptions, work / "ranked-subscriptions" / "all.parquet")
    told = replace(
        settings,
        stream="rank",
        mechanism="hashing",
        changes=str(work / "ranked-subscriptions"),
        window_messages=WINDOW,
        max_distance=REACH_M,
        word_weights="prepared",
    )
    with listening(session, told.stream, hear):
        start_rank(read_rows(session, told), told).awaitTermination()
    folder = work / StreamArea(told.stream).deliveries
    changes = [pq.read_table(batch, partitioning=None) for batch in sorted(folder.glob("batch=*"), key=_number)]
    n_changes = sum(table.num_rows for table in changes)
    return RankedSummary(subscriptions.num_rows, n_changes, _stories(changes, n_stories), str(folder))


def _number(folder: Path) -> int:
    return int(folder.name.split("=")[1])


def _stories(batches: list[pa.Table], n: int) -> list[TopStory]:
    """The lists of subscribers to whom much happened, each of another kind of news."""
    counts = pa.concat_tables(batches).group_by("subscription_id").aggregate([("tick", "count")])
    order = counts.sort_by([("tick_count", "descending"), ("subscription_id", "ascending")])["subscription_id"].to_pylist()
    chosen: dict[str, str] = {}
    for name in order:
        chosen.setdefault(name.split("-")[0], name)
    messages, notes = sample_messages(), sample_notes()
    told = []
    for name in list(chosen.values())[:n]:
        note = notes.filter(pc.equal(notes["id"], name))["note"][0].as_py()
        lists = [_told(ids, messages) for ids in _lists_of(name, batches)]
        told.append(TopStory(_HOW_NEAR.sub(" near ", note), lists))
    return told


def _lists_of(name: str, batches: list[pa.Table]) -> list[list[int]]:
    """The messages in the list of a subscription after each batch, best first."""
    scores: dict[int, float] = {}
    lists = []
    for changes in batches:
        own = changes.filter(pc.equal(changes["subscription_id"], name))
        # At one tick a message may leave and others enter, in whatever order they are told.
        ordered = own.sort_by([("tick", "ascending"), ("change", "ascending")])
        columns = (ordered[column].to_pylist() for column in ("message_id", "change", "score"))
        for message, change, score in zip(*columns, strict=True):
            if change > 0:
                scores[message] = score
            else:
                scores.pop(message, None)
        lists.append(sorted(scores, key=lambda message: (-scores[message], -message)))
    return lists


def _told(ids: list[int], messages: pa.Table) -> list[tuple[str, str]]:
    rows = [messages.filter(pc.equal(messages["id"], id)).to_pylist()[0] for id in ids]
    return [(row["place"], row["text"]) for row in rows]
