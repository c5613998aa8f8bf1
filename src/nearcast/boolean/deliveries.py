"""Matches → the table of deliveries: straight from clauses to ids where nothing is left to check."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import number_column, number_room, numbers
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.schemas import delivery_table
from nearcast.engine.groups import Runs
from nearcast.kernels.deliveries import fill_ids, fill_message_ids, fill_owners


def owners_of_runs(runs: Runs, clauses: ClauseStore) -> NDArray[np.int32]:
    """The subscription number of each match."""
    number = np.empty(_n_pairs(runs), np.int32)
    fill_owners(runs.clause, runs.begin, runs.end, _owner(clauses), number)
    return number


def deliver_runs(runs: Runs, row: NDArray[np.int64], message_ids: pa.Array, clauses: ClauseStore, ids: Identifiers) -> pa.Table:
    """The deliveries of matches that need no check; message m of the runs is `row[m]` of the ids."""
    n_pairs = _n_pairs(runs)
    if pa.types.is_int64(message_ids.type):
        of_message, sent = number_room(n_pairs)
        fill_message_ids(runs.begin, runs.end, row, numbers(message_ids, np.int64), of_message)
    else:
        sent = message_ids.take(number_column(np.repeat(row, runs.end - runs.begin)))
    if ids.kind == "string":
        return delivery_table(sent, ids.take(owners_of_runs(runs, clauses)))
    of_subscription, concerned = number_room(n_pairs)
    fill_ids(runs.clause, runs.begin, runs.end, _owner(clauses), *ids.numbering(), of_subscription)
    return delivery_table(sent, concerned)


def _n_pairs(runs: Runs) -> int:
    return int((runs.end - runs.begin).sum())


def _owner(clauses: ClauseStore) -> NDArray[np.int32]:
    owner = clauses.checks().owner
    return owner[:0] if clauses.is_own_number else owner
