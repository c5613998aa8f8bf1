"""`nearcast`: the entry point. Errors of users are reported in one line."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import nearcast
from nearcast.cli import pipeline
from nearcast.cli.client import listen, move, publish, subscribe, top
from nearcast.cli.console import remarks
from nearcast.cli.doctor import doctor
from nearcast.cli.match import explain, indexes, match
from nearcast.cli.server import backup, demo, key_app, restore, serve
from nearcast.cli.size import size
from nearcast.cli.warm import warm
from nearcast.cli.workload import generate, load
from nearcast.errors import NearcastError

FAILED = 2


class Commands(TyperGroup):
    """Reports errors of the user as one red line; NEARCAST_DEBUG=1 shows the traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (NearcastError, OSError) as error:
            # An OSError without a file name is not an error of the user: a closed pipe, for example.
            is_reported = isinstance(error, NearcastError) or error.filename is not None
            if not is_reported or os.environ.get("NEARCAST_DEBUG", "0") not in ("", "0"):
                raise
            text = str(error) if isinstance(error, NearcastError) else f"{error.strerror}: {error.filename!r}"
            remarks().print(f"error: {text}", style="red", markup=False, soft_wrap=True)
            raise typer.Exit(FAILED) from None


app = typer.Typer(
    cls=Commands,
    help="Location-aware publish/subscribe: standing interests in places and words, matched exactly and fast.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"nearcast {nearcast.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Location-aware publish/subscribe: standing interests in places and words, matched exactly and fast."""


app.command()(match)
app.command()(explain)
app.command()(generate)
app.command()(indexes)
app.command()(warm)
app.command()(doctor)
app.command()(size)
app.command()(serve)
app.command()(demo)
app.command()(subscribe)
app.command()(publish)
app.command()(listen)
app.command()(move)
app.command()(top)
app.command()(load)
app.command()(backup)
app.command()(restore)
app.add_typer(key_app, name="key")
app.add_typer(pipeline.app, name="pipeline")


def main() -> None:
    """The console script."""
    app(prog_name="nearcast")
