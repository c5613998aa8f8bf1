"""What kinds with a prototype share: where it lies, and tables as it takes them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.bench.plan import DATA_FOLDER
from nearcast.bench.record import Record
from nearcast.columns.arrow import list_offsets, numbers
from nearcast.workloads.base import Workload

MOST_SUBSCRIPTION_WORDS, MOST_MESSAGE_WORDS = 5, 20


def prototype_folder(given: str, module: str) -> Path | str:
    """The folder with the module of a prototype, or why there is none."""
    data = os.environ.get(DATA_FOLDER[1:])
    if DATA_FOLDER in given and not data:
        return f"{DATA_FOLDER[1:]} is not set: the prototype lies beside that folder"
    folder = Path(given.replace(DATA_FOLDER, data or ""))
    return folder if (folder / f"{module}.py").is_file() else f"there is no prototype in {given!r}"


def left_out(workload: Workload, n_subscriptions: int, reason: str) -> Record:
    """The record of a series whose prototype is not there: no chunks, and why."""
    facts = {"workload": workload.describe(), "n_subscriptions": n_subscriptions, "left_out": reason}
    return Record(facts, np.empty((0, 0)), np.empty(0, np.int64))


def load(module: str, folders: Sequence[Path]) -> Any:
    """Modules of a prototype import each other by name, so its folders must be on the path meanwhile."""
    added = [str(folder) for folder in folders]
    # Another one may have modules of the same names.
    for name in (file.stem for folder in folders for file in folder.glob("*.py")):
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded is not None and str(Path(loaded).parent) not in added:
            del sys.modules[name]
    sys.path[:0] = added
    try:
        return importlib.import_module(module)
    finally:
        del sys.path[: len(added)]


def rounded(table: pa.Table) -> pa.Table:
    """The same table with coordinates that are float32 numbers."""
    for name in ("x", "y", "x0", "y0", "x1", "y1"):
        if name in table.column_names:
            rounded = numbers(table[name].combine_chunks(), np.float64).astype(np.float32).astype(np.float64)
            table = table.set_column(table.column_names.index(name), name, pa.array(rounded))
    return table


def keyword_matrix(table: pa.Table, width: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Keywords row by row, and how many there are."""
    lists = table["keywords"].combine_chunks()
    start = list_offsets(lists)
    members = numbers(lists.values, np.int32)[start[0] : start[-1]]
    counts = np.diff(start)
    rows = np.repeat(np.arange(len(counts)), counts)
    matrix = np.full((len(counts), width), -1, np.int32)
    matrix[rows, np.arange(len(members)) - np.repeat(start[:-1] - start[0], counts)] = members
    return matrix, counts.astype(np.int32)


def single_columns(table: pa.Table, *names: str) -> NDArray[np.float32]:
    return np.stack([numbers(table[name].combine_chunks(), np.float64).astype(np.float32) for name in names], axis=1)
