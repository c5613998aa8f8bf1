"""Measure the default engine on this machine with a few loads, fit the model, and store it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError
from nearcast.machine import cpu_model, usable_cores
from nearcast.sizing.model import Cell, SizingModel, fit_model
from nearcast.timing import in_chunks, time_passes
from nearcast.workloads import open_workload

FORMAT = 1
_SEED = 5


class CellLoad(NamedTuple):
    """The load of one measurement: `range_high` is the largest range of a subscription, in percent of the side."""

    n_subscriptions: int
    range_high: float
    n_messages: int = 20_000


CELLS = (CellLoad(50_000, 1.0), CellLoad(50_000, 8.0), CellLoad(200_000, 4.0), CellLoad(800_000, 1.0), CellLoad(800_000, 4.0))
HELD_OUT = CellLoad(2_000_000, 2.0)
"""Measured by `nearcast size --check` only: more subscriptions than in any cell that the model was fitted to."""


class Calibration(NamedTuple):
    """A model and the machine it was measured on."""

    model: SizingModel
    cells: list[Cell]
    processor: str
    cores: int


def calibrate(loads: Sequence[CellLoad] = CELLS, on_progress: Callable[[str], None] = lambda text: None) -> Calibration:
    """Measure every load and fit the model; `on_progress` gets a line before each."""
    cells, shares = [], []
    for load in loads:
        on_progress(f"{load.n_subscriptions:,} subscriptions")
        cell, share = measure(load)
        cells.append(cell)
        shares.append(share)
    return Calibration(fit_model(cells, float(np.median(shares))), cells, cpu_model(), usable_cores())


def measure(load: CellLoad) -> tuple[Cell, float]:
    """The measured cell, and the throughput of each further thread as a share of the first one's."""
    workload = open_workload("tweets", range="side", range_high=load.range_high, stop_words="kept", frequencies="curve")
    matcher = Matcher("auto", workload.space, history=workload.history(50_000))
    matcher.subscribe_table(workload.subscriptions(load.n_subscriptions, _SEED))
    messages = workload.messages(load.n_messages, _SEED)
    chunks = in_chunks(messages, 10_000)
    n_matches = sum(matcher.match_table(chunk).num_rows for chunk in chunks)
    single = _best_seconds(matcher, chunks, 1)
    cores = usable_cores()
    share = 1.0 if cores == 1 else (single / _best_seconds(matcher, chunks, cores) - 1) / (cores - 1)
    n_bytes = int(matcher.stats()["bytes"])
    return Cell(load.n_subscriptions, n_matches / messages.num_rows, 1e6 * single / messages.num_rows, n_bytes), max(0.0, share)


def _best_seconds(matcher: Matcher, chunks: list[pa.Table], threads: int) -> float:
    return float(time_passes(chunks, lambda chunk: matcher.match_table(chunk, threads=threads), 3).min(axis=0).sum())


def write_calibration(path: Path, calibration: Calibration) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "format": FORMAT,
        "model": calibration.model._asdict(),
        "cells": [cell._asdict() for cell in calibration.cells],
        "processor": calibration.processor,
        "cores": calibration.cores,
    }
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def read_calibration(path: Path) -> Calibration | None:
    """The stored calibration; None if there is no file."""
    if not path.exists():
        return None
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise KeyError("format")
        model = facts["model"]
        fitted = SizingModel(tuple(model["time"]), tuple(model["space"]), float(model["thread_share"]))
        return Calibration(fitted, [Cell(**cell) for cell in facts["cells"]], str(facts["processor"]), int(facts["cores"]))
    except (KeyError, TypeError, ValueError) as error:
        raise NearcastError(
            f"{str(path)!r} is not a calibration ({error}); delete it, or give --calibrate to make a new one"
        ) from None
