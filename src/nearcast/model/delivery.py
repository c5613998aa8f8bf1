"""What engines return: deliveries, changes, the report of a call, an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nearcast.model.inputs import Id

_SHOWN_REJECTIONS = 5


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message matches a subscription."""

    subscription_id: Id
    message_id: Id


@dataclass(frozen=True, slots=True)
class Change:
    """A message enters (+1) or leaves (-1) the result of a moving subscription."""

    subscription_id: Id
    message_id: Id
    change: int


@dataclass(slots=True)
class Traffic:
    """How many messages an engine and its subscribers with safe regions exchanged, apart from changes of results.

    `reports`: a subscriber reports its position. `contacts`: the engine asks for it. `safe_regions`: the engine sends the
    region in which the subscriber need not report.
    """

    reports: int = 0
    contacts: int = 0
    safe_regions: int = 0

    @property
    def total(self) -> int:
        return self.reports + self.contacts + self.safe_regions


@dataclass(frozen=True, slots=True)
class RankChange:
    """A message enters (+1) or leaves (-1) the top k of a ranked subscription.

    `tick` is the sequence number of the arrival that caused it, from 0.
    """

    tick: int
    subscription_id: Id
    message_id: Id
    change: int
    score: float


@dataclass(slots=True)
class MatchReport:
    """The work of one call. Mutable: the engine fills it while it processes a batch.

    `rejected` lists (row, reason); all other rows were processed.
    """

    messages: int = 0
    matches: int = 0
    candidates: int = 0
    nodes_visited: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.messages} messages, {self.matches} matches "
            f"({self.candidates} candidates verified, {self.nodes_visited} nodes visited), {len(self.rejected)} rejected"
        ]
        lines += [f"  row {row}: {reason}" for row, reason in self.rejected[:_SHOWN_REJECTIONS]]
        if len(self.rejected) > _SHOWN_REJECTIONS:
            lines.append(f"  ... and {len(self.rejected) - _SHOWN_REJECTIONS} more rejected rows")
        return "\n".join(lines)


def joined_reports(reports: Sequence[MatchReport], first_rows: Sequence[int]) -> MatchReport:
    """One report for a batch that was matched in slices. Slice i begins at row `first_rows[i]`."""
    whole = MatchReport()
    for report, first in zip(reports, first_rows, strict=True):
        whole.messages += report.messages
        whole.matches += report.matches
        whole.candidates += report.candidates
        whole.nodes_visited += report.nodes_visited
        whole.rejected += [(first + row, reason) for row, reason in report.rejected]
    return whole


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message does or does not reach a subscription, and where the index looked (`path`)."""

    matched: bool
    reasons: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = ["delivered" if self.matched else "not delivered"]
        lines += [f"  - {reason}" for reason in self.reasons]
        if self.path:
            lines.append("  path: " + " > ".join(self.path))
        return "\n".join(lines)
