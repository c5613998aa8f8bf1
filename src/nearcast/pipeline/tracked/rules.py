"""What a tracked stream computes: how words are compared, how long messages live, how fine time is. Fixed when it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nearcast.model.analysis import Analysis
from nearcast.moving.engine import MovingMatcher
from nearcast.pipeline.settings import PipelineSettings


@dataclass(frozen=True, slots=True)
class TrackingRules:
    """Plain data, so that it travels. `lifetime_seconds` 0 = for ever; `tick_seconds` 0 = as fine as times are."""

    space: str
    stem: str = ""
    stop_words: str = ""
    lifetime_seconds: float = 0.0
    tick_seconds: float = 0.0
    index: str = "auto"
    index_parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: PipelineSettings) -> TrackingRules:
        words = (settings.space, settings.stem, settings.stop_words)
        times = (settings.lifetime_seconds, settings.tick_seconds)
        return cls(*words, *times, settings.index, dict(settings.index_parameters))

    def matcher(self) -> MovingMatcher:
        """An engine without anything."""
        analysis = Analysis(self.stem or None, self.stop_words or None)
        return MovingMatcher(self.index, self.space, analysis, **self.index_parameters)
