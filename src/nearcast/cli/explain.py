"""`nearcast explain`: why a message reaches a subscription, or why not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nearcast.cli.connection import Key, connect, split_words


def explain(
    subscription_id: Annotated[str, typer.Option("--id", help="Id of the subscription to explain.")],
    subscriptions: Annotated[
        str | None, typer.Option(help="Parquet, NDJSON or CSV file, or 'sample'; not with --url.", show_default=False)
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Where the message is: X,Y (longitude first) or X0,Y0,X1,Y1.")
    ] = None,
    keywords: Annotated[str | None, typer.Option(help="Keywords of the message, separated by spaces.")] = None,
    text: Annotated[str | None, typer.Option(help="Text of the message, instead of keywords.")] = None,
    index: Annotated[str, typer.Option(help="Index to walk through; see nearcast indexes.")] = "auto",
    space: Annotated[str, typer.Option(help="lonlat (degrees) or plane (any numbers).")] = "lonlat",
    message_id: Annotated[str | None, typer.Option(help="With --url: a message the server keeps, instead of a draft.")] = None,
    url: Annotated[str | None, typer.Option(help="Ask this server about one of its subscriptions.")] = None,
    key: Key = None,
) -> None:
    """Explain whether a message reaches a subscription, and the way through the index; of a file, or of a server (--url)."""
    import nearcast as nc
    from nearcast.cli.input_files import read_all
    from nearcast.cli.options import read_place
    from nearcast.errors import NearcastError

    if url is not None:
        _explain_there(url, key, subscription_id, message_id, at, keywords, text)
        return
    if (keywords is None) == (text is None):
        raise NearcastError("give either --keywords or --text")
    if subscriptions is None or at is None:
        raise NearcastError("give --subscriptions and --at, or --url to ask a server")
    filed = read_all(subscriptions, "subscriptions")
    wanted = _known_id(filed.table, subscription_id, subscriptions)
    matcher = nc.Matcher(index, space)
    matcher.subscribe_table(filed.table)
    for row, reason in matcher.report.rejected:
        if filed.table["id"][row].as_py() == wanted:
            raise NearcastError(f"subscription {subscription_id!r} was rejected: {reason}")
    place = read_place(at)
    message = nc.Message(
        "explained",
        keywords=None if keywords is None else _as_filed(filed.table, keywords.split()),
        text=text,
        location=nc.Box(*place) if len(place) == 4 else (place[0], place[1]),
    )
    typer.echo(str(matcher.explain(message, wanted)))


def _explain_there(
    url: str, key: str | None, id: str, message_id: str | None, at: str | None, keywords: str | None, text: str | None
) -> None:
    from nearcast.cli.options import read_place
    from nearcast.errors import NearcastError

    if (message_id is None) == (at is None):
        raise NearcastError("give either --message-id, or --at with --keywords or --text")
    with connect(url, key) as client:
        from nearcast.client.shapes import place_shape
        from nearcast.model.delivery import Explanation
        from nearcast.wire.api import MessageIn

        draft = None
        if at is not None:
            draft = MessageIn(place_shape(read_place(at)), keywords=split_words(keywords), text=text)
        told = client.explain(id, draft, message_id)
    typer.echo(str(Explanation(told.matched, tuple(told.reasons), tuple(told.path))))


def _known_id(table: Any, given: str, source: str) -> Any:
    """The id in the type of the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from nearcast.errors import NearcastError

    column = table["id"]
    wanted: Any = given
    if pa.types.is_integer(column.type):
        wanted = int(given) if given.lstrip("+-").isdigit() else None
    if wanted is None or pc.index(column, pa.scalar(wanted, column.type)).as_py() < 0:
        shown = ", ".join(str(value) for value in column.slice(0, 5).to_pylist())
        raise NearcastError(f"there is no subscription {given!r} in {source}; its ids begin with {shown}")
    return wanted


def _as_filed(table: Any, words: list[str]) -> list[Any]:
    """Keywords as numbers where the subscriptions have numbers."""
    import pyarrow as pa

    from nearcast.errors import NearcastError

    if "keywords" not in table.column_names or not pa.types.is_integer(table["keywords"].type.value_type):
        return list(words)
    try:
        return [int(word) for word in words]
    except ValueError:
        raise NearcastError(
            f"--keywords {' '.join(words)!r}: these subscriptions have numbers as keywords; give numbers"
        ) from None
