"""`nearcast backup` and `nearcast restore`: a copy of a store, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def backup(
    target: Annotated[Path, typer.Argument(help="File to write; must not exist.")],
    store: Annotated[str, typer.Option(help="File of the store, or postgresql://...")] = "nearcast.db",
) -> None:
    """Copy a store into one file, also while the server runs. Everything acknowledged before is in it."""
    from nearcast.cli.console import remarks
    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.storage.backup import back_up

    n_rows = back_up(store, target)
    remarks().print(f"{n_rows:,} rows written to {target}")


def restore(
    source: Annotated[Path, typer.Argument(help="File that nearcast backup wrote.")],
    store: Annotated[str, typer.Option(help="File of the store to make, or an empty PostgreSQL database.")] = "nearcast.db",
) -> None:
    """Make a store from a backup, of the same or of the other kind. The store must be empty."""
    from nearcast.cli.console import remarks
    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.storage.backup import restore_store

    n_rows = restore_store(source, store)
    remarks().print(f"{n_rows:,} rows restored from {source}")
