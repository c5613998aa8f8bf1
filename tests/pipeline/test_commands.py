"""The verbs of the command line, one after the other, and the bundled sample from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast.cli.main import app
from nearcast.cli.pipeline_tables import show_sample
from nearcast.pipeline.prepare.keyword_statistics import current_statistics
from nearcast.pipeline.progress import StreamNews
from nearcast.pipeline.ranked.sample import REACH_M, WINDOW, RankedSummary, ranked_subscriptions
from nearcast.pipeline.sample_run import N_BATCHES, run_sample
from nearcast.pipeline.store import Store, StreamFolders
from nearcast.workloads import sample_messages, sample_subscriptions
from support.pipelines import make_messages, make_subscriptions
from support.ranked_input import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def pairs(table: pa.Table) -> list[tuple[object, object]]:
    return sorted(zip(table["message_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))


def test_the_bundled_sample_gives_the_deliveries_of_one_process(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stages: list[str] = []
    news: list[StreamNews] = []
    summary = run_sample(spark, tmp_path, stages.append, news.append, n_examples=3)
    matcher = nc.Matcher()
    matcher.subscribe_table(sample_subscriptions())
    expected = matcher.match_table(sample_messages().select(["id", "text", "x", "y"]))
    assert pairs(pq.read_table(summary.folders["deliveries"])) == pairs(expected)
    assert summary.deliveries == expected.num_rows > 1000
    assert len(summary.examples) == 3
    assert [stage.split(":")[0] for stage in stages] == ["prepare", "plan", "index", "match", "rank"]
    # Both streams read all messages, the second also those who want them ranked.
    assert sum(one.rows for one in news) == 2 * sample_messages().num_rows + summary.ranked.subscriptions
    assert len(news) == 2 * N_BATCHES
    check_ranked(summary.ranked)
    show_sample(summary)
    output = capsys.readouterr().out
    assert summary.examples[0].note in output
    assert f"→ {summary.mechanism}" in output


def check_ranked(ranked: RankedSummary) -> None:
    """The changes of the lists are those of one process."""
    counted = current_statistics(Store(Path(ranked.folder).parents[2]), nc.Analysis())
    words = [counted.keywords.space.name(word) for word in range(len(counted.frequency))]
    idf: dict[str | int, int] = dict(zip(words, counted.frequency.tolist(), strict=True))
    ranker = nc.Ranker(nc.CountWindow(WINDOW), max_distance=REACH_M, idf=idf, n_documents=counted.n_messages)
    changes = [ranker.subscribe_table(ranked_subscriptions())]
    messages, size = sample_messages(), -(-sample_messages().num_rows // N_BATCHES)
    for number in range(N_BATCHES):
        batch = messages.slice(number * size, size).sort_by([("time", "ascending"), ("id", "ascending")])
        changes.append(ranker.publish_table(batch.select(["id", "text", "x", "y", "time"])))
    stored = pq.read_table(ranked.folder)
    assert sorted(rows_of(stored)) == sorted(row for table in changes for row in rows_of(table))
    assert ranked.changes == stored.num_rows > 10_000
    assert all(len(story.lists) == N_BATCHES for story in ranked.stories)


def test_every_verb_does_its_step_and_says_what_it_did(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "changes").mkdir()
    messages = make_messages(300, 1)
    pq.write_table(messages.slice(0, 200), tmp_path / "raw" / "0.parquet")
    subscriptions = make_subscriptions(120, 2)
    pq.write_table(subscriptions, tmp_path / "subscriptions.parquet")
    settings = tmp_path / "pipeline.toml"
    settings.write_text(
        f'work = "{tmp_path}/work"\nshared_dir = "{tmp_path}/host"\nmessages = "{tmp_path}/raw"\nspace = "plane"\nshards = 3\n'
        f'subscriptions = "{tmp_path}/subscriptions.parquet"\nmaster = "local[2]"\nmax_deltas = 2\n'
    )

    def run_verb(*words: str) -> str:
        outcome = CliRunner().invoke(app, ["pipeline", *words])
        assert outcome.exit_code == 0, outcome.output
        return str(outcome.output)

    options = ("--settings", str(settings))
    assert "200 messages kept" in run_verb("prepare", *options)
    plot = tmp_path / "plan.svg"
    assert "keyword_first" in run_verb("plan", *options, "--plot", str(plot))
    assert "shards per message" in plot.read_text()
    assert "plan 2: 3 shards by location" in run_verb("plan", *options, "--set", "mechanism=location")
    assert "index version 1 is current" in run_verb("index", *options)
    assert "200 messages" in run_verb("match", *options)
    changed = make_subscriptions(30, 5, first_id=100)
    rows = changed.append_column("change", pa.array([1] * 30, pa.int8()))
    pq.write_table(rows, tmp_path / "changes.parquet")
    assert "1 deltas" in run_verb("index", *options, "--changes", str(tmp_path / "changes.parquet"))
    # The second delta is one too many: the shards are packed.
    assert "0 deltas" in run_verb("index", *options, "--changes", str(tmp_path / "changes.parquet"))
    pq.write_table(messages.slice(200), tmp_path / "raw" / "1.parquet")
    assert "2 batches up to 1: 300 messages" in run_verb("match", *options)
    assert "location, balance" in run_verb("status", *options)
    assert "is split" in run_verb("rebalance", *options, "--shards", "4")
    assert "history_rows" in run_verb("settings")
    pq.write_table(ranked_subscriptions().slice(0, 5), tmp_path / "changes" / "0.parquet")
    ranked = (*options, "--set", f"changes={tmp_path}/changes", "--set", "max_distance=10")
    assert "layout 1, hashing" in run_verb("rank", *ranked)
    assert "305 rows" in run_verb("status", *options, "--set", "stream=rank")
    assert "3 shards by hashing" in run_verb("rebalance", *options, "--set", "stream=rank", "--shards", "2")
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    expected = pairs(matcher.match_table(messages.slice(0, 200)))
    matcher.subscribe_table(changed)
    expected += pairs(matcher.match_table(messages.slice(200)))
    delivered = pq.read_table(tmp_path / "work" / StreamFolders("match").deliveries)
    assert pairs(delivered) == sorted(expected)
    statistics = json.loads((tmp_path / "work" / "prepared" / "statistics.json").read_text())
    assert statistics["kept"] == 200
