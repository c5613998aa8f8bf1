"""A local Spark session with the settings the pipeline was measured with."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nearcast.errors import EnvironmentProblem
from nearcast.pipeline.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What every session of ours has; a cluster's own configuration comes first where it differs.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Short jobs: the quick compiler and the simplest collector start fastest.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
}


def local_session(name: str = "nearcast", master: str = "local[*]") -> SparkSession:
    """A session on this machine; workers run this very Python."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EnvironmentProblem("pyspark is not installed; install it with: pip install 'nearcast[spark]'") from None
    use_java()
    # Workers would otherwise take the first python3 of PATH, which need not have our packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
