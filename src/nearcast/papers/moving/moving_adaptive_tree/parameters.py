"""The parameters of the adaptive tree that holds messages."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTreeParameters

_CHOICES = {"message_lists": ("tree", "keyword_grid", "space_grid"), "costs": ("matching", "moving")}
_MOST_COPIES = 4096


@dataclass(frozen=True, slots=True)
class MovingAdaptiveTreeParameters(AdaptiveTreeParameters):
    """The parameters of `adaptive_tree`, where the messages are stored, and the cost of moving clauses.

    `message_lists`: in the "tree" itself, or in a "keyword_grid" or "space_grid" next to it. `max_message_copies`: at how many
    nodes a message may be stored. The defaults allow fewer copies of clauses than `adaptive_tree`, because each copy must be
    moved, and a larger `drift_limit`, because moving clauses drift all the time and a rebuilt node reinserts its messages.

    `costs`: nodes are divided by the cost of "matching", or also by that of "moving": the cost of updates and rebuilds while
    clauses move (`update_weight`, `rebuild_weight`: relative to a verification; `most_steps`: how far to look ahead). In a time
    step the share `mobility` of the clauses moves. `arrivals`: messages that arrive in a time step, for each clause (measured
    as soon as possible). `speed`: the assumed step of a clause that has not moved yet.
    """

    max_copies: float = 1.5
    drift_limit: float = 0.02
    message_lists: str = "tree"
    max_message_copies: int = 32
    costs: str = "matching"
    mobility: float = 0.2
    arrivals: float = 0.1
    speed: float = 0.0
    most_steps: int = 100
    update_weight: float = 1.0
    rebuild_weight: float = 1.0

    def __post_init__(self) -> None:
        AdaptiveTreeParameters.__post_init__(self)
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not known; expected {' or '.join(allowed)}")
        if not 1 <= self.max_message_copies <= _MOST_COPIES:
            given = f"max_message_copies={self.max_message_copies!r}"
            raise IndexParameterError(f"{given} is not possible; expected 1 to {_MOST_COPIES}")
        if not 0.0 < self.mobility <= 1.0:
            raise IndexParameterError(f"mobility={self.mobility!r} is not possible; expected more than 0, at most 1")
        if not (self.arrivals > 0.0 and self.most_steps >= 1):
            given = f"arrivals={self.arrivals!r}, most_steps={self.most_steps!r}"
            raise IndexParameterError(f"{given} is not possible; expected more than 0, at least 1")
        for name in ("speed", "update_weight", "rebuild_weight"):
            if not getattr(self, name) >= 0.0:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not possible; expected 0 or more")
