"""Verbs of a server and its store: `serve`, `key`, `backup` and `restore`, `demo`."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.console import remarks
from nearcast.cli.options import need_service
from nearcast.errors import NearcastError


def serve(
    store: Annotated[
        str, typer.Option(help="File of the embedded store, or postgresql://... ; created if it does not exist.")
    ] = "nearcast.db",
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 8080,
    snapshots: Annotated[
        Path | None, typer.Option(help="Folder of index snapshots; default: the path of the store with .index.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM); without it, put a proxy in front.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="Private key of the certificate (PEM).")] = None,
    engine: Annotated[
        str, typer.Option(help="embedded, or the topics of a pipeline: file:///FOLDER, kafka://HOST:PORT/PREFIX.")
    ] = "embedded",
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> None:
    """Serve subscriptions, messages and inboxes over HTTP. Create a key first: nearcast key create NAME --role admin."""
    need_service()
    from nearcast.service.server import Serving, run_server

    if (certificate is None) != (private_key is None):
        raise NearcastError("--certificate and --private-key go together; give both or none")
    if log_format not in ("text", "json"):
        raise NearcastError(f"--log-format={log_format!r} is unknown; give text or json")
    run_server(Serving(store, host, port, snapshots, certificate, private_key, log_format == "json", engine))


key_app = typer.Typer(help="API keys of a server, through its store.", no_args_is_help=True)
Store = Annotated[str, typer.Option(help="File of the store, or postgresql://...")]
Tenant = Annotated[str, typer.Option(help="Tenant; a key sees only what belongs to its tenant.")]


@key_app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="Name of the key.")],
    role: Annotated[list[str], typer.Option(help="publisher, subscriber or admin; may be repeated.")],
    subscriber: Annotated[str | None, typer.Option(help="The subscriber it acts for; default: the name.")] = None,
    tenant: Tenant = "default",
    store: Store = "nearcast.db",
) -> None:
    """Create a key and print its secret, which cannot be shown again."""
    need_service()
    import msgspec

    from nearcast.service.auth.keys import make_key
    from nearcast.storage.batch import AuditRow, Batch
    from nearcast.storage.store import open_store
    from nearcast.wire.api import KeyIn, Name

    try:
        checked_tenant = msgspec.convert(tenant, Name)
        request = msgspec.convert({"name": name, "roles": role, "subscriber": subscriber}, KeyIn)
    except msgspec.ValidationError as error:
        raise NearcastError(f"the key cannot be created: {error}; names are letters, digits and ._:@-") from None
    row, created = make_key(checked_tenant, request)
    opened_store = open_store(store)
    try:
        entry = AuditRow(time.time(), tenant, "cli", "key.create", row.id, f"{name}: {', '.join(role)}")
        opened_store.write(Batch(keys=[row], audit=[entry]))
    finally:
        opened_store.close()
    typer.echo(created.secret)


@key_app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only keys of this tenant.")] = None, store: Store = "nearcast.db"
) -> None:
    """List keys, without their secrets."""
    need_service()
    from nearcast.service.auth.keys import key_out
    from nearcast.storage.store import open_store

    opened_store = open_store(store)
    try:
        for row in opened_store.keys(tenant):
            key = key_out(row)
            typer.echo(f"{key.id}  {key.tenant}  {key.name}  {','.join(key.roles)}  for {key.subscriber}")
    finally:
        opened_store.close()


@key_app.command("remove")
def remove_key(
    id: Annotated[str, typer.Argument(help="Id of the key, from nearcast key list.")], store: Store = "nearcast.db"
) -> None:
    """Remove a key. A running server rejects it within seconds."""
    need_service()
    from nearcast.storage.batch import AuditRow, Batch
    from nearcast.storage.store import open_store

    opened_store = open_store(store)
    try:
        row = opened_store.key(id)
        if row is None:
            raise NearcastError(f"there is no key {id!r}; nearcast key list shows them")
        entry = AuditRow(time.time(), row.tenant, "cli", "key.delete", id, "")
        opened_store.write(Batch(removed_keys=[id], audit=[entry]))
    finally:
        opened_store.close()


def backup(
    target: Annotated[Path, typer.Argument(help="File to write; must not exist.")],
    store: Annotated[str, typer.Option(help="File of the store, or postgresql://...")] = "nearcast.db",
) -> None:
    """Copy a store into one file, also while the server runs. It contains everything acknowledged before."""
    need_service()
    from nearcast.storage.backup import back_up

    n_rows = back_up(store, target)
    remarks().print(f"{n_rows:,} rows written to {target}")


def restore(
    source: Annotated[Path, typer.Argument(help="File that nearcast backup wrote.")],
    store: Annotated[str, typer.Option(help="File of the new store, or an empty PostgreSQL database.")] = "nearcast.db",
) -> None:
    """Restore a backup into an empty store, which may be of the other kind."""
    need_service()
    from nearcast.storage.backup import restore_store

    n_rows = restore_store(source, store)
    remarks().print(f"{n_rows:,} rows restored from {source}")


def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 0,
    rate: Annotated[float, typer.Option(min=0.0, max=1000.0, help="Reports per second.")] = 8.0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    folder: Annotated[Path | None, typer.Option(help="Folder for the data of the server; default: a temporary one.")] = None,
) -> None:
    """Start a server with a simulated city and open its map: New York, real reports, moving cars. Ctrl-C ends it."""
    need_service()
    from tempfile import TemporaryDirectory

    from nearcast.demo.run import run_demo

    with contextlib.ExitStack() as stack:
        data = folder or Path(stack.enter_context(TemporaryDirectory(prefix="nearcast-demo-")))
        run_demo(data, port, rate, open_browser, lambda text: remarks().print(text, markup=False, soft_wrap=True))
