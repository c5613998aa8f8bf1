"""Keywords as int32 ids: words in one normal form, or the caller's own numbers.

`Vocabulary` also counts document frequencies and returns the global orders that indexes are built on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast import settings
from nearcast.columns.arrow import number_column, numbers, string_column, word_column
from nearcast.columns.folder import read_folder, write_folder
from nearcast.columns.id_tables import NumberTable, WordTable
from nearcast.errors import KeywordError, NearcastError
from nearcast.kernels import keyword_sets
from nearcast.kernels.word_table import ABSENT, ABSENT_NOT_ASCII
from nearcast.model.analysis import Analysis

Order = Literal["frequent_first", "rare_first", "alphabetical"]


@dataclass(slots=True)
class EncodedKeywords:
    """The id of each keyword (ABSENT = unknown), and by position the reason why a keyword is unusable."""

    ids: NDArray[np.int32]
    problems: dict[int, str] = field(default_factory=dict)


class KeywordSpace(Protocol):
    """What an engine needs from its keywords, whether they are words or numbers."""

    @property
    def n(self) -> int: ...

    def encode(self, keywords: pa.Array, grow: bool) -> EncodedKeywords: ...

    def name(self, keyword: int) -> str: ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...

    @property
    def n_bytes(self) -> int: ...


class Vocabulary:
    """Words ↔ ids from 0 on; a word keeps its id."""

    def __init__(self, words: Iterable[str] = (), analysis: Analysis | None = None) -> None:
        self._analysis = analysis or Analysis()
        self._table = WordTable(fold=True)
        self._document_frequency: NDArray[np.int64] = np.zeros(0, np.int64)
        listed_words = list(words)
        if listed_words:
            # Only if there are words: the first kernel of a process takes a third of a second to load.
            for position, problem in self.encode(string_column(listed_words), grow=True).problems.items():
                raise KeywordError(f"word {position} of the vocabulary: {problem}")

    @property
    def n(self) -> int:
        return self._table.n

    def __len__(self) -> int:
        return self._table.n

    def __contains__(self, word: str) -> bool:
        return self.id(word) is not None

    def id(self, word: str) -> int | None:
        """The id of one word in any spelling, or None."""
        id = int(self.encode(string_column([word]), grow=False).ids[0])
        return id if id >= 0 else None

    def name(self, keyword: int) -> str:
        """The word with this id."""
        return self._table.value(keyword)

    def take_over(self, other: Vocabulary, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Our ids of words that have these ids in another vocabulary of the same analysis. Nothing is stemmed again."""
        return self._table.add(other._table.values().take(number_column(ids)))

    def words(self) -> pa.Array:
        """Every word in the order of ids."""
        return self._table.values()

    def encode(self, keywords: pa.Array, grow: bool) -> EncodedKeywords:
        """The id of every word of a string column; with `grow`, unknown words get the next ids."""
        if self._analysis.stem is not None:
            return self._encode_distinct(keywords, grow)
        longest = settings.limit("max_keyword_bytes")
        ids, n_unusable = self._table.find_checked(keywords, longest)
        problems = _unusable_words(keywords, longest) if n_unusable else {}
        self._resolve_other_spellings(keywords, ids, problems, grow)
        if grow:
            absent = np.flatnonzero(ids == ABSENT)
            absent = absent[~np.isin(absent, list(problems))] if problems else absent
            if len(absent):
                ids[absent] = self._table.add(keywords.take(number_column(absent)))
        return EncodedKeywords(ids, problems)

    def _resolve_other_spellings(
        self, keywords: pa.Array, ids: NDArray[np.int32], problems: dict[int, str], grow: bool
    ) -> None:
        """Look up the normal form of words outside ASCII that are unknown as written, once per distinct word.

        Known words are normal forms, and a normal form is its own normal form: ids that were found as written are right.
        """
        positions = np.flatnonzero(ids == ABSENT_NOT_ASCII)
        if len(positions) == 0:
            return
        ids[positions] = ABSENT
        spellings = keywords.take(number_column(positions)).dictionary_encode()
        code = np.asarray(spellings.indices)
        encoded = self._encode_normal_forms(spellings.dictionary, grow)
        ids[positions] = encoded.ids[code]
        if encoded.problems:
            for position, spelling in zip(positions.tolist(), code.tolist(), strict=True):
                if spelling in encoded.problems:
                    problems[position] = encoded.problems[spelling]

    def _encode_distinct(self, keywords: pa.Array, grow: bool) -> EncodedKeywords:
        """Encode in Python, once per distinct word: for analyses that do more than normalise."""
        spellings = keywords.fill_null("").dictionary_encode()
        code = np.asarray(spellings.indices)
        encoded = self._encode_normal_forms(spellings.dictionary, grow)
        problems = {int(i): encoded.problems[int(c)] for i, c in enumerate(code) if int(c) in encoded.problems}
        return EncodedKeywords(encoded.ids[code] if len(code) else np.empty(0, np.int32), problems)

    def _encode_normal_forms(self, spellings: pa.Array, grow: bool) -> EncodedKeywords:
        forms: list[str | None] = []
        problems: dict[int, str] = {}
        for position, spelling in enumerate(spellings.to_pylist()):
            try:
                forms.append(self._analysis.keyword(spelling))
            except KeywordError as error:
                problems[position] = str(error)
                forms.append(None)
        usable = np.array([form is not None for form in forms], bool)
        column = string_column([form for form in forms if form is not None])
        ids = np.full(len(forms), ABSENT, np.int32)
        ids[usable] = self._table.add(column) if grow else self._table.find(column)
        ids[ids == ABSENT_NOT_ASCII] = ABSENT
        return EncodedKeywords(ids, problems)

    # --- frequencies and orders ------------------------------------------------------------------------------------

    @property
    def document_frequency(self) -> NDArray[np.int64]:
        """The number of observed keyword sets that contain each word."""
        self._reserve()
        return self._document_frequency

    def observe(self, keywords: NDArray[np.int32]) -> None:
        """Count the keywords of sets (a set has each keyword once)."""
        self._reserve()
        keyword_sets.count_keywords(np.ascontiguousarray(keywords, np.int32), self._document_frequency)

    def ranks(self, order: Order) -> NDArray[np.int32]:
        """The rank of each id in a global order; ids with equal frequencies keep their order."""
        if order == "alphabetical":
            sequence = pc.sort_indices(self.words()).to_numpy(zero_copy_only=False)
        elif order in ("frequent_first", "rare_first"):
            sign = -1 if order == "frequent_first" else 1
            sequence = np.argsort(sign * self.document_frequency, kind="stable")
        else:
            raise NearcastError(f"there is no order {order!r}; give 'frequent_first', 'rare_first' or 'alphabetical'")
        ranks = np.empty(self.n, np.int32)
        ranks[sequence] = np.arange(self.n, dtype=np.int32)
        return ranks

    def _reserve(self) -> None:
        missing = self.n - len(self._document_frequency)
        if missing:
            self._document_frequency = np.concatenate([self._document_frequency, np.zeros(missing, np.int64)])

    # --- on disk ---------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._table.arrays(), "document_frequency": self.document_frequency}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], analysis: Analysis | None = None) -> Vocabulary:
        vocabulary = cls(analysis=analysis)
        vocabulary._table = WordTable.from_arrays(arrays, fold=True)
        vocabulary._document_frequency = arrays["document_frequency"]
        return vocabulary

    def save(self, folder: str | Path) -> None:
        write_folder(folder, "vocabulary", {"analysis": self._analysis.to_dict()}, self.arrays())

    @classmethod
    def open(cls, folder: str | Path) -> Vocabulary:
        facts, arrays = read_folder(folder, "vocabulary")
        return cls.from_arrays(arrays, Analysis.from_dict(facts["analysis"]))

    @property
    def n_bytes(self) -> int:
        return self._table.n_bytes + self._document_frequency.nbytes


