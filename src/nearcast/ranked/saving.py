"""A ranked engine as arrays and facts, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from nearcast.model.window import CountWindow, TimeWindow
from nearcast.ranked.subscriptions import RankedSubscriptions
from nearcast.ranked.tick_engine import Ranking
from nearcast.ranked.window import MessageWindow

_PARTS = ("subscribers", "window", "buffers", "calendar", "state", "index", "keywords", "ids")


def ranking_arrays(ranking: Ranking) -> dict[str, dict[str, NDArray[Any]]]:
    """Everything a ranking holds, by part."""
    return {
        "subscribers": ranking.subscribers.arrays(),
        "window": ranking.window.arrays(),
        "buffers": ranking.buffers.arrays(),
        "calendar": ranking.calendar.arrays(),
        "state": ranking.state.arrays(),
        "index": ranking.index.arrays(),
    }


def ranking_facts(ranking: Ranking) -> dict[str, Any]:
    """What it was made of, and what its arrays do not tell."""
    return {
        "max_distance": ranking.ground.max_distance,
        "changes": "net" if ranking.rules.is_net else "tick",
        "message_id_kind": ranking.window.ids.kind,
        "index": ranking.index.facts(),
        "buffer": ranking.buffers.kind.facts(),
        "window_index": ranking.window_index.name,
    }


def by_name(groups: Sequence[Mapping[str, Mapping[str, NDArray[Any]]]]) -> dict[str, NDArray[Any]]:
    """The arrays of several groups of parts under names of one level: "group.part.name"."""
    return {
        f"{group}.{part}.{name}": array
        for group, parts in enumerate(groups)
        for part, given in parts.items()
        for name, array in given.items()
    }


def by_part(arrays: Mapping[str, NDArray[Any]], n_groups: int) -> list[dict[str, dict[str, NDArray[Any]]]]:
    """What `by_name` was given; parts may be empty."""
    groups: list[dict[str, dict[str, NDArray[Any]]]] = [{part: {} for part in _PARTS} for _ in range(n_groups)]
    for key, array in arrays.items():
        group, part, name = key.split(".", 2)
        groups[int(group)][part][name] = array
    return groups


def restore_ranking(
    ranking: Ranking,
    message_id_kind: str | None,
    parts: Mapping[str, Mapping[str, NDArray[Any]]],
    is_same_index: bool,
    is_same_buffer: bool,
) -> None:
    """Take over what `ranking_arrays` gave.

    The window is filed anew, subscriptions if their index is another one, and lists are filled anew if their buffer is.
    """
    ranking.subscribers = RankedSubscriptions(parts["subscribers"])
    ranking.window = MessageWindow.from_arrays(ranking.rules.n_counted, message_id_kind, parts["window"])
    ranking.state.restore(parts["state"])
    ranking.window_index.rebuild(ranking.window)
    if is_same_buffer:
        ranking.take_over(parts["buffers"], parts["calendar"])
    else:
        ranking.fill_anew()
    if is_same_index:
        ranking.index.restore(parts["index"], ranking.ground)
    ranking.index.learn(ranking.subscribers, ranking.window.layout())
    if not is_same_index:
        ranking.index.build(ranking.subscribers, ranking.buffers.threshold, ranking.ground)


def window_facts(window: CountWindow | TimeWindow) -> dict[str, Any]:
    return {"n": window.n} if isinstance(window, CountWindow) else {"seconds": window.seconds}


def window_of(facts: Mapping[str, Any]) -> CountWindow | TimeWindow:
    return CountWindow(facts["n"]) if "n" in facts else TimeWindow(facts["seconds"])
