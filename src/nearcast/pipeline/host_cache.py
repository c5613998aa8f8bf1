"""The folder on each host where its processes keep what they fetched from the store, and what one process has opened.

Folders of the store never change, so a copy is right or absent. A copy is made aside and moved into place; when two processes
make the same one, the second throws its own away. A copy that somebody deleted is fetched again.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import os
import shutil
import tempfile
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import nearcast
from nearcast.pipeline.store import Store

Opened = TypeVar("Opened")

_MOST_OPENED = 256
_opened: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


def host_folder(shared_dir: str) -> Path:
    """The folder of this host: the one that was set, or one of this user in the system's folder for such things."""
    return Path(shared_dir) if shared_dir else Path(tempfile.gettempdir()) / f"nearcast-{getpass.getuser()}"


def is_running(process: int) -> bool:
    """Whether this host has a process of that number, whosever it is."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True


def remove_orphans(folder: Path, prefix: str) -> None:
    """Remove what was left in a folder by processes that were killed: named by the prefix and the number of the process."""
    for left in folder.glob(f"{prefix}*"):
        process = left.name.removeprefix(prefix).split("-")[0]
        if process.isdigit() and not is_running(int(process)):
            shutil.rmtree(left, ignore_errors=True)


def fetched(store: Store, name: str, shared_dir: str) -> Path:
    """A folder of the store as a folder of this host."""
    local = host_folder(shared_dir) / store.identity / name
    if not local.exists():
        aside = local.parent / f".{local.name}.{uuid.uuid4().hex}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        try:
            store.fetch_folder(name, aside)
            with suppress(OSError):
                # Fails when another process was faster: its copy is as good.
                aside.rename(local)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _forget_collected(store, name.split("/")[0], host_folder(shared_dir) / store.identity)
    return local


def _forget_collected(store: Store, area: str, folder: Path) -> None:
    """Remove copies of what the store no longer has. Processes that have them open keep them open."""
    kept = set(store.names(area))
    for copy in (folder / area).iterdir():
        if copy.name.isdigit() and copy.name not in kept:
            shutil.rmtree(copy, ignore_errors=True)


def opened(key: tuple[Any, ...], open_it: Callable[[], Opened]) -> Opened:
    """What this process opened under the key before, or else what `open_it` gives; the longest unused are forgotten."""
    if key not in _opened:
        _opened[key] = open_it()
        while len(_opened) > _MOST_OPENED:
            _opened.popitem(last=False)
    _opened.move_to_end(key)
    found: Opened = _opened[key]
    return found


def warm_up_once(name: str, work: Callable[[], None], shared_dir: str) -> None:
    """Do work whose result stays on the host (compiled kernels): the first process does it, the others wait for it."""
    folder = host_folder(shared_dir)
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f"warm-{nearcast.__version__}-{name}"
    if mark.exists():
        return
    with open(folder / "warm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            work()
            mark.touch()
