"""`nearcast`: the entry point; says what went wrong in one line."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import nearcast
from nearcast.cli import key, pipeline
from nearcast.cli.backup import backup, restore
from nearcast.cli.console import remarks
from nearcast.cli.demo import demo
from nearcast.cli.doctor import doctor
from nearcast.cli.explain import explain
from nearcast.cli.generate import generate
from nearcast.cli.indexes import indexes
from nearcast.cli.listen import listen
from nearcast.cli.load import load
from nearcast.cli.match import match
from nearcast.cli.move import move
from nearcast.cli.publish import publish
from nearcast.cli.serve import serve
from nearcast.cli.size import size
from nearcast.cli.subscribe import subscribe
from nearcast.cli.top import top
from nearcast.cli.warm import warm
from nearcast.errors import NearcastError

FAILED = 2


class Commands(TyperGroup):
    """Turns errors that are meant for the user into one red line; NEARCAST_DEBUG=1 shows where they come from."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (NearcastError, OSError) as error:
            # Without a file name it is no mistake of the user: a closed pipe, for one, ends the program in silence.
            is_told = isinstance(error, NearcastError) or error.filename is not None
            if not is_told or os.environ.get("NEARCAST_DEBUG", "0") not in ("", "0"):
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


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nearcast {nearcast.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
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
app.add_typer(key.app, name="key")
app.add_typer(pipeline.app, name="pipeline")


def main() -> None:
    """The console script."""
    app(prog_name="nearcast")
