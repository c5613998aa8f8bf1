"""What an earlier version saved: it opens and answers, or it is refused with a sentence that says what to do."""

from __future__ import annotations

import asyncio
import tarfile
from pathlib import Path
from typing import Any

import pytest

import nearcast as nc
from nearcast.columns.folder import FORMAT
from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.limits import read_limits
from nearcast.storage.store import open_store

# One folder of each kind, a pipeline's index and a service's store, saved in format 11.
SAVED = Path(__file__).parent / "data" / "format_11.tar.xz"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with tarfile.open(SAVED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.parametrize(
    ("engine", "folder", "kind"),
    [(nc.Matcher, "matcher", "matcher"), (nc.MovingMatcher, "moving", "moving matcher"), (nc.Ranker, "ranker", "ranker")],
)
def test_a_folder_of_an_older_format_is_refused(saved: Path, engine: Any, folder: str, kind: str) -> None:
    with pytest.raises(nc.NearcastError, match=f"'{kind}' of format 11; expected '{kind}' of format {FORMAT}; build it again"):
        engine.open(saved / folder)


def test_a_store_of_the_service_is_read(saved: Path) -> None:
    caller = Caller("k", "t", frozenset({"subscriber", "publisher"}), "ann")

    async def events() -> list[str]:
        broker = Broker(open_store(str(saved / "service.db")), None, read_limits())
        await broker.start()
        inbox = await broker.open_inbox(caller)
        page = await broker.read_events(inbox, 0, 100)
        broker.close_inbox(inbox)
        await broker.stop()
        return [row.type.rpartition(".")[2] for row in page.rows]

    assert asyncio.run(events()) == ["match"]
