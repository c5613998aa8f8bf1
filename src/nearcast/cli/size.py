"""`nearcast size`: how many machines a deployment needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.console import progress_bar, results, table_of
from nearcast.errors import NearcastError

if TYPE_CHECKING:
    from nearcast.sizing.calibration import Calibration
    from nearcast.sizing.model import Demand, Deployment


def size(
    subscriptions: Annotated[int, typer.Option(min=1, help="Number of subscriptions.", show_default=False)],
    rate: Annotated[float, typer.Option(min=0, help="Messages per second.", show_default=False)],
    matches: Annotated[float, typer.Option(min=0, help="Subscriptions that one message reaches, on average.")] = 10.0,
    cores: Annotated[int, typer.Option(min=1, help="Cores of one machine.")] = 8,
    memory_gb: Annotated[float, typer.Option(min=0.1, help="Memory of one machine, GB.")] = 32.0,
    message_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one message on the wire.")] = 300,
    delivery_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one delivery on the wire.")] = 16,
    calibration: Annotated[
        Path | None, typer.Option(help="File of the calibration; default: in the user's cache folder.", show_default=False)
    ] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Measure this machine again (about a minute).")] = False,
    check: Annotated[bool, typer.Option("--check", help="Also measure a load that the model was not fitted to.")] = False,
) -> None:
    """Estimate machines, memory, shards and network for a load, with a model calibrated on this machine (a minute, once)."""
    from nearcast.sizing.model import Demand, deployment_for

    calibrated = _calibration(calibration, calibrate)
    demand = Demand(subscriptions, rate, matches, cores, memory_gb * 1e9, message_bytes, delivery_bytes)
    deployment = deployment_for(demand, calibrated.model)
    if deployment is None:
        raise NearcastError(
            f"no number of machines with {memory_gb:g} GB holds {subscriptions:,} subscriptions; give more --memory-gb"
        )
    console = results()
    console.print(_deployment_table(demand, deployment))
    console.print(
        f"calibrated on: {calibrated.processor}, {calibrated.cores} cores; of faster machines fewer are needed", style="dim"
    )
    if check:
        console.print(_check(calibrated))


def _calibration(path: Path | None, must_measure: bool) -> Calibration:
    from nearcast.kernels.compile import cache_folder
    from nearcast.sizing.calibration import CELLS, calibrate, read_calibration, write_calibration

    file = path or cache_folder().parent / "calibration.json"
    stored = None if must_measure else read_calibration(file)
    if stored is not None:
        return stored
    with progress_bar() as progress:
        task = progress.add_task("calibrating", total=len(CELLS))

        def on_progress(text: str) -> None:
            progress.update(task, description=f"calibrating: {text}")
            progress.advance(task)

        measured = calibrate(on_progress=on_progress)
    write_calibration(file, measured)
    return measured


def _deployment_table(demand: Demand, deployment: Deployment) -> object:
    from nearcast.sizing.model import BUSY_SHARE, COPIES_DURING_MERGE, MEMORY_SHARE

    share = demand.messages_per_second / deployment.replicas / deployment.messages_per_second
    n_deliveries = demand.messages_per_second * demand.matches
    busy = f"of {demand.cores} cores, up to {BUSY_SHARE:.0%}; a message takes {deployment.us_per_message:.2f} µs of one"
    memory = COPIES_DURING_MERGE * deployment.bytes_per_shard / 1e9
    rows = [
        ("machines", f"{deployment.machines:,}", f"{deployment.shards} shards x {deployment.replicas} replicas"),
        ("memory of one", f"{memory:.2f} GB", f"the index twice, during a merge; up to {MEMORY_SHARE:.0%} is used"),
        ("busy", f"{share:.0%}", busy),
        ("network in, one", f"{deployment.bytes_in_per_second / 1e6:.2f} MB/s", "every shard gets every message"),
        ("network out, all", f"{deployment.bytes_out_per_second / 1e6:.2f} MB/s", f"{n_deliveries:,.0f} deliveries/s"),
    ]
    return table_of(("", "", ""), rows)


def _check(calibration: Calibration) -> str:
    from nearcast.sizing.calibration import HELD_OUT, measure

    cell, _ = measure(HELD_OUT)
    model = calibration.model
    us, n_bytes = model.us_per_message(cell.n_subscriptions, cell.matches), model.n_bytes(cell.n_subscriptions)
    return (
        f"held out: {cell.n_subscriptions:,} subscriptions, {cell.matches:.1f} matches: "
        f"{cell.us_per_message:.2f} µs measured, {us:.2f} predicted ({us / cell.us_per_message - 1:+.0%}); "
        f"{cell.n_bytes / 1e6:,.0f} MB measured, {n_bytes / 1e6:,.0f} predicted ({n_bytes / cell.n_bytes - 1:+.0%})"
    )
