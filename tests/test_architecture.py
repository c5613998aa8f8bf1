"""The rules of the house that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "nearcast"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 600


def test_modules_say_what_they_hold_and_none_is_endless() -> None:
    texts = {module.relative_to(SOURCE).as_posix(): module.read_text() for module in MODULES}
    assert [name for name, text in texts.items() if len(text.splitlines()) > LONGEST] == []
    assert [name for name, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


def test_only_two_modules_import_numba() -> None:
    importing = {
        m.relative_to(SOURCE).as_posix() for m in MODULES if re.search(r"^\s*(from|import) numba", m.read_text(), re.M)
    }
    assert importing <= {"kernels/compile.py", "kernels/simd.py", "cli/doctor.py"}


def test_importing_nearcast_loads_nothing_heavy() -> None:
    program = "import sys, nearcast; print([m for m in ('numpy', 'numba', 'pyarrow', 'shapely') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_public_name_can_be_loaded() -> None:
    import nearcast

    for name in nearcast.__all__:
        assert getattr(nearcast, name) is not None
    assert set(dir(nearcast)) == set(nearcast.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nearcast.nothing


def test_indexes_is_a_function_and_a_package() -> None:
    program = "import nearcast as nc; a = list(nc.indexes()); nc.Matcher(); assert a == list(nc.indexes(kind='boolean'))"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_machine_and_no_registry_is_named() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    # Written in pieces, so that this file does not name them itself.
    forbidden = re.compile(
        "|".join(["/ho" + "me/", "/ro" + "ot/", "py" + "pi\\.org", "npm" + "js\\.org", "files\\.python" + "hosted"])
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".properties", ""} and path.is_file():
            found = forbidden.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{name}: {found and found.group()}"
