"""How much the tests do, how Hypothesis behaves (the same examples on every machine), and a count of what was compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

# Before the packages are imported: assertions of the shipped test classes, and of what tests share, are shown like those of the
# tests themselves.
pytest.register_assert_rewrite("nearcast.testing", "support")

from nearcast.testing.budget import TALLY, Budget, Tally, current_budget  # noqa: E402

settings.register_profile(
    "nearcast",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("nearcast")


@pytest.fixture(scope="session")
def budget() -> Budget:
    """The one place that says how many worlds, histories and subscriptions a test takes."""
    return current_budget()


@pytest.fixture(autouse=True)
def _tally(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """What a test compared with the oracle goes into its report; it comes from another process where tests run in several."""
    TALLY.clear()
    yield
    for kind, counts in TALLY.counts.items():
        names = sorted(TALLY.configurations.get(kind, ()))
        record_property("compared", {"kind": kind, "counts": dict(counts), "configurations": names})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much was compared with the oracles, in all tests that were run."""
    tally = Tally()
    for report in terminalreporter.stats.get("", ()):
        for name, compared in report.user_properties if report.when == "teardown" else ():
            if name == "compared":
                kind = compared["kind"]
                tally.merge(Tally({kind: compared["counts"]}, {kind: set(compared["configurations"])}))
    if tally.counts:
        terminalreporter.section("compared with the oracles")
        for line in tally.lines():
            terminalreporter.line(line)
