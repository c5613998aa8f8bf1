"""What the documentation says is there, is there: names, files, settings, code blocks, links."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nearcast as nc
from nearcast.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "nearcast"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def glossary_rows() -> list[tuple[str, str]]:
    rows = []
    for line in (ROOT / "docs" / "glossary.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 5 and cells[0] != "paper":
            rows.append((cells[2].strip("`"), cells[3].strip("`")))
    return rows


def test_the_glossary_is_not_empty() -> None:
    assert len(glossary_rows()) > 15


@pytest.mark.parametrize(("name", "file"), glossary_rows())
def test_a_name_of_the_glossary_stands_in_its_file(name: str, file: str) -> None:
    path = ROOT / file if file.startswith("benchmarks/") else SOURCE / file
    assert re.search(rf"\b{re.escape(name)}\b", path.read_text())


def test_every_index_is_in_the_documentation() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for name in (*nc.indexes("boolean"), *nc.indexes("moving"), *nc.indexes("ranked")):
        assert f"`{name}`" in text


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    lines = (ROOT / "docs" / "reference" / "settings.md").read_text().splitlines()
    for setting in SETTINGS:
        assert f"| `{setting.variable}` | {setting.default} | {setting.help} |" in lines


def test_the_hot_path_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    hops = re.findall(r"`([\w/]+\.py):(\w+)`", text)
    assert len(hops) >= 10
    for file, name in hops:
        assert re.search(rf"\b{name}\b", (SOURCE / file).read_text()), f"{file}:{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_first_example_of_the_readme_does_what_it_shows() -> None:
    text = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```\n(\[Delivery.*?)```", text, re.DOTALL)
    assert code is not None
    assert shown is not None
    assert len([line for line in code.group(1).splitlines() if line.strip()]) <= 10
    run = subprocess.run([sys.executable, "-c", code.group(1)], capture_output=True, text=True, check=True)
    assert run.stdout == shown.group(1)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.name)
def test_an_example_runs(script: Path) -> None:
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert run.stdout


def test_the_verbs_of_the_makefile_are_explained() -> None:
    out = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checks = ["lint", "types", "test", "test-nojit", "test-bounds", "soak"]
    verbs = [*checks, "run", "bench", "figures", "serve", "debug", "clean", "help"]
    for verb in verbs:
        assert re.search(rf"make {verb}\s+\S", out), verb
