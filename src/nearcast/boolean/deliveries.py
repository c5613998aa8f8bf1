"""Matches to the table of deliveries: from clauses straight to ids, if no clause needs a check."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import number_buffer, number_column, numbers
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.schemas import delivery_table
from nearcast.engine.groups import Groups
from nearcast.kernels.deliveries import fill_ids, fill_message_ids, fill_subscriptions


def subscriptions_of(groups: Groups, clauses: ClauseStore) -> NDArray[np.int32]:
    """The subscription number of each match."""
    number = np.empty(groups.n_pairs, np.int32)
    fill_subscriptions(groups.member, groups.begin, groups.end, _subscription(clauses), number)
    return number


def deliver_groups(
    groups: Groups, row: NDArray[np.int64], message_ids: pa.Array, clauses: ClauseStore, ids: Identifiers
) -> pa.Table:
    """The deliveries of matches that need no check; message `m` of the groups has the id at `row[m]`."""
    n_pairs, begin, end = groups.n_pairs, groups.begin, groups.end
    if pa.types.is_int64(message_ids.type):
        message_id, messages = number_buffer(n_pairs)
        fill_message_ids(begin, end, row, numbers(message_ids, np.int64), message_id)
    else:
        messages = message_ids.take(number_column(np.repeat(row, end - begin)))
    if ids.kind == "string":
        return delivery_table(messages, ids.take(subscriptions_of(groups, clauses)))
    subscription_id, subscriptions = number_buffer(n_pairs)
    fill_ids(groups.member, begin, end, _subscription(clauses), *ids.numbering(), subscription_id)
    return delivery_table(messages, subscriptions)


def _subscription(clauses: ClauseStore) -> NDArray[np.int32]:
    """The subscription of each clause; empty if every clause has the number of its subscription."""
    subscription = clauses.checks().subscription
    return subscription[:0] if clauses.is_identity else subscription
