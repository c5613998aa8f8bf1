"""Small workloads and the folder of real data, shared by the tests of the package."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nearcast.workloads.short_messages import Tweets


@pytest.fixture(scope="session")
def scale() -> Callable[[int], int]:
    """Sizes for compiled kernels; a twentieth of them when kernels are interpreted."""
    is_interpreted = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return lambda n: max(n // 20, 50) if is_interpreted else n


@pytest.fixture(scope="session")
def small_tweets() -> Tweets:
    """Quick to set up, and the same with or without the package wordfreq."""
    return Tweets(vocabulary_size=20_000, pool=200_000, frequencies="curve")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Real data, where somebody has it."""
    folder = os.environ.get("NEARCAST_DATA")
    if not folder or not (Path(folder) / "gazetteer_places.parquet").is_file():
        pytest.skip("set NEARCAST_DATA to the folder with gazetteer_places.parquet, messages_*.parquet and roads/")
    return Path(folder)
