"""Spark sessions with the settings of the pipeline: local, on a cluster, or through Spark Connect."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.errors import EnvironmentProblem
from nearcast.pipeline.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

# The settings of every session; those of the user override them.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A shuffle has as many partitions as there are shards, and no more.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Two attempts of a task at the same time would do the same work twice; no task is slow by chance.
    "spark.speculation": "false",
}
# Further settings if driver and disk are on this machine.
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Short jobs: the quick compiler and the simplest collector start fastest.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
    # Five to ten times as fast as the default on a local disk; not for object stores.
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
}


def local_session(name: str = "nearcast", master: str = "local[*]", config: Mapping[str, Any] | None = None) -> SparkSession:
    """A session on this machine (`local[n]`, `local-cluster[...]`). Workers run the same Python."""
    return open_session(name, master, config)


def open_session(name: str, master: str, config: Mapping[str, Any] | None = None) -> SparkSession:
    """A session on a master.

    `sc://host:port` connects to a Spark Connect server, which has its own settings. An empty master uses that of
    `spark-submit`.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EnvironmentProblem("pyspark is not installed; install it with: pip install 'nearcast[spark]'") from None
    options = {str(key): str(value) for key, value in (config or {}).items()}
    builder = SparkSession.builder.appName(name)
    if master.startswith("sc://"):
        builder = builder.remote(master)
    elif master:
        use_java()
        # Otherwise workers use the first python3 of PATH, which may lack the packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        is_local = master.startswith("local")
        if is_local:
            os.environ["PYSPARK_PYTHON"] = sys.executable
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            _name_spark_home()
        builder = builder.master(master)
        options = {**SETTINGS, **(LOCAL_SETTINGS if is_local else {}), **options}
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def has_session() -> bool:
    """Whether this process has a session."""
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def _name_spark_home() -> None:
    """`local-cluster` starts its executors from the folder of the package."""
    import pyspark

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
