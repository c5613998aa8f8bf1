"""One batch of messages, run twice into a Delta table: `python delta_runner.py SETTINGS.toml ROWS.parquet`."""

from __future__ import annotations

import sys
from pathlib import Path

from nearcast.pipeline.io.sources import read_messages
from nearcast.pipeline.match.stream import BatchRunner
from nearcast.pipeline.session import local_session
from nearcast.pipeline.settings import read_pipeline_settings


def main() -> None:
    settings = read_pipeline_settings(Path(sys.argv[1]), {})
    session = local_session("nearcast delta", settings.master, settings.spark)
    frame = read_messages(session, settings, is_stream=False)
    # The second runner is that of a process that started after the first had died before it could say what it did.
    BatchRunner(settings)(frame, 0)
    BatchRunner(settings)(frame, 0)
    session.read.format("delta").load(settings.sink).write.parquet(sys.argv[2])
    session.stop()


if __name__ == "__main__":
    main()
