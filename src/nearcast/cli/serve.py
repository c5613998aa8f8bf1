"""`nearcast serve`: the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    store: Annotated[
        str, typer.Option(help="File of the embedded store, or postgresql://... ; made if it is not there.")
    ] = "nearcast.db",
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 8080,
    snapshots: Annotated[
        Path | None, typer.Option(help="Folder of index snapshots; default: beside the store's file, with .index.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM); without it, put a proxy in front.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="Private key of the certificate (PEM).")] = None,
    engine: Annotated[
        str, typer.Option(help="embedded, or the topics of a pipeline: file:///FOLDER, kafka://HOST:PORT/PREFIX.")
    ] = "embedded",
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> None:
    """Serve subscriptions, messages and inboxes over HTTP. Make a key first: nearcast key create NAME --role admin."""
    from nearcast.cli.extras import need_service

    need_service()
    from nearcast.errors import NearcastError
    from nearcast.service.server import Serving, run_server

    if (certificate is None) != (private_key is None):
        raise NearcastError("--certificate and --private-key go together; give both or none")
    if log_format not in ("text", "json"):
        raise NearcastError(f"--log-format={log_format!r} is unknown; give text or json")
    run_server(Serving(store, host, port, snapshots, certificate, private_key, log_format == "json", engine))
