"""Pieces of a Markdown page: tables and numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def written(value: float) -> str:
    """A number with three significant digits, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plain(text: str) -> str:
    """Text that means itself: what Markdown or HTML would read as markup is written so that it is shown."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "\\`*_[]|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def table(header: Sequence[str], rows: Iterable[Sequence[str]], n_left: int | None = None) -> str:
    """A table; the first `n_left` columns are text (all if not given), the others numbers."""
    left = len(header) if n_left is None else n_left
    rule = [":--" if place < left else "--:" for place in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)) + "\n"
