"""Numbered versions of one kind of thing in a store, and the pointer to the one in force.

A version is written under its own number first; then `CURRENT` is replaced in one step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nearcast.errors import StoredFormatError
from nearcast.pipeline.store import Store

POINTER = "CURRENT"
_NUMBER = re.compile(r"^\d{6}$")


def version_name(number: int) -> str:
    return f"{number:06d}"


def current_version(store: Store, area: str) -> int | None:
    """The version in force, or None before the first."""
    name = f"{area}/{POINTER}"
    if not store.exists(name):
        return None
    text = store.read_bytes(name).decode().strip()
    if not _NUMBER.match(text):
        raise StoredFormatError(f"{store.address(name)!r} holds {text!r}; expected a number of six digits")
    return int(text)


def needed_version(store: Store, area: str, step: str) -> int:
    """The version in force; StoredFormatError with the step that makes one if there is none."""
    version = current_version(store, area)
    if version is None:
        raise StoredFormatError(f"{store.address(area)!r} has no version yet; run: nearcast pipeline {step}")
    return version


def stored_versions(store: Store, area: str) -> list[int]:
    """Every version there is, whole or not, in order."""
    return [int(name) for name in store.names(area) if _NUMBER.match(name)]


def next_version(store: Store, areas: Iterable[str]) -> int:
    """A number that no version has had, nor the beginning of one."""
    return max((version for area in areas for version in stored_versions(store, area)), default=0) + 1


def make_current(store: Store, area: str, version: int, replaced: int | None) -> None:
    """Put a version in force; StoredFormatError if another one than `replaced` is in force by now."""
    found = current_version(store, area)
    if found != replaced:
        raise StoredFormatError(
            f"version {version} of {store.address(area)!r} was made to follow {replaced}, but {found} is in force by now; "
            "two writers were at work: run the step again"
        )
    store.write_bytes(f"{area}/{POINTER}", f"{version_name(version)}\n".encode())
