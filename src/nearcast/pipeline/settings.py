"""The settings of the pipeline, as one table; read from a TOML file and from `--set key=value`."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nearcast.errors import PipelineError
from nearcast.model.analysis import Analysis
from nearcast.pipeline.store import Store

MECHANISMS = ("hashing", "location", "keyword", "prefix", "spatial_first", "keyword_first")
_CHOICES = {
    "mechanism": ("auto", *MECHANISMS),
    "spread": ("auto", "route", "everywhere"),
    "space": ("lonlat", "plane"),
    "word_weights": ("equal", "prepared"),
}


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """Every setting with its default; the metadata has its `help`."""

    work: str = field(
        default="output", metadata={"help": "folder or address (hdfs://, s3://, gs://) of everything the pipeline writes"}
    )
    master: str = field(
        default="local[*]",
        metadata={"help": "Spark master, sc://host:port for Spark Connect, or '' for the session of spark-submit"},
    )
    spark: dict[str, Any] = field(default_factory=dict, metadata={"help": "further settings of the Spark session"})
    space: str = field(default="lonlat", metadata={"help": "lonlat (degrees) or plane (any finite numbers)"})
    stem: str = field(default="", metadata={"help": "language of the stemmer; '' = no stemming"})
    stop_words: str = field(default="", metadata={"help": "list of stop words dropped from texts; '' = none"})
    messages: str = field(default="", metadata={"help": "path of raw messages; '' for formats without a path"})
    messages_format: str = field(
        default="parquet", metadata={"help": "parquet, json, csv, kafka, delta, topic, or any format of Spark"}
    )
    messages_options: dict[str, Any] = field(default_factory=dict, metadata={"help": "options of the reader of messages"})
    messages_schema: str = field(default="", metadata={"help": "schema of raw messages in DDL; needed by json, csv and kafka"})
    columns: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "our name = theirs, for columns of messages with other names"}
    )
    subscriptions: str = field(default="", metadata={"help": "path of the subscriptions"})
    subscriptions_format: str = field(
        default="parquet", metadata={"help": "format of the subscriptions; index: those of the current index, for a new plan"}
    )
    subscriptions_options: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "options of the reader of subscriptions"}
    )
    history_rows: int = field(default=20_000, metadata={"help": "messages in the sample of history"})
    mechanism: str = field(default="auto", metadata={"help": "how work is split over shards: auto, " + ", ".join(MECHANISMS)})
    shards: int = field(default=1, metadata={"help": "number of shards"})
    plan_rows: int = field(default=50_000, metadata={"help": "subscriptions sampled to make a plan"})
    index: str = field(default="auto", metadata={"help": "index inside a shard; see nearcast indexes"})
    index_parameters: dict[str, Any] = field(default_factory=dict, metadata={"help": "options of the index"})
    keep_versions: int = field(default=2, metadata={"help": "index versions kept in addition to those that a batch leases"})
    max_deltas: int = field(default=8, metadata={"help": "deltas after which they are merged into the shards"})
    shared_dir: str = field(
        default="", metadata={"help": "folder on each host where executors store shards; '' = a temporary folder"}
    )
    spread: str = field(
        default="auto",
        metadata={"help": "route (messages to shards), everywhere (all shards on each host), auto: the faster of the two"},
    )
    everywhere_bytes: int = field(default=8 << 30, metadata={"help": "largest index that is mapped on every host"})
    sink_format: str = field(
        default="parquet",
        metadata={"help": "parquet, delta, topic in files (exactly once); topic in Kafka, any format of Spark (at least once)"},
    )
    sink: str = field(
        default="", metadata={"help": "where deliveries are written; '' = streams/<stream>/deliveries below the work folder"}
    )
    sink_options: dict[str, Any] = field(default_factory=dict, metadata={"help": "options of the writer of deliveries"})
    changes: str = field(
        default="",
        metadata={"help": "source of changes of subscriptions: ranked ones for rank, moving ones for track; a topic for match"},
    )
    changes_format: str = field(default="parquet", metadata={"help": "format of the changes; match accepts only topic"})
    changes_options: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "rank, track: options of the reader of changes"}
    )
    changes_schema: str = field(
        default="", metadata={"help": "rank, track: schema of the changes in DDL; not needed for existing Parquet files"}
    )
    moves: str = field(default="", metadata={"help": "track: source of moves of subscriptions"})
    moves_format: str = field(default="parquet", metadata={"help": "track: format of the moves"})
    moves_options: dict[str, Any] = field(default_factory=dict, metadata={"help": "track: options of the reader of moves"})
    moves_schema: str = field(
        default="", metadata={"help": "track: schema of the moves in DDL; not needed for existing Parquet files"}
    )
    lifetime_seconds: float = field(
        default=0.0, metadata={"help": "track: lifetime of messages without an expiry; 0 = forever"}
    )
    tick_seconds: float = field(
        default=1.0,
        metadata={"help": "track: changes within this time are reported as one; 0 = as fine as the times of the input"},
    )
    window_messages: int = field(default=100_000, metadata={"help": "rank: size of the window in messages"})
    window_seconds: float = field(
        default=0.0, metadata={"help": "rank: size of the window in seconds; above 0 it replaces window_messages"}
    )
    max_distance: float = field(
        default=0.0,
        metadata={"help": "rank: distance at which proximity is 0; 0 = half around the Earth; required in the plane"},
    )
    word_weights: str = field(
        default="equal", metadata={"help": "rank: equal, or prepared (rare words weigh more, by the counts of prepare)"}
    )
    snapshot_batches: int = field(
        default=20,
        metadata={"help": "rank, track: batches between snapshots of shards; a restart replays the log from the last one"},
    )
    kafka_jars: str = field(
        default="", metadata={"help": "Spark's Kafka connector: a folder of jars, or group:artifact:version for Spark to fetch"}
    )
    trigger: str = field(default="available_now", metadata={"help": "available_now, or an interval such as '5 seconds'"})
    stream: str = field(
        default="match",
        metadata={"help": "name of the stream, its checkpoint and its leases; default rank and track for those verbs"},
    )

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise PipelineError(f"{name} = {getattr(self, name)!r} is unknown; give one of {', '.join(allowed)}")
        for name in (
            "shards",
            "history_rows",
            "plan_rows",
            "keep_versions",
            "max_deltas",
            "window_messages",
            "snapshot_batches",
        ):
            if getattr(self, name) < 1:
                raise PipelineError(f"{name} = {getattr(self, name)} is too small; give at least 1")

        for name in ("lifetime_seconds", "tick_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise PipelineError(f"{name} = {getattr(self, name)} is not possible; give 0 or more seconds")

    @property
    def store(self) -> Store:
        return Store(self.work)

    @property
    def session_settings(self) -> dict[str, Any]:
        """The settings of the Spark session; those in `spark` override the others."""
        return {**_connector(self.kafka_jars), **self.spark}

    @property
    def analysis(self) -> Analysis:
        return Analysis(self.stem or None, self.stop_words or None)


def _connector(jars: str) -> dict[str, str]:
    if not jars:
        return {}
    if jars.count(":") == 2 and "/" not in jars:
        return {"spark.jars.packages": jars}
    files = sorted(str(path) for path in Path(jars).glob("*.jar"))
    if not files:
        raise PipelineError(
            f"kafka_jars = {jars!r} is not a folder with jars; give one, or group:artifact:version such as "
            "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION"
        )
    return {"spark.jars": ",".join(files)}


def read_pipeline_settings(
    file: Path | None, overrides: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> PipelineSettings:
    """The settings of a TOML file, overridden by `overrides`; `defaults` are those of a verb."""
    values: dict[str, Any] = {}
    if file is not None:
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise PipelineError(f"the settings file {str(file)!r} cannot be read: {error}") from None
    values = {**(defaults or {}), **values, **overrides}
    known = {setting.name: setting for setting in fields(PipelineSettings)}
    for name, value in values.items():
        if name not in known:
            raise PipelineError(f"there is no pipeline setting {name!r}; there are {', '.join(known)}")
        expected = type(getattr(PipelineSettings(), name))
        if expected is float and type(value) is int:
            values[name] = float(value)
        elif type(value) is not expected:
            raise PipelineError(f"{name} = {value!r} is of type {type(value).__name__}; expected {expected.__name__}")
    return PipelineSettings(**values)
