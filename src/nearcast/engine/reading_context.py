"""What every reader at the border of an engine needs to know."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.engine.keyword_kind import KeywordKind
from nearcast.model.analysis import Analysis
from nearcast.model.spaces import Space


class Border(NamedTuple):
    """The space, the keywords and the analysis of one engine."""

    space: Space
    keywords: KeywordKind
    analysis: Analysis
