"""An engine as arrays and facts, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.tick_engine import RankedEngine
from nearcast.ranked.window import MessageWindow

_PARTS = ("subscribers", "window", "buffers", "calendar", "state", "index", "keywords", "ids")


def engine_arrays(engine: RankedEngine) -> dict[str, dict[str, NDArray[Any]]]:
    """Everything an engine holds, by part."""
    return {
        "subscribers": engine.subscriptions.arrays(),
        "window": engine.window.arrays(),
        "buffers": engine.buffers.arrays(),
        "calendar": engine.calendar.arrays(),
        "state": engine.state.arrays(),
        "index": engine.index.arrays(),
    }


def engine_facts(engine: RankedEngine) -> dict[str, Any]:
    """What an engine was made of, as far as its arrays do not say."""
    return {
        "max_distance": engine.distances.max_distance,
        "changes": "net" if engine.rules.is_net else "tick",
        "message_id_kind": engine.window.ids.kind,
        "index": engine.index.facts(),
        "buffer": engine.buffers.kind.facts(),
        "window_index": engine.window_index.name,
    }


def by_name(groups: Sequence[Mapping[str, Mapping[str, NDArray[Any]]]]) -> dict[str, NDArray[Any]]:
    """The arrays of several groups of parts under flat names: "group.part.name"."""
    return {
        f"{group}.{part}.{name}": array
        for group, parts in enumerate(groups)
        for part, part_arrays in parts.items()
        for name, array in part_arrays.items()
    }


def by_part(arrays: Mapping[str, NDArray[Any]], n_groups: int) -> list[dict[str, dict[str, NDArray[Any]]]]:
    """The inverse of `by_name`; parts may be empty."""
    groups: list[dict[str, dict[str, NDArray[Any]]]] = [{part: {} for part in _PARTS} for _ in range(n_groups)]
    for key, array in arrays.items():
        group, part, name = key.split(".", 2)
        groups[int(group)][part][name] = array
    return groups


def restore_engine(
    engine: RankedEngine,
    message_id_kind: str | None,
    parts: Mapping[str, Mapping[str, NDArray[Any]]],
    is_same_index: bool,
    is_same_buffer: bool,
) -> None:
    """Take over what `engine_arrays` returned.

    The window is indexed again, subscriptions too if the index is another one; lists are refilled if the buffer is another one.
    """
    engine.subscriptions = RankedSubscriptions(parts["subscribers"])
    engine.window = MessageWindow.from_arrays(engine.rules.n_counted, message_id_kind, parts["window"])
    engine.state.restore(parts["state"])
    engine.window_index.rebuild(engine.window)
    if is_same_buffer:
        engine.restore_lists(parts["buffers"], parts["calendar"])
    else:
        engine.refill_all()
    if is_same_index:
        engine.index.restore(parts["index"], engine.distances)
    engine.index.learn(engine.subscriptions, engine.window.layout())
    if not is_same_index:
        engine.index.build(engine.subscriptions, engine.buffers.threshold, engine.distances)


def window_facts(window: CountWindow | TimeWindow) -> dict[str, Any]:
    return {"n": window.n} if isinstance(window, CountWindow) else {"seconds": window.seconds}


def window_of(facts: Mapping[str, Any]) -> CountWindow | TimeWindow:
    return CountWindow(facts["n"]) if "n" in facts else TimeWindow(facts["seconds"])
