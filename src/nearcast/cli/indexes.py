"""`nearcast indexes`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer


def indexes(
    kind: Annotated[str | None, typer.Option(help="Only one kind of subscription: boolean, moving or ranked.")] = None,
) -> None:
    """List the indexes with the papers they come from and their parameters."""
    from nearcast.boolean.indexes import BOOLEAN_INDEXES
    from nearcast.cli.console import results, table_of
    from nearcast.engine import registry

    rows = []
    for wanted in (kind,) if kind is not None else registry.KINDS:
        for info in registry.indexes(wanted).values():
            names = info.name + (f" ({', '.join(info.aliases)})" if info.aliases else "")
            parameters = "\n".join(f"{name} = {default!r}" for name, default in info.parameters.items())
            is_auto = wanted == "boolean" and info.name == BOOLEAN_INDEXES.auto
            rows.append((wanted, names + (" = auto" if is_auto else ""), info.summary, parameters or "-", info.paper))
    if rows:
        results().print(table_of(("kind", "name", "what it does", "parameters", "paper"), rows))
    else:
        results().print(f"no {kind} index is registered yet")
