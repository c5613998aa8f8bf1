"""Classes of tests that every index must pass: inherit one, override how an engine is made, let pytest collect the subclass.

Each test is one edge case, by its name. Many come from the errata of the papers: each mistake in print has a test.
"""

from __future__ import annotations

from nearcast.testing.conformance.insight import InsightCases
from nearcast.testing.conformance.moving import MovingIndexTests
from nearcast.testing.conformance.places import PlaceCases
from nearcast.testing.conformance.ranked import RankedIndexTests
from nearcast.testing.conformance.tables import TableCases
from nearcast.testing.conformance.updates import UpdateCases
from nearcast.testing.conformance.words import WordCases

__all__ = ["BooleanIndexTests", "MovingIndexTests", "RankedIndexTests"]


class BooleanIndexTests(WordCases, PlaceCases, UpdateCases, TableCases, InsightCases):
    """Every case of a boolean index. Override `make_matcher`."""
