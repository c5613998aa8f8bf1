"""One real Spark session for every test that needs one; a task may fail three times before its job does."""

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
