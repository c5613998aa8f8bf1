"""Standing requests: boolean (words and a region) and ranked (words and a location, the best k messages)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearcast.errors import SubscriptionError
from nearcast.model.dnf import Clause
from nearcast.model.inputs import Id, checked_id, finite_number, read_point, whole_number
from nearcast.model.normalise import Keyword, check_count, read_keywords
from nearcast.model.regions import Region, region

if TYPE_CHECKING:
    from nearcast.model.analysis import Analysis
    from nearcast.model.interest import Interest

MAX_K = 10_000


@dataclass(frozen=True, slots=True, init=False)
class Subscription:
    """Asks for every message in a region whose words satisfy the condition.

    Parameters
    ----------
    id
        int64 or non-empty str.
    keywords
        All must be present. Strings (normalised), or int32 ids that the caller assigns. Empty or None: any words.
    region
        A region, or GeoJSON, WKT or a shapely geometry, read as lonlat (for the plane call `region(..., space="plane")`).
        None: everywhere.
    interest
        A boolean expression instead of keywords.
    """

    id: Id
    keywords: tuple[str, ...] | tuple[int, ...]
    region: Region | None
    interest: Interest | None

    def __init__(
        self,
        id: Id,
        keywords: Iterable[Keyword] | None = None,
        region: object = None,
        interest: str | Interest | None = None,
    ) -> None:
        checked = checked_id(id, "subscription", SubscriptionError)
        if keywords is not None and interest is not None:
            raise SubscriptionError(
                f"subscription {checked!r} has keywords={keywords!r} and interest={str(interest)!r}; expected one of them; "
                "put the keywords into the interest"
            )
        object.__setattr__(self, "id", checked)
        object.__setattr__(self, "keywords", _distinct_keywords(() if keywords is None else keywords, checked))
        object.__setattr__(self, "region", _read_region(region))
        object.__setattr__(self, "interest", None if interest is None else _read_interest(interest, checked))

    def clauses(self, analysis: Analysis | None = None) -> tuple[Clause, ...]:
        """The alternatives a message may satisfy; keywords are a single one."""
        if self.interest is not None:
            return self.interest.clauses(analysis)
        return (Clause(_analysed(self.keywords, analysis)),)


@dataclass(frozen=True, slots=True, init=False)
class RankedSubscription:
    """Asks for the k messages of the window that are most relevant to its words and its location.

    Parameters
    ----------
    keywords
        At least one; a message must share at least one.
    location
        (x, y), where the subscriber is.
    k
        How many messages, 1 to 10,000.
    spatial_weight
        Share of proximity in relevance, 0 (text only) to 1 (distance only).
    """

    id: Id
    keywords: tuple[str, ...] | tuple[int, ...]
    location: tuple[float, float]
    k: int
    spatial_weight: float

    def __init__(
        self,
        id: Id,
        keywords: Iterable[Keyword],
        location: tuple[float, float],
        k: int = 20,
        spatial_weight: float = 0.5,
    ) -> None:
        checked = checked_id(id, "ranked subscription", SubscriptionError)
        distinct = _distinct_keywords(keywords, checked)
        if not distinct:
            raise SubscriptionError(f"ranked subscription {checked!r} has no keywords; expected at least one to rank by")
        n_messages = whole_number(k)
        if n_messages is None or not 1 <= n_messages <= MAX_K:
            raise SubscriptionError(f"ranked subscription {checked!r} has k={k!r}; expected an int from 1 to {MAX_K}")
        weight = finite_number(spatial_weight, f"spatial_weight of ranked subscription {checked!r}", SubscriptionError)
        if not 0.0 <= weight <= 1.0:
            raise SubscriptionError(f"ranked subscription {checked!r} has spatial_weight={weight!r}; expected 0 to 1")
        object.__setattr__(self, "id", checked)
        object.__setattr__(self, "keywords", distinct)
        object.__setattr__(self, "location", read_point(location, f"the location of ranked subscription {checked!r}"))
        object.__setattr__(self, "k", n_messages)
        object.__setattr__(self, "spatial_weight", weight)

    def words(self, analysis: Analysis | None = None) -> frozenset[Keyword]:
        """The keywords as they are compared with those of messages."""
        return _analysed(self.keywords, analysis)


def _distinct_keywords(keywords: Iterable[Keyword], label: Id) -> tuple[str, ...] | tuple[int, ...]:
    words = read_keywords(keywords, f"subscription {label!r}")
    check_count(len(set(words)), "max_subscription_keywords", f"subscription {label!r}")
    # `read_keywords` gives words of one kind; the type checker does not follow that through `set`.
    return tuple(sorted(set(words)))  # type: ignore[type-var, return-value]


def _analysed(keywords: Iterable[Keyword], analysis: Analysis | None) -> frozenset[Keyword]:
    if analysis is None or analysis.stem is None:
        return frozenset(keywords)
    return frozenset(analysis.keyword(word) if isinstance(word, str) else word for word in keywords)


def _read_region(geometry: object) -> Region | None:
    return geometry if geometry is None or isinstance(geometry, Region) else region(geometry)


def _read_interest(interest: str | Interest, label: Id) -> Interest:
    # Imported late: keywords alone need neither the parser nor the tokeniser.
    from nearcast.model.interest import Interest, parse_interest

    if not isinstance(interest, (str, Interest)):
        raise SubscriptionError(f"subscription {label!r} has interest={interest!r}; expected a str")
    parsed = interest if isinstance(interest, Interest) else parse_interest(interest)
    # Too many alternatives, or none at all, is an error of the author: raised here, not when the subscription is indexed.
    parsed.clauses()
    return parsed
