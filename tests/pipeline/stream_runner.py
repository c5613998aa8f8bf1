"""A stream in a process of its own, to be killed: `python stream_runner.py SETTINGS.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from nearcast.pipeline.io.sources import read_messages
from nearcast.pipeline.match.stream import start_match
from nearcast.pipeline.session import local_session
from nearcast.pipeline.settings import read_pipeline_settings


def main() -> None:
    settings = read_pipeline_settings(Path(sys.argv[1]), {})
    session = local_session("nearcast stream", settings.master, settings.session_settings)
    start_match(read_messages(session, settings, is_stream=True), settings).awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
