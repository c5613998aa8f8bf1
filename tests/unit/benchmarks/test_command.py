"""`python -m benchmarks`: list, run, report."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import list_plans
from benchmarks.__main__ import app


def run(*arguments: str, expected: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == expected, result.output
    return result.output


def test_list_names_every_plan_and_its_claim() -> None:
    told = run("list")
    for name in list_plans():
        assert name in told
    assert "Figure 15" in told


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """A shipped plan, made smaller."""
    source = resources.files("benchmarks").joinpath("plans/nearcast/encoding.toml").read_text(encoding="utf-8")
    for large, small in (("20_000\n", "500\n"), ("[20_000, 100_000]", "[500, 1000]")):
        assert large in source
        source = source.replace(large, small)
    path = tmp_path / "words.toml"
    path.write_text(source, encoding="utf-8")
    return str(path)


def test_a_plan_runs_and_is_reported(plan: str, tmp_path: Path) -> None:
    told = run("run", plan, "--size", "tiny", "--out", str(tmp_path))
    assert "Vocabulary.encode" in told
    assert "A Python dict takes about 2 µs." in told
    assert (tmp_path / "words" / "tiny" / "plan.toml").is_file()
    pages = tmp_path / "pages"
    assert run("report", "--out", str(tmp_path), "--to", str(pages)).strip() == str(pages / "README.md")
    assert "Words to keyword ids" in (pages / "own.md").read_text(encoding="utf-8")


def test_all_runs_every_plan(plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.plan.list_plans", lambda: [plan])
    assert "words (tiny)" in run("run", "all", "--out", str(tmp_path))


def test_a_plan_that_cannot_run_does_not_keep_others_from_it(plan: str, tmp_path: Path) -> None:
    told = run("run", "nope", plan, "--out", str(tmp_path), expected=2)
    assert "words (tiny)" in told
    assert "these did not run: nope: there is no plan" in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run",), "Missing argument"),
        (("run", "nope"), "there is no plan 'nope'"),
        (("run", "nearcast/encoding", "--size", "huge"), "--size 'huge' is unknown"),
        (("report", "--out", "/no/such/folder"), "holds no results"),
        (("run", "nearcast/encoding", "--out", "/dev/null/results"), "error: Not a directory"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in run(*arguments, expected=2)


@pytest.mark.parametrize("command", [[], ["list"], ["run"], ["report"]], ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    assert "Usage: " in run(*command, "--help")


def test_every_option_says_what_it_is_for() -> None:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"
