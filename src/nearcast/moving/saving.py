"""A moving matcher as a folder of arrays."""

from __future__ import annotations

import math
from pathlib import Path

from nearcast.columns.folder import joined_parts, read_folder, split_parts, write_folder
from nearcast.engine.registry import create
from nearcast.engine.subscription_store import SubscriptionStore
from nearcast.moving.indexes import MOVING_INDEXES
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.state import MovingState

_KIND = "moving matcher"


def save_state(folder: str | Path, state: MovingState) -> None:
    """Write everything; an existing saved folder is replaced as a whole."""
    store, messages = state.subscriptions, state.messages
    parts = {**store.arrays(), "messages": messages.arrays(), "index": state.index.arrays()}
    facts = {
        **store.facts(),
        "message_id_kind": messages.ids.kind,
        "now": messages.now if math.isfinite(messages.now) else None,
        "index": state.index.facts(),
    }
    write_folder(folder, _KIND, facts, joined_parts(parts))


def open_state(folder: str | Path) -> MovingState:
    """The saved state, memory-mapped except for arrays that change soon."""
    facts, arrays = read_folder(folder, _KIND)
    parts = split_parts(arrays, ("keywords", "ids", "clauses", "shapes", "messages", "index"))
    index = create(MOVING_INDEXES, facts["index"]["name"], facts["index"]["parameters"])
    index.restore(parts["index"])
    now = -math.inf if facts["now"] is None else facts["now"]
    messages = LiveMessages.from_arrays(now, facts["message_id_kind"], parts["messages"])
    return MovingState(SubscriptionStore.from_saved(facts, parts), index, messages)
