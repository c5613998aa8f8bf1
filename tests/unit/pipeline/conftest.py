"""Small worlds for the pipeline, and settings that keep everything in a folder of the test."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nearcast.pipeline.settings import PipelineSettings
from support.pipelines import make_messages, make_subscriptions


@pytest.fixture
def world() -> tuple[pa.Table, pa.Table]:
    """Subscriptions of every kind, and messages."""
    return make_subscriptions(150, 0), make_messages(400, 1)


@pytest.fixture
def settings(tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(work=str(tmp_path / "work"), shared_dir=str(tmp_path / "host"), space="plane")
