"""An engine's keywords: words or numbers, decided by the first that come, then kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.arrow import is_string
from nearcast.columns.vocabulary import EncodedKeywords, KeywordNumbers, KeywordSpace, Vocabulary
from nearcast.errors import KeywordError, SchemaError
from nearcast.kernels.word_table import ABSENT
from nearcast.model.analysis import Analysis
from nearcast.model.normalise import Keyword

_SHOWN = {"words": "words (str)", "numbers": "numbers (int32)"}


class KeywordKind:
    """Wraps the vocabulary or the number table of one engine."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self.name: str | None = None
        self.space: KeywordSpace = Vocabulary(analysis=analysis)

    @property
    def n(self) -> int:
        return self.space.n

    def column(self, keywords: Sequence[Keyword]) -> pa.Array:
        """Keywords of one kind as a column."""
        is_number = bool(keywords) and isinstance(keywords[0], int)
        return pa.array(keywords, pa.int32() if is_number else pa.string())

    def check_words(self, keywords: Sequence[Keyword]) -> None:
        """Raise KeywordError if the keywords are of the other kind."""
        if keywords:
            self._check("numbers" if isinstance(keywords[0], int) else "words", KeywordError)

    def check_type(self, members: pa.DataType) -> None:
        """Raise SchemaError if a column's keywords are of the other kind."""
        self._check("words" if is_string(members) else "numbers", SchemaError)

    def _check(self, given: str, error: type[KeywordError] | type[SchemaError]) -> None:
        if self.name is not None and given != self.name:
            raise error(f"keywords were given as {_SHOWN[given]}; this engine uses {_SHOWN[self.name]}: keep to one kind")

    def encode(self, keywords: pa.Array, grow: bool) -> EncodedKeywords:
        """Ids of a column of keywords; the first keywords that `grow` decide the kind."""
        if self.name is None:
            decides = grow and len(keywords) > 0
            if is_string(keywords.type):
                self.name = "words" if decides else None
            elif decides:
                self.name, self.space = "numbers", KeywordNumbers()
            else:
                return EncodedKeywords(np.full(len(keywords), ABSENT, np.int32))
        return self.space.encode(keywords, grow)

    def find(self, keywords: pa.Array) -> NDArray[np.int32]:
        """Ids of keywords that were validated before; negative where unknown."""
        return self.encode(keywords, grow=False).ids

    def add(self, keywords: pa.Array) -> NDArray[np.int32]:
        """Ids of keywords that were validated before, new ones included."""
        return self.encode(keywords, grow=True).ids

    @classmethod
    def from_arrays(cls, name: str | None, arrays: Mapping[str, NDArray[Any]], analysis: Analysis) -> KeywordKind:
        kind = cls(analysis)
        kind.name = name
        if name == "numbers":
            kind.space = KeywordNumbers.from_arrays(arrays)
        else:
            kind.space = Vocabulary.from_arrays(arrays, analysis)
        return kind
