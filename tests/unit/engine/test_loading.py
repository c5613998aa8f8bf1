"""What the first message of a process waits for."""

from __future__ import annotations

import subprocess
import sys

FIRST_MATCH = """
import sys
import nearcast as nc

matcher = nc.Matcher()
matcher.subscribe([nc.Subscription("a", ["fire"], nc.Box(0, 0, 1, 1))])
assert [d.subscription_id for d in matcher.publish([nc.Message("m", ["fire"], (0.5, 0.5))])] == ["a"]
others = [name for name in sys.modules if name.startswith("nearcast.") and name.count(".") > 2 and name.endswith(".index")]
print(others, "pandas" in sys.modules)
"""


def test_a_first_match_loads_the_index_it_uses_and_neither_the_others_nor_pandas() -> None:
    run = subprocess.run([sys.executable, "-c", FIRST_MATCH], capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.strip() == "['nearcast.boolean.frequency_grid.index'] False"
