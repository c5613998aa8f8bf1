"""One real Spark session for each group of tests that need one; a task may fail three times before its job does.

Two groups share the work: `spark` (matching, preparing, commands) and `spark_lists` (rank and track, which keep lists).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from nearcast.errors import EnvironmentProblem
from nearcast.pipeline.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        session = local_session("nearcast tests", "local[2,3]")
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    yield session
    session.stop()
