"""All steps in a process of its own, on the master that the settings name: `python cluster_runner.py SETTINGS.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from nearcast.pipeline.indexing import build_index
from nearcast.pipeline.matching import start_match
from nearcast.pipeline.planning import make_plan
from nearcast.pipeline.prepare import prepare
from nearcast.pipeline.session import open_session
from nearcast.pipeline.settings_table import read_pipeline_settings
from nearcast.pipeline.sources import read_messages, read_subscriptions


def main() -> None:
    settings = read_pipeline_settings(Path(sys.argv[1]), {})
    session = open_session("nearcast cluster", settings.master, settings.spark)
    prepare(session, read_messages(session, settings, is_stream=False), settings)
    subscriptions = read_subscriptions(session, settings)
    make_plan(subscriptions, settings)
    build_index(session, subscriptions, settings)
    start_match(read_messages(session, settings, is_stream=True), settings).awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
