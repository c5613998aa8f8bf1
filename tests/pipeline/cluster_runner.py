"""All steps in a process of its own, on the master that the settings name: `python cluster_runner.py SETTINGS.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from nearcast.pipeline.index.step import build_index
from nearcast.pipeline.io.sources import read_messages, read_subscriptions
from nearcast.pipeline.match.stream import start_match
from nearcast.pipeline.plan.step import make_plan
from nearcast.pipeline.prepare.step import prepare
from nearcast.pipeline.session import open_session
from nearcast.pipeline.settings import read_pipeline_settings


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
