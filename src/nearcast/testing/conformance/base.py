"""What the classes of boolean cases share: an empty matcher with its oracle, and messages on a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nearcast.model.analysis import Analysis
from nearcast.model.message import Message
from nearcast.model.regions import Box
from nearcast.testing.oracles.boolean import Oracle
from nearcast.testing.scenarios.boolean import BooleanComparison

if TYPE_CHECKING:
    from nearcast.boolean.engine import Matcher

Number = TypeVar("Number", int, float)


class Cases:
    """Base of the cases. A subclass says how a matcher is made."""

    n_many = 3000
    """Subscriptions in the cases about large numbers; choose it smaller where kernels are interpreted."""

    def make_matcher(self, space: str = "lonlat", **options: Any) -> Matcher:
        """An empty matcher with the index under test; `options` are those of `Matcher` except the index."""
        raise NotImplementedError

    def compare(self, space: str = "plane", analysis: Analysis | None = None) -> BooleanComparison:
        """An empty matcher and an empty oracle."""
        matcher = self.make_matcher(space) if analysis is None else self.make_matcher(space, analysis=analysis)
        return BooleanComparison(matcher, Oracle(space, analysis))


def messages_at(locations: Iterable[tuple[float, float] | Box]) -> list[Message]:
    """One message per location, numbered from 0, all with the keyword `a`."""
    return [Message(number, ["a"], location) for number, location in enumerate(locations)]


def grid(values: Sequence[Number]) -> list[tuple[Number, Number]]:
    """Every point with both coordinates among `values`, x changing slowest."""
    return [(x, y) for x in values for y in values]
