"""Verbs that use an index: `match` files of subscriptions and messages, `explain` a delivery, list the `indexes`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.console import progress_bar, remarks, results, table_of
from nearcast.cli.options import Key, connect, read_location, read_settings, split_words
from nearcast.errors import NearcastError

if TYPE_CHECKING:
    import pyarrow as pa

    import nearcast as nc
    from nearcast.cli.files import Batch

_SHOWN_REJECTIONS = 5


def match(
    subscriptions: Annotated[
        str,
        typer.Option(
            help="Parquet, NDJSON or CSV file of subscriptions (id; keywords or interest; box or region), or 'sample'."
        ),
    ],
    messages: Annotated[
        str,
        typer.Option(
            help="Parquet, NDJSON or CSV file of messages (id; keywords or text; location), 'sample', or - for NDJSON lines."
        ),
    ],
    out: Annotated[str, typer.Option(help="File of deliveries (.parquet, .ndjson, .csv), or - for NDJSON lines.")] = "-",
    index: Annotated[str, typer.Option(help="Index to use; see nearcast indexes.")] = "auto",
    space: Annotated[str, typer.Option(help="lonlat (degrees) or plane (any numbers).")] = "lonlat",
    batch: Annotated[int, typer.Option(min=1, help="Messages per batch; with 1, each line is answered at once.")] = 10_000,
    rejected: Annotated[str | None, typer.Option(help="File for all rejected rows, with reasons; rows count from 0.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the index; may be repeated.")
    ] = None,
) -> None:
    """Match messages against subscriptions. Keywords in CSV are separated by spaces; other columns are ignored."""
    import pyarrow as pa

    import nearcast as nc
    from nearcast.cli.files import check_target, n_rows, read_all, read_batches, table_writer

    for target in (out, rejected):
        if target is not None:
            check_target(target)
    matcher = nc.Matcher(index, space, **read_settings(settings or ()))
    batches = read_batches(messages, "messages", batch)
    subscription_batch = read_all(subscriptions, "subscriptions")
    matcher.subscribe_table(subscription_batch.table)
    rejections = [("subscriptions", *item) for item in subscription_batch.in_file(matcher.report.rejected)]
    total = nc.MatchReport()
    no_deliveries = pa.schema({"message_id": pa.int64(), "subscription_id": pa.int64()})
    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("matching", total=n_rows(messages, "messages"))
        tables = _deliveries(matcher, batches, total, lambda n: progress.advance(task, n))
        first = next(tables, None)
        with table_writer(out, no_deliveries if first is None else first.schema) as write:
            for deliveries in chain(() if first is None else (first,), tables):
                write(deliveries)
    seconds = time.perf_counter() - start
    rejections += [("messages", *item) for item in total.rejected]
    if rejected is not None:
        _write_rejected(rejected, rejections)
    console = remarks()
    console.print(
        f"{total.messages:,} messages, {total.matches:,} deliveries in {seconds:.2f} s "
        f"({matcher.stats()['index']}: {total.candidates:,} candidates verified, {total.nodes_visited:,} nodes visited)"
    )
    for file, row, reason in rejections[:_SHOWN_REJECTIONS]:
        console.print(f"rejected: {file} row {row}: {reason}", style="yellow", markup=False, soft_wrap=True)
    if len(rejections) > _SHOWN_REJECTIONS:
        hint = f"all in {rejected}" if rejected is not None else "--rejected FILE writes all"
        console.print(f"{len(rejections):,} rows were rejected ({hint})", style="yellow", markup=False)


def _deliveries(
    matcher: nc.Matcher, batches: Iterator[Batch], total: nc.MatchReport, advance: Callable[[int], None]
) -> Iterator[pa.Table]:
    """The deliveries of each batch. Adds the work to `total`, with the row numbers of the file for rejected rows."""
    for batch in batches:
        rejections = batch.rejected
        if batch.table.num_rows:
            deliveries = matcher.match_table(batch.table)
            report = matcher.report
            rejections = batch.in_file(report.rejected)
            total.messages += report.messages
            total.matches += report.matches
            total.candidates += report.candidates
            total.nodes_visited += report.nodes_visited
            yield deliveries
        total.rejected += rejections
        advance(len(batch.rows))


def _write_rejected(target: str, rejections: list[tuple[str, int, str]]) -> None:
    import pyarrow as pa

    from nearcast.cli.files import table_writer

    types = {"file": pa.string(), "row": pa.int64(), "reason": pa.string()}
    columns = zip(*rejections, strict=True) if rejections else ((), (), ())
    table = pa.table({name: pa.array(column, types[name]) for name, column in zip(types, columns, strict=True)})
    with table_writer(target, table.schema) as write:
        write(table)


def explain(
    subscription_id: Annotated[str, typer.Option("--id", help="Id of the subscription to explain.")],
    subscriptions: Annotated[
        str | None, typer.Option(help="Parquet, NDJSON or CSV file, or 'sample'; not with --url.", show_default=False)
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Location of the message: X,Y (longitude first) or X0,Y0,X1,Y1.")
    ] = None,
    keywords: Annotated[str | None, typer.Option(help="Keywords of the message, separated by spaces.")] = None,
    text: Annotated[str | None, typer.Option(help="Text of the message, instead of keywords.")] = None,
    index: Annotated[str, typer.Option(help="Index whose path is shown; see nearcast indexes.")] = "auto",
    space: Annotated[str, typer.Option(help="lonlat (degrees) or plane (any numbers).")] = "lonlat",
    message_id: Annotated[str | None, typer.Option(help="With --url: id of a message on the server, instead of --at.")] = None,
    url: Annotated[str | None, typer.Option(help="Explain a subscription of this server.")] = None,
    key: Key = None,
) -> None:
    """Explain why a message reaches a subscription or not, with the path through the index; from a file or a server (--url)."""
    import nearcast as nc
    from nearcast.cli.files import read_all

    if url is not None:
        _explain_on_server(url, key, subscription_id, message_id, at, keywords, text)
        return
    if (keywords is None) == (text is None):
        raise NearcastError("give either --keywords or --text")
    if subscriptions is None or at is None:
        raise NearcastError("give --subscriptions and --at, or --url to ask a server")
    table = read_all(subscriptions, "subscriptions").table
    id = _find_id(table, subscription_id, subscriptions)
    matcher = nc.Matcher(index, space)
    matcher.subscribe_table(table)
    for row, reason in matcher.report.rejected:
        if table["id"][row].as_py() == id:
            raise NearcastError(f"subscription {subscription_id!r} was rejected: {reason}")
    location = read_location(at)
    message = nc.Message(
        "explained",
        keywords=None if keywords is None else _as_column_type(table, keywords.split()),
        text=text,
        location=nc.Box(*location) if len(location) == 4 else (location[0], location[1]),
    )
    typer.echo(str(matcher.explain(message, id)))


def _explain_on_server(
    url: str, key: str | None, id: str, message_id: str | None, at: str | None, keywords: str | None, text: str | None
) -> None:
    if (message_id is None) == (at is None):
        raise NearcastError("give either --message-id, or --at with --keywords or --text")
    with connect(url, key) as client:
        from nearcast.client.shapes import place_shape
        from nearcast.model.delivery import Explanation
        from nearcast.wire.api import MessageIn

        draft = None
        if at is not None:
            draft = MessageIn(place_shape(read_location(at)), keywords=split_words(keywords), text=text)
        answer = client.explain(id, draft, message_id)
    typer.echo(str(Explanation(answer.matched, tuple(answer.reasons), tuple(answer.path))))


def _find_id(table: Any, text: str, source: str) -> Any:
    """An id in the type that the file has; NearcastError if no subscription has it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table["id"]
    id: Any = text
    if pa.types.is_integer(column.type):
        id = int(text) if text.lstrip("+-").isdigit() else None
    if id is None or pc.index(column, pa.scalar(id, column.type)).as_py() < 0:
        shown = ", ".join(str(value) for value in column.slice(0, 5).to_pylist())
        raise NearcastError(f"there is no subscription {text!r} in {source}; its ids begin with {shown}")
    return id


