"""In how many messages each keyword occurs: keywords and counts as flat arrays in a folder, versioned in the store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns.folder import read_folder, write_folder
from nearcast.engine.keyword_kind import KeywordKind
from nearcast.model.analysis import Analysis
from nearcast.pipeline.store import Store, current_version, make_current, next_version, version_name

KEYWORD_FOLDER = "prepared/keywords"
_FOLDER_KIND = "keyword_statistics"


@dataclass(slots=True)
class KeywordStatistics:
    """`frequency[k]` of `n_messages` messages have the keyword with id `k`; the most frequent one has id 0."""

    keywords: KeywordKind
    frequency: NDArray[np.int64]
    n_messages: int

    @classmethod
    def from_counts(
        cls, keywords: pa.Array, frequency: NDArray[np.int64], n_messages: int, analysis: Analysis
    ) -> KeywordStatistics:
        """The statistics of distinct keywords with their counts, most frequent first."""
        kind = KeywordKind(analysis)
        ids = kind.encode(keywords, grow=True).ids
        frequencies = np.zeros(kind.n, np.int64)
        is_usable = ids >= 0
        np.add.at(frequencies, ids[is_usable], frequency[is_usable])
        return cls(kind, frequencies, n_messages)

    def save(self, folder: Path, analysis: Analysis) -> None:
        facts = {"kind": self.keywords.name, "analysis": analysis.to_dict(), "n_messages": self.n_messages}
        write_folder(folder, _FOLDER_KIND, facts, {**self.keywords.space.arrays(), "frequency": self.frequency})

    @classmethod
    def open(cls, folder: Path) -> KeywordStatistics:
        facts, arrays = read_folder(folder, _FOLDER_KIND)
        kind = KeywordKind.from_arrays(facts["kind"], arrays, Analysis.from_dict(facts["analysis"]))
        return cls(kind, arrays["frequency"], facts["n_messages"])


def publish_statistics(store: Store, statistics: KeywordStatistics, analysis: Analysis) -> int:
    """Store the counts as the next version; returns its number."""
    version = next_version(store, [KEYWORD_FOLDER])
    with store.new_folder(f"{KEYWORD_FOLDER}/{version_name(version)}") as folder:
        statistics.save(folder, analysis)
    make_current(store, KEYWORD_FOLDER, version, current_version(store, KEYWORD_FOLDER))
    return version


def current_statistics(store: Store, analysis: Analysis) -> KeywordStatistics:
    """The current counts; if there are none, all keywords are equally rare."""
    version = current_version(store, KEYWORD_FOLDER)
    if version is None:
        return KeywordStatistics(KeywordKind(analysis), np.zeros(0, np.int64), 0)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "keywords"
        store.fetch_folder(f"{KEYWORD_FOLDER}/{version_name(version)}", folder)
        # The arrays are mapped: the folder may be removed once it is open.
        return KeywordStatistics.open(folder)
