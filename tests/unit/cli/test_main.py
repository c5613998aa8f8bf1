"""The entry point: help at once, errors in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import nearcast
from nearcast.cli.main import app
from nearcast.errors import NearcastError

COMMANDS = [
    [],
    ["match"],
    ["explain"],
    ["generate"],
    ["indexes"],
    ["warm"],
    ["doctor"],
    ["pipeline"],
    ["pipeline", "run"],
]
HEAVY = (
    "numba",
    "numpy",
    "pyarrow",
    "matplotlib",
    "pyspark",
    "shapely",
    "nearcast.workloads",
    "nearcast.engine",
    "nearcast.boolean",
    "nearcast.papers",
)


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout.strip()) == (0, f"nearcast {nearcast.__version__}")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage: " in result.output


def test_every_option_and_every_command_says_what_it_is_for() -> None:
    pending = [("nearcast", typer.main.get_command(app))]
    seen = 0
    while pending:
        name, command = pending.pop()
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"
            seen += 1
        pending += [(f"{name} {child}", below) for child, below in getattr(command, "commands", {}).items()]
    assert seen > 30


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom nearcast.cli.main import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\nsys.exit(f'loaded: {{loaded}}' if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_console_script_prints_an_error_as_one_line_and_leaves_with_2(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("nearcast")
    done = subprocess.run([script, "indexes", "--kind", "round"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"error: there is no kind of index 'round'; .*\n", done.stderr)


def test_nearcast_debug_shows_where_an_error_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = CliRunner().invoke(app, ["indexes", "--kind", "round"])
    assert quiet.exit_code == 2
    assert quiet.stderr.startswith("error: there is no kind of index 'round'")
    monkeypatch.setitem(os.environ, "NEARCAST_DEBUG", "1")
    loud = CliRunner().invoke(app, ["indexes", "--kind", "round"])
    assert isinstance(loud.exception, NearcastError)


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["fly"])
    assert result.exit_code == 2
    assert "No such command" in result.stderr
