"""How much the tests do, and how Hypothesis behaves: the same examples on every machine."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Before anything of them is imported: assertions of the shipped test classes, and of what tests share, are shown like those of
# the tests themselves.
pytest.register_assert_rewrite("nearcast.testing", "support")

from nearcast.testing.budget import Budget, current_budget  # noqa: E402

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
