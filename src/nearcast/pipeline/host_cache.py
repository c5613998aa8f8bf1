"""Copies of folders of the store on each host, shared by its processes, and the objects that one process has opened.

Folders of the store never change, so a copy is correct or absent. A copy is made under a hidden name and then moved into place;
if two processes make the same one, the second removes its own. A deleted copy is fetched again.
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

_MAX_OPENED = 256
_opened: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


def host_folder(shared_dir: str) -> Path:
    """The folder of this host: `shared_dir`, or one of this user in the system's temporary folder."""
    return Path(shared_dir) if shared_dir else Path(tempfile.gettempdir()) / f"nearcast-{getpass.getuser()}"


def is_running(process: int) -> bool:
    """Whether a process with this number runs on this host, of any user."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True


def remove_orphans(folder: Path, prefix: str) -> None:
    """Remove what killed processes left in a folder: names with the prefix and the number of the process."""
    for orphan in folder.glob(f"{prefix}*"):
        process = orphan.name.removeprefix(prefix).split("-")[0]
        if process.isdigit() and not is_running(int(process)):
            shutil.rmtree(orphan, ignore_errors=True)


def fetch_to_host(store: Store, name: str, shared_dir: str) -> Path:
    """The copy of a folder of the store on this host; fetched if it is not there."""
    local = host_folder(shared_dir) / store.identity / name
    if not local.exists():
        partial = local.parent / f".{local.name}.{uuid.uuid4().hex}"
        partial.parent.mkdir(parents=True, exist_ok=True)
        try:
            store.fetch_folder(name, partial)
            with suppress(OSError):
                # Fails if another process was faster; its copy is the same.
                partial.rename(local)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        _remove_collected(store, name.split("/")[0], host_folder(shared_dir) / store.identity)
    return local


def _remove_collected(store: Store, kind: str, folder: Path) -> None:
    """Remove copies of versions that the store has removed. Processes may still use the files they have open."""
    stored = set(store.names(kind))
    for copy in (folder / kind).iterdir():
        if copy.name.isdigit() and copy.name not in stored:
            shutil.rmtree(copy, ignore_errors=True)


def open_once(key: tuple[Any, ...], open_it: Callable[[], Opened]) -> Opened:
    """The object that this process opened under the key, or else the result of `open_it`. Old ones are dropped."""
    if key not in _opened:
        _opened[key] = open_it()
        while len(_opened) > _MAX_OPENED:
            _opened.popitem(last=False)
    _opened.move_to_end(key)
    result: Opened = _opened[key]
    return result


def run_once_per_host(name: str, work: Callable[[], None], shared_dir: str) -> None:
    """Do work whose result stays on the host (compiled kernels). The first process does it; the others wait for it."""
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
