"""What scores depend on apart from subscriptions and messages: the weights of words, and the largest distance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.growing import GrowingArray
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.errors import NearcastError
from nearcast.model.inputs import finite_number, whole_number
from nearcast.model.normalise import Keyword, read_keywords
from nearcast.model.regions import Box
from nearcast.model.relevance import LONLAT_MAX_DISTANCE_M, idf_weight
from nearcast.model.spaces import Space


class WordWeights:
    """Weights by keyword id.

    Without `frequencies` every word weighs 1, else by its document frequency; the table may be renewed.
    """

    def __init__(self, frequencies: Mapping[Keyword, int] | None = None, n_documents: int | None = None) -> None:
        self.frequencies: dict[Keyword, int] | None = None
        self.n_documents = 0
        if frequencies is not None:
            self.n_documents = _count(n_documents, "n_documents")
            words = read_keywords(frequencies, "the idf table")
            counts = [_count(df, f"the document frequency of {word!r}") for word, df in frequencies.items()]
            self.frequencies = dict(zip(words, counts, strict=True))
            for word, count in self.frequencies.items():
                if count > self.n_documents:
                    raise NearcastError(
                        f"{word!r} is in {count} documents of {self.n_documents}; expected n_documents to be at least that"
                    )
        elif n_documents:
            raise NearcastError(f"n_documents={n_documents!r} was given without idf; give both, or none")
        self._weights = GrowingArray(np.float64)
        # Words of the table without a keyword id so far.
        self._unfound: list[Keyword] = list(self.frequencies or ())

    def of(self, keywords: KeywordKind) -> NDArray[np.float64]:
        """The weight of every keyword known so far."""
        n_known = self._weights.n
        if keywords.n > n_known:
            self._weights.extend(self._unknown(), keywords.n - n_known)
            if self.frequencies and self._unfound:
                ids = keywords.find(self._unfound)
                found_words = [self._unfound[at] for at in np.flatnonzero(ids >= 0).tolist()]
                # There are few distinct counts. The logarithm is that of Python, as in the definition.
                counts = [self.frequencies[word] for word in found_words]
                weight = {count: idf_weight(count, self.n_documents) for count in set(counts)}
                self._weights.used[ids[ids >= 0]] = [weight[count] for count in counts]
                self._unfound = [self._unfound[at] for at in np.flatnonzero(ids < 0).tolist()]
        return self._weights.used

    def _unknown(self) -> float:
        return 1.0 if self.frequencies is None else idf_weight(0, self.n_documents)

    def facts(self) -> dict[str, Any]:
        pairs = None if self.frequencies is None else [list(pair) for pair in self.frequencies.items()]
        return {"frequencies": pairs, "n_documents": self.n_documents}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> WordWeights:
        value = facts["frequencies"]
        return cls() if value is None else cls(dict(value), facts["n_documents"])


def _count(value: object, what: str) -> int:
    count = whole_number(value)
    if count is None or count < 0:
        raise NearcastError(f"{what} was given as {value!r}; expected an int >= 0")
    return count


def max_distance_of(space: Space, bounds: Box | Sequence[float] | None, max_distance: float | None) -> float:
    """The distance at which proximity is 0: as given, or the diagonal of the bounds, or half the Earth's circumference."""
    if max_distance is not None:
        reach = finite_number(max_distance, "max_distance", NearcastError)
    elif bounds is not None:
        box = bounds if isinstance(bounds, Box) else Box(*bounds)
        reach = math.hypot(box.x1 - box.x0, box.y1 - box.y0) if not space.is_lonlat else LONLAT_MAX_DISTANCE_M
    elif space.is_lonlat:
        reach = LONLAT_MAX_DISTANCE_M
    else:
        raise NearcastError("neither bounds nor max_distance was given; in the plane a ranker needs one of them")
    if not 0 < reach < math.inf:
        raise NearcastError(f"max_distance is {reach!r}; expected a finite number > 0; give it, or smaller bounds")
    return float(reach)
