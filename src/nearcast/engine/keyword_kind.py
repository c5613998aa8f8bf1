"""The keywords of an engine: words or numbers. The first ones decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import is_string, number_column, string_column
from nearcast.columns.vocabulary import EncodedKeywords, KeywordNumbers, KeywordSpace, Vocabulary
from nearcast.errors import KeywordError, SchemaError
from nearcast.kernels.word_table import ABSENT
from nearcast.model.analysis import Analysis
from nearcast.model.normalise import Keyword

_DESCRIPTION = {"words": "words (str)", "numbers": "numbers (int32)"}


class KeywordKind:
    """The vocabulary or the number table of one engine."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self.name: str | None = None
        self.space: KeywordSpace = Vocabulary(analysis=analysis)

    @property
    def n(self) -> int:
        return self.space.n

    def checker(self) -> Callable[[Iterable[Keyword]], None]:
        """A check for the rows of a batch: KeywordError for keywords of another kind than the engine's or the first row's."""
        expected = self.name

        def check(keywords: Iterable[Keyword]) -> None:
            nonlocal expected
            for keyword in keywords:
                kind = "numbers" if isinstance(keyword, int) else "words"
                if expected is not None and kind != expected:
                    raise KeywordError(_mixed(kind, expected))
                expected = kind
                return

        return check

    def check_type(self, members: pa.DataType) -> None:
        """Raise SchemaError if a column's keywords are of the other kind."""
        kind = "words" if is_string(members) else "numbers"
        if self.name is not None and kind != self.name:
            raise SchemaError(_mixed(kind, self.name))

    def encode(self, keywords: pa.Array, grow: bool) -> EncodedKeywords:
        """The ids of a column of keywords. The first call with `grow` decides the kind."""
        if self.name is None:
            decides = grow and len(keywords) > 0
            if is_string(keywords.type):
                self.name = "words" if decides else None
            elif decides:
                self.name, self.space = "numbers", KeywordNumbers()
            else:
                return EncodedKeywords(np.full(len(keywords), ABSENT, np.int32))
        return self.space.encode(keywords, grow)

    def find(self, keywords: Sequence[Keyword]) -> NDArray[np.int32]:
        """The ids of validated keywords; negative if unknown."""
        if self.name is None or not keywords:
            return np.full(len(keywords), ABSENT, np.int32)
        return self.encode(_column(keywords), grow=False).ids

    def add(self, keywords: Sequence[Keyword]) -> NDArray[np.int32]:
        """The ids of validated keywords, new ones included."""
        if not keywords:
            return np.empty(0, np.int32)
        return self.encode(_column(keywords), grow=True).ids

    def take_over(self, other: KeywordKind, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Our ids of keywords that have these ids in another engine of the same analysis; new ones are added."""
        if len(ids) == 0:
            return ids
        if self.name is None:
            self.name = other.name
            self.space = KeywordNumbers() if other.name == "numbers" else self.space
        if isinstance(self.space, KeywordNumbers) and isinstance(other.space, KeywordNumbers):
            return self.space.take_over(other.space, ids)
        if isinstance(self.space, Vocabulary) and isinstance(other.space, Vocabulary):
            return self.space.take_over(other.space, ids)
        raise KeywordError(_mixed(str(other.name), str(self.name)))

    @classmethod
    def from_arrays(cls, name: str | None, arrays: Mapping[str, NDArray[Any]], analysis: Analysis) -> KeywordKind:
        kind = cls(analysis)
        kind.name = name
        if name == "numbers":
            kind.space = KeywordNumbers.from_arrays(arrays)
        else:
            kind.space = Vocabulary.from_arrays(arrays, analysis)
        return kind


def _mixed(kind: str, expected: str) -> str:
    return f"keywords were given as {_DESCRIPTION[kind]}; this engine uses {_DESCRIPTION[expected]}: keep to one kind"


def _column(keywords: Sequence[Keyword]) -> pa.Array:
    if isinstance(keywords[0], int):
        return number_column(np.array(keywords, np.int32))
    return string_column(cast("Sequence[str]", keywords))
