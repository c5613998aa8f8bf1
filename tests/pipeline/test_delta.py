"""A real Delta table gets every delivery once, even from a batch that runs again (`make soak`: jars are fetched)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.settings import PipelineSettings
from nearcast.testing.budget import current_budget
from support.pipelines import make_messages, make_subscriptions, plan_for, publish_here

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(not current_budget().is_soak, reason="fetches jars: make soak"),
]

PACKAGE = "io.delta:delta-spark_2.13:4.4.0"
# What Spark says where the jars cannot be had, and where they were made for another Spark.
NOT_THERE = ("unresolved dependency", "NoSuchMethodError", "NoClassDefFoundError")


def test_a_batch_that_runs_again_leaves_no_second_trace_in_a_delta_table(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    messages, subscriptions = make_messages(200, 1), make_subscriptions(150, 0)
    (tmp_path / "raw").mkdir()
    pq.write_table(messages, tmp_path / "raw" / "0.parquet")
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'work = "{tmp_path}/work"\nshared_dir = "{tmp_path}/host"\nspace = "plane"\nmaster = "local[2]"\nshards = 3\n'
        f'messages = "{tmp_path}/raw"\nmechanism = "prefix"\nsink_format = "delta"\nsink = "{tmp_path}/deliveries"\n'
        f'[spark]\n"spark.jars.packages" = "{PACKAGE}"\n'
        '"spark.sql.extensions" = "io.delta.sql.DeltaSparkSessionExtension"\n'
        '"spark.sql.catalog.spark_catalog" = "org.apache.spark.sql.delta.catalog.DeltaCatalog"\n'
    )
    delta_settings = PipelineSettings(work=str(tmp_path / "work"), space="plane", mechanism="prefix", shards=3)
    publish_here(delta_settings, plan_for(subscriptions, messages, delta_settings), subscriptions)
    program = Path(__file__).with_name("delta_runner.py")
    done = subprocess.run(
        [sys.executable, str(program), str(settings), str(tmp_path / "rows")], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and any(words in done.stderr for words in NOT_THERE):
        pytest.skip(f"{PACKAGE} cannot be had here, or not for Spark {pyspark.__version__}")
    assert done.returncode == 0, done.stderr[-5000:]
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    delivered, expected = pq.read_table(tmp_path / "rows"), matcher.match_table(messages)
    names = ("message_id", "subscription_id")
    rows = [sorted(zip(*(table[name].to_pylist() for name in names), strict=True)) for table in (delivered, expected)]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 0
