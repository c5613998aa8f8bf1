"""The parameters of the adaptive tree."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError
from nearcast.papers.boolean.adaptive_tree.layout import NEVER, ROWS, Options

_CHOICES = {
    "partition": ("heuristic", "optimal"),
    "priority": ("cost", "keyword", "space"),
    "keyword_order": ("rare_first", "frequent_first"),
    "rebuild": ("drift", "never"),
}


@dataclass(frozen=True, slots=True)
class AdaptiveTreeParameters(Parameters):
    """How the tree is divided, and when a part of it is built anew.

    `fanout`: most cuts or cells of a node. `leaf_size`: a leaf with as many clauses is divided if that pays. `partition`: how
    cuts are chosen. `priority`: what decides between keyword and space. `keyword_order`: the order in which the keywords of a
    clause are used. `is_refining`: a cut of several keywords may be divided by the same keyword again. `max_copies`: copies of
    a clause, on average. `rebuild`: whether a node whose clauses have come to lie otherwise than when it was divided
    (`drift_limit`, a divergence) is built anew; `is_noise_corrected`: only beyond what chance alone brings about;
    `least_change`: and not before this share of its clauses is new or gone. Where there is no history: `message_length`:
    keywords of a message; `is_guessing`: messages are expected where the clauses are, rather than by area.
    """

    fanout: int = 200
    leaf_size: int = 40
    partition: str = "heuristic"
    priority: str = "cost"
    keyword_order: str = "rare_first"
    is_refining: bool = True
    max_copies: float = 4.0
    rebuild: str = "drift"
    drift_limit: float = 0.001
    is_noise_corrected: bool = True
    least_change: float = 0.2
    message_length: float = 9.0
    is_guessing: bool = True

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not known; expected {' or '.join(allowed)}")
        if not 4 <= self.fanout < ROWS:
            raise IndexParameterError(f"fanout={self.fanout!r} is not possible; expected 4 to {ROWS - 1}")
        if self.leaf_size < 2:
            raise IndexParameterError(f"leaf_size={self.leaf_size!r} is not possible; expected at least 2")
        if not self.max_copies >= 1:
            raise IndexParameterError(f"max_copies={self.max_copies!r} is not possible; expected at least 1")
        if not self.message_length > 0:
            raise IndexParameterError(f"message_length={self.message_length!r} is not possible; expected more than 0")
        for name in ("drift_limit", "least_change"):
            if not getattr(self, name) >= 0:
                raise IndexParameterError(f"{name}={getattr(self, name)!r} is not possible; expected 0 or more")

    def options(self) -> Options:
        """The same, for kernels."""
        return Options(
            self.fanout,
            self.leaf_size,
            _CHOICES["priority"].index(self.priority),
            int(self.partition == "optimal"),
            int(self.is_refining),
            float(self.max_copies),
            float(self.drift_limit) if self.rebuild == "drift" else NEVER,
            float(self.is_noise_corrected),
            float(self.least_change),
        )