def _as_column_type(table: Any, words: list[str]) -> list[Any]:
    """Keywords as numbers if those of the subscriptions are numbers."""
    import pyarrow as pa

    if "keywords" not in table.column_names or not pa.types.is_integer(table["keywords"].type.value_type):
        return list(words)
    try:
        return [int(word) for word in words]
    except ValueError:
        raise NearcastError(
            f"--keywords {' '.join(words)!r}: these subscriptions have numbers as keywords; give numbers"
        ) from None


def indexes(
    kind: Annotated[str | None, typer.Option(help="Only one kind of subscription: boolean, moving or ranked.")] = None,
) -> None:
    """List the indexes with their papers and parameters."""
    from nearcast.boolean.indexes import BOOLEAN_INDEXES
    from nearcast.engine import registry

    rows = []
    for listed_kind in (kind,) if kind is not None else registry.KINDS:
        for info in registry.indexes(listed_kind).values():
            names = info.name + (f" ({', '.join(info.aliases)})" if info.aliases else "")
            parameters = "\n".join(f"{name} = {default!r}" for name, default in info.parameters.items())
            is_auto = listed_kind == "boolean" and info.name == BOOLEAN_INDEXES.auto
            rows.append((listed_kind, names + (" = auto" if is_auto else ""), info.summary, parameters or "-", info.paper))
    if rows:
        results().print(table_of(("kind", "name", "what it does", "parameters", "paper"), rows))
    else:
        results().print(f"no {kind} index is registered yet")
