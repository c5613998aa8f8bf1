"""Every case a boolean index must pass, as one class of tests to inherit."""

from __future__ import annotations

from nearcast.testing.conformance.cases.insight import InsightCases
from nearcast.testing.conformance.cases.places import PlaceCases
from nearcast.testing.conformance.cases.tables import TableCases
from nearcast.testing.conformance.cases.updates import UpdateCases
from nearcast.testing.conformance.cases.words import WordCases


class BooleanIndexTests(WordCases, PlaceCases, UpdateCases, TableCases, InsightCases):
    """Inherit, override `make_matcher`, and let pytest collect the subclass."""
