"""`nearcast key`: API keys, made and removed in the store itself; a running server knows them within seconds."""

from __future__ import annotations

import time
from typing import Annotated

import typer

app = typer.Typer(help="API keys of a server, by its store.", no_args_is_help=True)
Store = Annotated[str, typer.Option(help="File of the store, or postgresql://...")]
Tenant = Annotated[str, typer.Option(help="Tenant; everything a key sees is inside its own.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the key.")],
    role: Annotated[list[str], typer.Option(help="publisher, subscriber or admin; may be repeated.")],
    subscriber: Annotated[str | None, typer.Option(help="Whom it acts for; default: the name.")] = None,
    tenant: Tenant = "default",
    store: Store = "nearcast.db",
) -> None:
    """Make a key and print its secret, which is shown only now."""
    from nearcast.cli.extras import need_service

    need_service()
    import msgspec

    from nearcast.errors import NearcastError
    from nearcast.service.auth.keys import make_key
    from nearcast.storage.batch import AuditRow, Batch
    from nearcast.storage.store import open_store
    from nearcast.wire.api import KeyIn, Name

    try:
        checked_tenant = msgspec.convert(tenant, Name)
        given = msgspec.convert({"name": name, "roles": role, "subscriber": subscriber}, KeyIn)
    except msgspec.ValidationError as error:
        raise NearcastError(f"no key can be made of this: {error}; names are letters, digits and ._:@-") from None
    row, shown = make_key(checked_tenant, given)
    kept = open_store(store)
    try:
        entry = AuditRow(time.time(), tenant, "cli", "key.create", row.id, f"{name}: {', '.join(role)}")
        kept.write(Batch(keys=[row], audit=[entry]))
    finally:
        kept.close()
    typer.echo(shown.secret)


@app.command("list")
def show(tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None, store: Store = "nearcast.db") -> None:
    """List keys, without their secrets."""
    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.service.auth.keys import key_out
    from nearcast.storage.store import open_store

    kept = open_store(store)
    try:
        for row in kept.keys(tenant):
            key = key_out(row)
            typer.echo(f"{key.id}  {key.tenant}  {key.name}  {','.join(key.roles)}  for {key.subscriber}")
    finally:
        kept.close()


@app.command()
def remove(
    id: Annotated[str, typer.Argument(help="Id of the key, from nearcast key list.")], store: Store = "nearcast.db"
) -> None:
    """Remove a key; a running server forgets it within seconds."""
    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.errors import NearcastError
    from nearcast.storage.batch import AuditRow, Batch
    from nearcast.storage.store import open_store

    kept = open_store(store)
    try:
        row = kept.key(id)
        if row is None:
            raise NearcastError(f"there is no key {id!r}; nearcast key list shows them")
        entry = AuditRow(time.time(), row.tenant, "cli", "key.delete", id, "")
        kept.write(Batch(removed_keys=[id], audit=[entry]))
    finally:
        kept.close()
