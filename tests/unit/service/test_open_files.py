"""A process may have more connections than it starts with."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from nearcast.service.open_files import allow_many_files
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
n = allow_many_files()
print(n > 64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] == n, allow_many_files() == n)
"""


def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"] * 3
