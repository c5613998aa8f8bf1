"""What a ranked stream computes: window, distances, weights of words. Fixed when the stream begins, and saved with it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearcast.errors import PipelineError
from nearcast.model.window import CountWindow, TimeWindow
from nearcast.pipeline.prepare.keyword_statistics import KEYWORD_FOLDER as COUNTS
from nearcast.pipeline.prepare.keyword_statistics import KeywordStatistics
from nearcast.pipeline.settings import PipelineSettings
from nearcast.pipeline.store import Store, needed_version, version_name


@dataclass(frozen=True, slots=True)
class RankingRules:
    """Plain data, so that it travels. `max_distance` 0 = the default of the space; `word_counts` 0 = every word weighs 1."""

    window_messages: int
    window_seconds: float
    space: str
    max_distance: float
    word_counts: int
    """The version of the counts of step "prepare" that words are weighed by."""

    @classmethod
    def of(cls, settings: PipelineSettings) -> RankingRules:
        if settings.space == "plane" and settings.max_distance <= 0:
            raise PipelineError("in the plane a ranked stream needs max_distance; give --set max_distance=NUMBER")
        counts = needed_version(settings.store, COUNTS, "prepare") if settings.word_weights == "prepared" else 0
        return cls(settings.window_messages, settings.window_seconds, settings.space, settings.max_distance, counts)

    def engine_settings(self, store: Store) -> dict[str, Any]:
        """What `Ranker` is made with."""
        timed = self.window_seconds > 0
        idf, n_documents = _counts(store, self.word_counts) if self.word_counts else (None, None)
        return {
            "window": TimeWindow(self.window_seconds) if timed else CountWindow(self.window_messages),
            "space": self.space,
            "max_distance": self.max_distance or None,
            "idf": idf,
            "n_documents": n_documents,
        }


def _counts(store: Store, version: int) -> tuple[dict[str, int], int]:
    with tempfile.TemporaryDirectory(prefix="nearcast-") as parent:
        folder = Path(parent) / "keywords"
        store.fetch_folder(f"{COUNTS}/{version_name(version)}", folder)
        counted = KeywordStatistics.open(folder)
        names = [counted.keywords.space.name(word) for word in range(len(counted.frequency))]
        return dict(zip(names, counted.frequency.tolist(), strict=True)), counted.n_messages
