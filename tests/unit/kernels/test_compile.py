"""The kernel cache: keyed by source, independent of the path, loud once about compiling."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config as numba_config

from nearcast.kernels import compile as compiling
from nearcast.kernels import simd, simd_plain

SOURCE = Path(compiling.__file__).resolve().parents[2]
HELPER = "from nearcast.kernels.compile import kernel\n\n\n@kernel\ndef factor():\n    return {factor}\n"
CALLER = """from nearcast.kernels.compile import kernel
from nearcast.kernels.zz_helper import factor


@kernel
def double(x):
    return x * factor()
"""
RUN = "from nearcast.kernels.zz_caller import double; print(double(1), end='')"


def run(source: Path, cache: Path) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(source), "NEARCAST_KERNEL_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copied = tmp_path / "one" / "nearcast"
    (copied / "kernels").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "settings.py", "kernels/__init__.py", "kernels/compile.py"):
        shutil.copy(SOURCE / "nearcast" / name, copied / name)
    (copied / "kernels" / "zz_helper.py").write_text(HELPER.format(factor=2))
    (copied / "kernels" / "zz_caller.py").write_text(CALLER)
    return copied.parent


@pytest.mark.skipif(numba_config.DISABLE_JIT, reason="nothing is compiled without the JIT")
def test_an_edited_helper_recompiles_its_callers_and_another_path_does_not(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    result, said = run(package, cache)
    assert result == "2"
    assert "compiling matching kernels" in said
    moved = tmp_path / "two"
    shutil.move(package, moved)
    os.utime(moved / "nearcast" / "kernels" / "zz_caller.py", (1, 1))
    assert run(moved, cache) == ("2", "")
    # Numba's own cache would go on answering 2: it does not see an edit in another file.
    (moved / "nearcast" / "kernels" / "zz_helper.py").write_text(HELPER.format(factor=200))
    result, said = run(moved, cache)
    assert result == "200"
    assert "compiling" in said


def test_the_key_of_a_module_follows_its_imports() -> None:
    kernels = SOURCE / "nearcast" / "kernels"
    key = compiling.source_key(kernels / "shapes.py")
    assert key != compiling.source_key(kernels / "boxes.py")
    assert kernels / "boxes.py" in compiling._imported_files(kernels / "shapes.py")
    assert compiling._module_file("nearcast.nowhere") is None


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEARCAST_KERNEL_CACHE", str(tmp_path))
    assert compiling.cache_folder().parent == tmp_path
    monkeypatch.delenv("NEARCAST_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiling.cache_folder().is_relative_to(tmp_path / "nearcast" / "kernels")


def test_machine_operations_equal_their_plain_twins() -> None:
    import numpy as np

    from nearcast.kernels.compile import kernel

    def run_all(data, a, b, n):  # type: ignore[no-untyped-def]
        simd.prefetch(data, 0)
        return simd.load8(data, 1), simd.multiply(a, b), simd.add(a, b), simd.shift_right(a, n)

    data = np.arange(200, 216, dtype=np.uint8)
    compiled = kernel(run_all)
    for a, b, n in ((-1, 3, 7), (2**62, 2**62, 1), (-(2**63), -(2**63), 63), (5, -7, 0)):
        expected = (
            simd_plain.load8(data, 1),
            simd_plain.multiply(a, b),
            simd_plain.add(a, b),
            simd_plain.shift_right(a, n),
        )
        assert compiled(data, np.int64(a), np.int64(b), np.int64(n)) == expected
    simd_plain.prefetch(data, 0)