class KeywordNumbers:
    """Keywords that are the caller's own int32 numbers."""

    def __init__(self, table: NumberTable | None = None) -> None:
        self._table = table or NumberTable()

    @property
    def n(self) -> int:
        return self._table.n

    def encode(self, keywords: pa.Array, grow: bool) -> EncodedKeywords:
        values = numbers(keywords, np.int64)
        ids = self._table.add(values) if grow else self._table.find(values)
        if keywords.null_count:
            nulls = np.flatnonzero(np.asarray(keywords.is_null()))
            return EncodedKeywords(ids, {int(i): "a keyword is null" for i in nulls})
        return EncodedKeywords(ids)

    def name(self, keyword: int) -> str:
        return str(self._table.value(keyword))

    def take_over(self, other: KeywordNumbers, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Our ids of keywords that have these ids elsewhere."""
        return self._table.add(other._table.values()[ids])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._table.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KeywordNumbers:
        return cls(NumberTable.from_arrays(arrays))

    @property
    def n_bytes(self) -> int:
        return self._table.n_bytes


def _unusable_words(keywords: pa.Array, longest: int) -> dict[int, str]:
    """Positions of words that are null, empty or too long. Words outside ASCII are judged by their normal form later."""
    lengths = np.diff(word_column(keywords).start)
    problems = {}
    # An ASCII word keeps its length in its normal form. Others may get shorter and are checked later.
    for position in np.flatnonzero((lengths == 0) | (lengths > longest)).tolist():
        value = keywords[position].as_py()
        if value is None:
            problems[position] = "a keyword is null"
        elif value == "":
            problems[position] = "the keyword '' is empty"
        elif value.isascii():
            problems[position] = f"the keyword {value[:40] + '...'!r} is longer than {longest} bytes"
    return problems
