"""The parameters of the adaptive tree that holds messages."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.adaptive_tree.index import AdaptiveTreeParameters

_CHOICES = {"message_lists": ("tree", "keyword_grid", "space_grid"), "costs": ("matching", "moving")}
_MOST_COPIES = 4096


@dataclass(frozen=True, slots=True)
class MovingAdaptiveTreeParameters(AdaptiveTreeParameters):
    """Those of `adaptive_tree`, where the messages are, and what it costs that clauses move.

    `message_lists`: in the "tree" itself, or in a "keyword_grid" or "space_grid" beside it. `max_message_copies`: at how many
    nodes of the tree a message may stand. Fewer copies of clauses than where they stay: each must be moved. And a larger
    `drift_limit`: who travels drifts all the time, and what is built anew hands its messages down again.

    `costs`: nodes are divided as the cost of "matching" says, or that of "moving" too: what updates and reconstructions cost
    while clauses move (`update_weight`, `rebuild_weight`: against a verification; `most_steps`: how far to look ahead). In a
    time step the share `mobility` of the clauses moves; `arrivals`: messages that arrive in it, for each clause (counted as
    soon as there is something to count); `speed`: how far a clause moves that has not moved yet.
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
