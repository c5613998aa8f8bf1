"""`nearcast subscribe`: leave a standing interest with a server; list them; take one back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from nearcast.cli.connection import DEFAULT_URL, Key, Url, connect, report_bulk, split_words

if TYPE_CHECKING:
    from nearcast.client import Client
    from nearcast.client.shapes import Area
    from nearcast.wire.api import DeliveryOptions, Kind


def subscribe(
    id: Annotated[str | None, typer.Argument(help="Its id; a known one is replaced. Absent: the server makes one.")] = None,
    keywords: Annotated[str | None, typer.Option(help="All of these words, separated by spaces.")] = None,
    interest: Annotated[str | None, typer.Option(help="An expression instead: (ipad OR iphone) AND NOT broken.")] = None,
    near: Annotated[str | None, typer.Option(metavar="X,Y", help="Around this point (longitude first); with --radius.")] = None,
    radius: Annotated[float, typer.Option(help="Metres around --near.")] = 1000.0,
    box: Annotated[str | None, typer.Option(metavar="X0,Y0,X1,Y1", help="Inside this box.")] = None,
    region: Annotated[str | None, typer.Option(help="Inside this GeoJSON or WKT; @FILE reads it from a file.")] = None,
    kind: Annotated[str, typer.Option(help="boolean, moving or ranked (the best --k around --near).")] = "boolean",
    k: Annotated[int | None, typer.Option(help="How many messages a ranked one keeps.")] = None,
    tags: Annotated[str | None, typer.Option(help="Only messages with all these tags, separated by spaces.")] = None,
    webhook: Annotated[str | None, typer.Option(help="Post its events to this webhook.")] = None,
    rate: Annotated[str | None, typer.Option(metavar="N/SECONDS", help="At most N pushes in so many seconds.")] = None,
    digest: Annotated[float | None, typer.Option(help="Gather pushes for so many seconds.")] = None,
    repeats: Annotated[float | None, typer.Option(help="Do not push the same again for so many seconds.")] = None,
    most: Annotated[int | None, typer.Option(help="Push at most so many in all.")] = None,
    file: Annotated[Path | None, typer.Option(help="Many at once: NDJSON, one subscription per line.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the subscriptions and leave.")] = False,
    delete: Annotated[str | None, typer.Option(help="Take back this one and leave.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Leave a subscription with a server; what it gets is in the inbox, live (nearcast listen) or posted to a webhook."""
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
            made = client.subscribe(
                split_words(keywords),
                _area(near, radius, box, region) if kind != "ranked" else None,
                id=id,
                kind=cast("Kind", kind),
                interest=interest,
                location=location,
                k=k,
                tags=split_words(tags) or (),
                delivery=_delivery(webhook, rate, digest, repeats, most),
            )
            typer.echo(made.id)


def _list(client: Client) -> None:
    from nearcast.cli.console import results, table_of

    rows = [
        (one.id, one.kind, one.interest or " ".join(one.keywords or []), _shown(one.region or one.location), " ".join(one.tags))
        for one in client.subscriptions()
    ]
    results().print(table_of(("id", "kind", "words", "where", "tags"), rows))


def _shown(shape: object) -> str:
    import msgspec

    text = "everywhere" if shape is None else msgspec.json.encode(shape).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _point(given: str | None) -> tuple[float, float] | None:
    from nearcast.cli.options import read_place
    from nearcast.errors import NearcastError

    if given is None:
        return None
    place = read_place(given, "--near")
    if len(place) != 2:
        raise NearcastError(f"--near {given!r} is not a point; expected X,Y (longitude first)")
    return place[0], place[1]


def _area(near: str | None, radius: float, box: str | None, region: str | None) -> Area | None:
    from nearcast.cli.options import read_place
    from nearcast.errors import NearcastError
    from nearcast.model.regions import Box, Circle

    if sum(one is not None for one in (near, box, region)) > 1:
        raise NearcastError("--near, --box and --region were given together; expected one of them")
    point = _point(near)
    if point is not None:
        return Circle(*point, radius)
    if box is not None:
        sides = read_place(box, "--box")
        if len(sides) != 4:
            raise NearcastError(f"--box {box!r} is not a box; expected X0,Y0,X1,Y1")
        return Box(*sides)
    return Path(region[1:]).read_text(encoding="utf-8") if region is not None and region.startswith("@") else region


def _delivery(
    webhook: str | None, rate: str | None, digest: float | None, repeats: float | None, most: int | None
) -> DeliveryOptions:
    from nearcast.errors import NearcastError
    from nearcast.wire.api import DeliveryOptions, RateLimit

    limit = None
    if rate is not None:
        events, _, seconds = rate.partition("/")
        try:
            limit = RateLimit(int(events), float(seconds))
        except ValueError:
            raise NearcastError(f"--rate {rate!r} is not N/SECONDS; expected for example 5/60") from None
    return DeliveryOptions(webhook, limit, digest, repeats, most)
