"""A ranked stream in a process of its own, to be killed: `python rank_runner.py SETTINGS.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from nearcast.pipeline.ranked.sources import read_rows
from nearcast.pipeline.ranked.stream import start_rank
from nearcast.pipeline.session import local_session
from nearcast.pipeline.settings_table import read_pipeline_settings


def main() -> None:
    settings = read_pipeline_settings(Path(sys.argv[1]), {})
    session = local_session("nearcast ranked stream", settings.master, settings.session_settings)
    start_rank(read_rows(session, settings), settings).awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
