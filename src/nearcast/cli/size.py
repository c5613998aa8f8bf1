"""`nearcast size`: how many machines a deployment takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nearcast.sizing.calibration import Calibration
    from nearcast.sizing.model import Demand, Deployment


def size(
    subscriptions: Annotated[int, typer.Option(min=1, help="How many subscriptions.", show_default=False)],
    rate: Annotated[float, typer.Option(min=0, help="Messages per second.", show_default=False)],
    matches: Annotated[float, typer.Option(min=0, help="Subscriptions that one message reaches, on the average.")] = 10.0,
    cores: Annotated[int, typer.Option(min=1, help="Cores of one machine.")] = 8,
    memory_gb: Annotated[float, typer.Option(min=0.1, help="Memory of one machine, GB.")] = 32.0,
    message_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one message on the wire.")] = 300,
    delivery_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one delivery on the wire.")] = 16,
    calibration: Annotated[
        Path | None, typer.Option(help="File of the calibration; default: in the user's cache folder.", show_default=False)
    ] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Measure this machine again (about a minute).")] = False,
    check: Annotated[bool, typer.Option("--check", help="Also measure a load the model has not seen.")] = False,
) -> None:
    """Machines, memory, shards and network for a load, from a model that is calibrated on this machine (a minute, once)."""
    from nearcast.cli.console import results
    from nearcast.errors import NearcastError
    from nearcast.sizing.model import Demand, deployment_for

    known = _calibration(calibration, calibrate)
    demand = Demand(subscriptions, rate, matches, cores, memory_gb * 1e9, message_bytes, delivery_bytes)
    found = deployment_for(demand, known.model)
    if found is None:
        raise NearcastError(
            f"no number of machines with {memory_gb:g} GB holds {subscriptions:,} subscriptions; give more --memory-gb"
        )
    console = results()
    console.print(_answer(demand, found))
    console.print(f"calibrated on: {known.processor}, {known.cores} cores; machines that are faster need fewer", style="dim")
    if check:
        console.print(_check(known))


def _calibration(path: Path | None, is_anew: bool) -> Calibration:
    from nearcast.cli.console import progress_bar
    from nearcast.kernels.compile import cache_folder
    from nearcast.sizing.calibration import CELLS, calibrate, read_calibration, write_calibration

    kept = path or cache_folder().parent / "calibration.json"
    known = None if is_anew else read_calibration(kept)
    if known is not None:
        return known
    with progress_bar() as progress:
        task = progress.add_task("calibrating", total=len(CELLS))

        def on_progress(text: str) -> None:
            progress.update(task, description=f"calibrating: {text}")
            progress.advance(task)

        known = calibrate(on_progress=on_progress)
    write_calibration(kept, known)
    return known


def _answer(demand: Demand, found: Deployment) -> object:
    from nearcast.cli.console import table_of
    from nearcast.sizing.model import BUSY_SHARE, COPIES_DURING_MERGE, MEMORY_SHARE

    share = demand.messages_per_second / found.replicas / found.messages_per_second
    n_deliveries = demand.messages_per_second * demand.matches
    taken = f"of {demand.cores} cores, up to {BUSY_SHARE:.0%}; a message takes {found.us_per_message:.2f} µs of one"
    memory = COPIES_DURING_MERGE * found.bytes_per_shard / 1e9
    rows = [
        ("machines", f"{found.machines:,}", f"{found.shards} shards x {found.replicas} replicas"),
        ("memory of one", f"{memory:.2f} GB", f"the index twice, while it merges; up to {MEMORY_SHARE:.0%} is used"),
        ("busy", f"{share:.0%}", taken),
        ("network in, one", f"{found.bytes_in_per_second / 1e6:.2f} MB/s", "every shard hears every message"),
        ("network out, all", f"{found.bytes_out_per_second / 1e6:.2f} MB/s", f"{n_deliveries:,.0f} deliveries/s"),
    ]
    return table_of(("", "", ""), rows)


def _check(known: Calibration) -> str:
    from nearcast.sizing.calibration import HELD_OUT, measure

    cell, _ = measure(HELD_OUT)
    us, n_bytes = known.model.us_per_message(cell.n_subscriptions, cell.matches), known.model.n_bytes(cell.n_subscriptions)
    return (
        f"held out: {cell.n_subscriptions:,} subscriptions, {cell.matches:.1f} matches: "
        f"{cell.us_per_message:.2f} µs measured, {us:.2f} foretold ({us / cell.us_per_message - 1:+.0%}); "
        f"{cell.n_bytes / 1e6:,.0f} MB measured, {n_bytes / 1e6:,.0f} foretold ({n_bytes / cell.n_bytes - 1:+.0%})"
    )
