"""Where commands write: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

# The width for pipes and files: wide enough for every table.
_PIPED_WIDTH = 140


def results() -> Console:
    """Standard output."""
    return _console(to_errors=False)


def remarks() -> Console:
    """Standard error."""
    return _console(to_errors=True)


def _console(to_errors: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=to_errors, highlight=False)
    return console if console.is_terminal else Console(stderr=to_errors, highlight=False, width=_PIPED_WIDTH)


def progress_bar() -> Progress:
    """A progress bar on standard error, if that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = remarks()
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Table:
    """A table without markup, so that texts of users appear unchanged."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
