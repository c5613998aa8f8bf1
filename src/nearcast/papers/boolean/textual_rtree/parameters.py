"""The options of the R-trees with keywords."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.engine.registry import Parameters
from nearcast.errors import IndexParameterError

REPRESENTATIVES = ("all", "one", "many")
SELECTIONS = ("random", "df", "idf", "local")
ROOTS = ("wide", "packed")


@dataclass(frozen=True, slots=True)
class TextualRTreeParameters(Parameters):
    """`representatives`: which keywords of a clause the nodes above it know: "all" (R^t), "one" (R^t+), "many" (R^t++: another
    one on each level, and no keywords to verify). `selection`: which one, or which first: "random" (of `seed`), "df" (few
    frequent ones that cover all clauses), "idf" (the rarest), "local" (the rarest in its part of the plane). `node_capacity`:
    entries per node, at least half used after a split (the paper's B = 50, b = 25). `root`, of "many" only: "packed"
    as it comes, perhaps with two entries, or "wide": then it takes the entries of its children.
    """

    representatives: str = "many"
    selection: str = "idf"
    node_capacity: int = 50
    root: str = "wide"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, expected in (
            ("representatives", self.representatives, REPRESENTATIVES),
            ("selection", self.selection, SELECTIONS),
            ("root", self.root, ROOTS),
        ):
            if value not in expected:
                raise IndexParameterError(f"{name}={value!r} is not possible; expected one of {', '.join(expected)}")
        if not 4 <= self.node_capacity <= 1024:
            raise IndexParameterError(f"node_capacity={self.node_capacity!r} is not possible; expected 4 to 1024")
        if self.seed < 0:
            raise IndexParameterError(f"seed={self.seed!r} is not possible; expected 0 or more")
