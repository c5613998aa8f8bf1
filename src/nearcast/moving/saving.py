"""A moving matcher as a folder of arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from nearcast.columns.clauses import ClauseStore
from nearcast.columns.folder import read_folder, write_folder
from nearcast.columns.identifiers import Identifiers
from nearcast.columns.shapes import ShapeStore
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.engine.registry import create
from nearcast.engine.verification import Verifier
from nearcast.model.analysis import Analysis
from nearcast.model.spaces import space_of
from nearcast.moving.indexes import MOVING_INDEXES
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.state import MovingState

_KIND = "moving matcher"


def save_state(folder: str | Path, state: MovingState) -> None:
    """Write everything; an existing saved folder is replaced as a whole."""
    parts = {
        "keywords": state.keywords.space.arrays(),
        "ids": state.ids.arrays(),
        "clauses": state.clauses.arrays(),
        "shapes": state.shapes.arrays(),
        "messages": state.messages.arrays(),
        "index": state.index.arrays(),
    }
    facts = {
        "space": state.space.value,
        "analysis": state.analysis.to_dict(),
        "keyword_kind": state.keywords.name,
        "id_kind": state.ids.kind,
        "message_id_kind": state.messages.ids.kind,
        "now": state.messages.now if math.isfinite(state.messages.now) else None,
        "index": state.index.facts(),
    }
    arrays = {f"{part}.{name}": array for part, given in parts.items() for name, array in given.items()}
    write_folder(folder, _KIND, facts, arrays)


def open_state(folder: str | Path) -> MovingState:
    """What was saved, memory-mapped where it is not changed before long."""
    facts, arrays = read_folder(folder, _KIND)

    def part(name: str) -> dict[str, NDArray[Any]]:
        return {key[len(name) + 1 :]: array for key, array in arrays.items() if key.startswith(f"{name}.")}

    space, analysis = space_of(facts["space"]), Analysis.from_dict(facts["analysis"])
    index = create(MOVING_INDEXES, facts["index"]["name"], facts["index"]["parameters"])
    index.restore(part("index"))
    now = -math.inf if facts["now"] is None else facts["now"]
    return MovingState(
        space,
        analysis,
        index,
        KeywordKind.from_arrays(facts["keyword_kind"], part("keywords"), analysis),
        Verifier(space),
        Identifiers.from_arrays(facts["id_kind"], part("ids")),
        ClauseStore(part("clauses")),
        ShapeStore(part("shapes")),
        LiveMessages.from_arrays(now, facts["message_id_kind"], part("messages")),
    )
