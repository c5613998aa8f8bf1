"""`nearcast match`: files of subscriptions and messages in, deliveries out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    import nearcast as nc
    from nearcast.cli.input_files import Batch

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
            help="Parquet, NDJSON or CSV file of messages (id; keywords or text; place), 'sample', or - for NDJSON lines."
        ),
    ],
    out: Annotated[str, typer.Option(help="File of deliveries (.parquet, .ndjson, .csv), or - for NDJSON lines.")] = "-",
    index: Annotated[str, typer.Option(help="Index to use; see nearcast indexes.")] = "auto",
    space: Annotated[str, typer.Option(help="lonlat (degrees) or plane (any numbers).")] = "lonlat",
    batch: Annotated[int, typer.Option(min=1, help="Messages matched at a time; 1 answers each line at once.")] = 10_000,
    rejected: Annotated[
        str | None, typer.Option(help="File for all rows that could not be used, with reasons; rows count from 0.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the index; may be repeated.")
    ] = None,
) -> None:
    """Match messages against subscriptions. Keywords in CSV are separated by spaces; other columns are ignored."""
    import pyarrow as pa

    import nearcast as nc
    from nearcast.cli.console import progress_bar, remarks
    from nearcast.cli.input_files import n_rows, read_all, read_batches
    from nearcast.cli.options import read_settings
    from nearcast.cli.output_files import check_target, table_writer

    for target in (out, rejected):
        if target is not None:
            check_target(target)
    matcher = nc.Matcher(index, space, **read_settings(settings or ()))
    batches = read_batches(messages, "messages", batch)
    filed = read_all(subscriptions, "subscriptions")
    matcher.subscribe_table(filed.table)
    refused = [("subscriptions", *item) for item in filed.in_file(matcher.report.rejected)]
    total = nc.MatchReport()
    no_deliveries = pa.schema({"message_id": pa.int64(), "subscription_id": pa.int64()})
    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("matching", total=n_rows(messages, "messages"))
        found = _deliveries(matcher, batches, total, lambda n: progress.advance(task, n))
        first = next(found, None)
        with table_writer(out, no_deliveries if first is None else first.schema) as write:
            for deliveries in chain(() if first is None else (first,), found):
                write(deliveries)
    seconds = time.perf_counter() - start
    refused += [("messages", *item) for item in total.rejected]
    if rejected is not None:
        _write_rejected(rejected, refused)
    console = remarks()
    console.print(
        f"{total.messages:,} messages, {total.matches:,} deliveries in {seconds:.2f} s "
        f"({matcher.stats()['index']}: {total.candidates:,} candidates verified, {total.nodes_visited:,} nodes visited)"
    )
    for file, row, reason in refused[:_SHOWN_REJECTIONS]:
        console.print(f"rejected: {file} row {row}: {reason}", style="yellow", markup=False, soft_wrap=True)
    if len(refused) > _SHOWN_REJECTIONS:
        where = f"all in {rejected}" if rejected is not None else "--rejected FILE writes all"
        console.print(f"{len(refused):,} rows were rejected ({where})", style="yellow", markup=False)


def _deliveries(
    matcher: nc.Matcher, batches: Iterator[Batch], total: nc.MatchReport, advance: Callable[[int], None]
) -> Iterator[pa.Table]:
    """The deliveries of each batch; `total` adds up the work, with rejected rows as the file counts them."""
    for batch in batches:
        refused = batch.rejected
        if batch.table.num_rows:
            deliveries = matcher.match_table(batch.table)
            report = matcher.report
            refused = batch.in_file(report.rejected)
            total.messages += report.messages
            total.matches += report.matches
            total.candidates += report.candidates
            total.nodes_visited += report.nodes_visited
            yield deliveries
        total.rejected += refused
        advance(len(batch.rows))


def _write_rejected(target: str, refused: list[tuple[str, int, str]]) -> None:
    import pyarrow as pa

    from nearcast.cli.output_files import table_writer

    types = {"file": pa.string(), "row": pa.int64(), "reason": pa.string()}
    columns = zip(*refused, strict=True) if refused else ((), (), ())
    table = pa.table({name: pa.array(column, types[name]) for name, column in zip(types, columns, strict=True)})
    with table_writer(target, table.schema) as write:
        write(table)
