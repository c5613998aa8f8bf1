"""The machine a measurement was taken on: versions, processor, memory, commit, compiled kernels on disk."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("numpy", "numba", "llvmlite", "pyarrow", "shapely")


class CachedKernels(NamedTuple):
    """The contents of the folder of compiled kernels."""

    folder: Path
    n_kernels: int
    n_bytes: int


def version_of(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    return {"python": platform.python_version(), **{name: version_of(name) for name in ("nearcast", *PACKAGES)}}


def machine() -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.release()}",
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def reset_peak() -> None:
    """Restart the measurement of `peak_bytes`. Does nothing on systems without this."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int | None:
    """The most memory this process used since `reset_peak`, or None where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    peaks = [int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")]
    return peaks[0] if peaks else None


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def commit() -> str | None:
    """The commit of the source, with a plus sign if files differ from it; None outside a repository."""
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str | None:
        try:
            run = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return run.stdout.strip() if run.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    if not head:
        return None
    return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def cached_kernels() -> CachedKernels:
    """The compiled kernels on disk, of this and of earlier versions of the source."""
    folder = _cache_folder()
    sizes = [(Path(path) / name).stat().st_size for path, _, names in os.walk(folder) for name in names if _is_kernel(name)]
    return CachedKernels(folder, len(sizes), sum(sizes))


def n_cached_kernels() -> int:
    """The number of compiled kernels on disk, without their sizes: cheaper."""
    return sum(_is_kernel(name) for _, _, names in os.walk(_cache_folder()) for name in names)


def _is_kernel(name: str) -> bool:
    return name.endswith(".nbc")


def _cache_folder() -> Path:
    from nearcast.kernels.compile import cache_folder

    return cache_folder()
