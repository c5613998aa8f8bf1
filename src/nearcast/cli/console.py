"""Where commands write: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

# Wide enough for our tables when nobody says how wide the page is (a pipe, a file).
_PIPED_WIDTH = 140


def results() -> Console:
    return _console(to_errors=False)


def remarks() -> Console:
    return _console(to_errors=True)


def _console(to_errors: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=to_errors, highlight=False)
    return console if console.is_terminal else Console(stderr=to_errors, highlight=False, width=_PIPED_WIDTH)


def progress_bar() -> Progress:
    """A bar on standard error; nothing at all where nobody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = remarks()
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Table:
    """A table without markup: what users wrote is shown as they wrote it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
