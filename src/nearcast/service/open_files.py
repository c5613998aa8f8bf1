"""Connections are files: as many as the system lets this process have, not as many as it has by default (often 1,024)."""

from __future__ import annotations

import resource

_ENOUGH = 1_048_576


def allow_many_files() -> int:
    """Raise the soft limit of open files to the hard one; gives how many there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _ENOUGH if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
