"""`nearcast demo`: a server with a simulated city, and the map console open on it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer


def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")] = 0,
    rate: Annotated[float, typer.Option(min=0.0, max=1000.0, help="Reports per second.")] = 8.0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    folder: Annotated[
        Path | None, typer.Option(help="Where the server keeps its data; default: a folder that is removed.")
    ] = None,
) -> None:
    """Start a server in a simulated city and look at it: New York, real reports, cars that pass by. Ctrl-C ends it."""
    from nearcast.cli.extras import need_service

    need_service()
    from tempfile import TemporaryDirectory

    from nearcast.cli.console import remarks
    from nearcast.demo.run import run_demo

    with contextlib.ExitStack() as left:
        place = folder or Path(left.enter_context(TemporaryDirectory(prefix="nearcast-demo-")))
        run_demo(place, port, rate, open_browser, lambda text: remarks().print(text, markup=False, soft_wrap=True))
