"""`make check`: lint, types, import contracts, and the tests of the files that were changed, within a minute.

Changed is what differs from the branch point with `main`, committed or not. Kernels run interpreted, so nothing is compiled;
`make test` runs everything, compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
STEPS = {
    "style": [BIN / "ruff", "check", "."],
    "format": [BIN / "ruff", "format", "--check", "."],
    "imports": [BIN / "lint-imports"],
    "types": [BIN / "mypy"],
}
# What a change of these says about tests is not in their path.
TESTS_OF = {"docs": ["tests/test_docs.py"], "Makefile": ["tests/test_docs.py"], "README.md": ["tests/test_docs.py"]}
# Tests that start Spark, servers or browsers take longer than a minute.
SLOW = ("tests/pipeline", "tests/service", "tests/console", "tests/conformance")


def changed_files() -> list[str]:
    """Paths that differ from the branch point with `main`, and new files."""

    def git(*arguments: str) -> list[str]:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    base = git("merge-base", "HEAD", "main")[0]
    return sorted({*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")})


def tests_of(path: str) -> list[str]:
    """The tests of a file: its own if it is a test, else the module or the nearest folder below tests/unit named as it is."""
    parts = Path(path).parts
    for beginning, tests in TESTS_OF.items():
        if parts[0] == beginning:
            return tests
    if parts[0] == "tests":
        return [path] if parts[-1].startswith("test_") and not path.startswith(SLOW) else []
    if parts[:2] != ("src", "nearcast") or not path.endswith(".py"):
        return []
    inside = Path(*parts[2:])
    folder = ROOT / "tests" / "unit" / inside.parent
    module = folder / f"test_{inside.stem}.py"
    if module.exists():
        return [str(module.relative_to(ROOT))]
    while not folder.is_dir():
        folder = folder.parent
    return [str(folder.relative_to(ROOT))] if folder != ROOT / "tests" / "unit" else []


def run(name: str, command: list[Path | str], **environment: str) -> bool:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    is_good = done.returncode in (0, 5)  # 5: pytest found no tests
    sys.stdout.write(f"{name:8} {'ok' if is_good else 'FAILED'}  {time.perf_counter() - started:.1f} s\n")
    if not is_good:
        sys.stdout.write(done.stdout[-8000:] + done.stderr[-2000:])
    sys.stdout.flush()
    return is_good


def main() -> int:
    # Every step runs, also after one that failed.
    is_good = not [name for name, command in STEPS.items() if not run(name, [*command])]
    tests = sorted({test for path in changed_files() for test in tests_of(path) if (ROOT / test).exists()})
    if tests:
        sys.stdout.write(f"tests of what changed: {' '.join(tests)}\n")
        command: list[Path | str] = [BIN / "python", "-m", "pytest", "-q", "-x", "-n", "auto", "--dist", "loadgroup", *tests]
        is_good = run("tests", command, NUMBA_DISABLE_JIT="1") and is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
