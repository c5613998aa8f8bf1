"""Verbs of a client of the server: `publish`, `subscribe`, `move`, `listen`, `top`."""

from __future__ import annotations

import sys
import time
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from nearcast.cli.console import progress_bar, remarks, results, table_of
from nearcast.cli.options import DEFAULT_URL, Key, Url, connect, read_location, split_words
from nearcast.errors import NearcastError

if TYPE_CHECKING:
    from rich.table import Table

    from nearcast.client import Client
    from nearcast.client.shapes import Area
    from nearcast.wire.api import BulkResult, DeliveryOptions, Event, Kind, TopList

_LINES_AT_A_TIME = 5000


def publish(
    at: Annotated[str | None, typer.Option(metavar="X,Y", help="Its location: X,Y (longitude first) or X0,Y0,X1,Y1.")] = None,
    text: Annotated[str | None, typer.Option(help="Its text, which is split into words.")] = None,
    keywords: Annotated[str | None, typer.Option(help="Its keywords, separated by spaces.")] = None,
    id: Annotated[str | None, typer.Option(help="Its id; the same id again is reported as a repeat and not delivered.")] = None,
    tags: Annotated[str | None, typer.Option(help="Its tags, separated by spaces.")] = None,
    lifetime: Annotated[float | None, typer.Option(help="Its lifetime in seconds, for moving subscriptions.")] = None,
    file: Annotated[
        str | None, typer.Option(help="Many at once: NDJSON, one message per line; - reads standard input.")
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Publish a message, or many from a file. They are on the server's disk when this returns."""
    if (at is None) == (file is None):
        raise NearcastError("give either --at with --text or --keywords, or --file")
    with connect(url, key) as client:
        if at is not None:
            receipt = client.publish(
                read_location(at), split_words(keywords), text, id=id, tags=split_words(tags) or (), lifetime=lifetime
            )
            typer.echo(f"{receipt.id} at cursor {receipt.cursor}" + (" (a repeat)" if receipt.is_repeat else ""))
            return
        assert file is not None
        if file == "-":
            _publish_lines(url, key, sys.stdin.buffer)
        else:
            with open(file, "rb") as lines:
                _publish_lines(url, key, lines)


def _publish_lines(url: str, key: str | None, lines: IO[bytes]) -> None:
    """Send the lines in chunks; each is acknowledged before the next is sent."""
    from nearcast.wire.api import BulkResult

    total = BulkResult(0, 0, "0", [])
    n_before = 0
    with connect(url, key) as client, progress_bar() as progress:
        task = progress.add_task("publishing", total=None)
        while chunk := list(islice(lines, _LINES_AT_A_TIME)):
            result = client.publish_many(b"".join(chunk))
            for line in result.results:
                line.line += n_before
            total.accepted += result.accepted
            total.rejected += result.rejected
            total.cursor = result.cursor
            total.results += result.results
            n_before += len(chunk)
            progress.update(task, completed=n_before)
    report_bulk(total, "messages")


def subscribe(
    id: Annotated[
        str | None, typer.Argument(help="Its id; an existing one is replaced. Default: the server chooses one.")
    ] = None,
    keywords: Annotated[str | None, typer.Option(help="Words that must all be present, separated by spaces.")] = None,
    interest: Annotated[str | None, typer.Option(help="An expression instead: (ipad OR iphone) AND NOT broken.")] = None,
    near: Annotated[str | None, typer.Option(metavar="X,Y", help="Around this point (longitude first); with --radius.")] = None,
    radius: Annotated[float, typer.Option(help="Metres around --near.")] = 1000.0,
    box: Annotated[str | None, typer.Option(metavar="X0,Y0,X1,Y1", help="Inside this box.")] = None,
    region: Annotated[str | None, typer.Option(help="Inside this GeoJSON or WKT; @FILE reads it from a file.")] = None,
    kind: Annotated[str, typer.Option(help="boolean, moving or ranked (the best --k around --near).")] = "boolean",
    k: Annotated[int | None, typer.Option(help="How many messages a ranked one keeps.")] = None,
    tags: Annotated[str | None, typer.Option(help="Only messages with all these tags, separated by spaces.")] = None,
    webhook: Annotated[str | None, typer.Option(help="Post its events to this webhook.")] = None,
    rate: Annotated[str | None, typer.Option(metavar="N/SECONDS", help="At most N pushes in SECONDS.")] = None,
    digest: Annotated[float | None, typer.Option(help="Seconds for which pushes are collected into one.")] = None,
    repeats: Annotated[float | None, typer.Option(help="Seconds for which the same event is not pushed again.")] = None,
    most: Annotated[int | None, typer.Option(help="Push at most this number of events in all.")] = None,
    file: Annotated[Path | None, typer.Option(help="Many at once: NDJSON, one subscription per line.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the subscriptions and exit.")] = False,
    delete: Annotated[str | None, typer.Option(help="Delete this subscription and exit.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Make a subscription on a server. Its events are in the inbox, live (nearcast listen) or posted to a webhook."""
    with connect(url, key) as client:
        if show_list:
            _list(client)
        elif delete is not None:
            client.unsubscribe(delete)
            typer.echo(f"subscription {delete!r} has ended")
        elif file is not None:
            report_bulk(client.subscribe_many(file.read_bytes()), "subscriptions")
        else:
            location = _point(near) if kind == "ranked" else None
            created = client.subscribe(
                split_words(keywords),
                _region(near, radius, box, region) if kind != "ranked" else None,
                id=id,
                kind=cast("Kind", kind),
                interest=interest,
                location=location,
                k=k,
                tags=split_words(tags) or (),
                delivery=_delivery(webhook, rate, digest, repeats, most),
            )
            typer.echo(created.id)


def _list(client: Client) -> None:
    rows = [
        (
            row.id,
            row.kind,
            row.interest or " ".join(row.keywords or []),
            _short_json(row.region or row.location),
            " ".join(row.tags),
        )
        for row in client.subscriptions()
    ]
    results().print(table_of(("id", "kind", "words", "where", "tags"), rows))


def _short_json(shape: object) -> str:
    import msgspec

    text = "everywhere" if shape is None else msgspec.json.encode(shape).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _point(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    point = read_location(text, "--near")
    if len(point) != 2:
        raise NearcastError(f"--near {text!r} is not a point; expected X,Y (longitude first)")
    return point[0], point[1]


def _region(near: str | None, radius: float, box: str | None, region: str | None) -> Area | None:
    from nearcast.model.regions import Box, Circle

    if sum(option is not None for option in (near, box, region)) > 1:
        raise NearcastError("--near, --box and --region were given together; expected one of them")
    point = _point(near)
    if point is not None:
        return Circle(*point, radius)
    if box is not None:
        bounds = read_location(box, "--box")
        if len(bounds) != 4:
            raise NearcastError(f"--box {box!r} is not a box; expected X0,Y0,X1,Y1")
        return Box(*bounds)
    return Path(region[1:]).read_text(encoding="utf-8") if region is not None and region.startswith("@") else region


def _delivery(
    webhook: str | None, rate: str | None, digest: float | None, repeats: float | None, most: int | None
) -> DeliveryOptions:
    from nearcast.wire.api import DeliveryOptions, RateLimit

    limit = None
    if rate is not None:
        events, _, seconds = rate.partition("/")
        try:
            limit = RateLimit(int(events), float(seconds))
        except ValueError:
            raise NearcastError(f"--rate {rate!r} is not N/SECONDS; expected for example 5/60") from None
    return DeliveryOptions(webhook, limit, digest, repeats, most)


def move(
    subscription: Annotated[str | None, typer.Argument(help="Id of a moving subscription.")] = None,
    to: Annotated[str | None, typer.Option(metavar="X,Y", help="Its new centre (longitude first).")] = None,
    accuracy: Annotated[float | None, typer.Option(help="Accuracy of the position in metres.")] = None,
    file: Annotated[Path | None, typer.Option(help="Many at once: NDJSON, one move per line.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Move a subscription. The messages it enters and leaves are in its inbox."""
    with connect(url, key) as client:
        if file is not None:
            report_bulk(client.move_many(file.read_bytes()), "moves")
            return
        if subscription is None or to is None:
            raise NearcastError("give the id of a subscription and --to X,Y, or --file")
        moved = client.move(subscription, read_location(to, "--to"), accuracy_m=accuracy)
        typer.echo(f"{moved.subscription} {moved.status}: {moved.entered} entered, {moved.left} left")


def listen(
    subscriptions: Annotated[str | None, typer.Option(help="Only these, ids separated by commas.")] = None,
    after: Annotated[str | None, typer.Option(help="Start after this cursor; 0: at the beginning, 'ack', or 'now'.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Exit after this number of events.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object (CloudEvents) per line.")] = False,
    acknowledge: Annotated[bool, typer.Option("--ack", help="Acknowledge the events shown, for --after ack.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Show events until interrupted. A lost connection is restored without missing an event."""
    import msgspec

    ids = None if subscriptions is None else [id.strip() for id in subscriptions.split(",")]
    with connect(url, key) as client:
        try:
            for number, event in enumerate(client.listen(after, ids, acknowledges=acknowledge), 1):
                typer.echo(msgspec.json.encode(event).decode() if as_json else one_line(event))
                if number == count:
                    break
        except KeyboardInterrupt:
            raise typer.Exit from None


def top(
    subscription: Annotated[str, typer.Argument(help="Id of a ranked subscription.")],
    watch: Annotated[float | None, typer.Option(help="Refresh it after this number of seconds, until interrupted.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Show the list of a ranked subscription, best first."""
    with connect(url, key) as client:
        console = results()
        if watch is None:
            console.print(_top_table(client.top(subscription)))
            return
        from rich.live import Live

        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(_top_table(client.top(subscription)), refresh=True)
                time.sleep(watch)


def _top_table(top_list: TopList) -> Table:
    rows = [
        (str(entry.rank), f"{entry.score:.4f}", entry.message.id, entry.message.text or " ".join(entry.message.keywords))
        for entry in top_list.entries
    ]
    return table_of(("rank", "score", "message", "words"), rows, f"top of {top_list.subscription}")


def report_bulk(result: BulkResult, what: str) -> None:
    """Print the numbers of accepted and rejected lines and the first errors. Exit code 1 if any line was rejected."""
    typer.echo(f"{result.accepted:,} {what} accepted, {result.rejected:,} rejected; cursor {result.cursor}")
    bad = [line for line in result.results if line.error is not None]
    for line in bad[:10]:
        remarks().print(f"line {line.line}: {line.error.message if line.error else ''}", style="red", markup=False)
    if result.rejected:
        raise typer.Exit(1)


def one_line(event: Event) -> str:
    """An event as one readable line."""
    from nearcast.wire.api import PointShape

    kind = event.type.removeprefix("io.nearcast.")
    data, parts = event.data, [f"{event.time:%H:%M:%S}", f"{kind:<8}", event.subject]
    message = data.message
    if message is not None:
        location = message.location.coordinates if isinstance(message.location, PointShape) else message.location.bbox
        parts += [message.id, ",".join(f"{number:g}" for number in location), message.text or " ".join(message.keywords)]
    if data.distance is not None:
        parts.append(f"{data.distance:,.0f} m")
    if data.score is not None:
        parts.append(f"score {data.score:.3f}" + (f" rank {data.rank}" if data.rank is not None else ""))
    if data.reason is not None:
        parts.append(data.reason)
    if event.suppressed:
        parts.append(f"({event.suppressed} suppressed before)")
    return "  ".join(parts)
