"""The documentation of the service does what it says: the tutorial is run, the page of routes is that of the server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(text: str, language: str) -> list[str]:
    return [block for found, block in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL) if found == language]


def test_the_tutorial_can_be_followed_word_by_word(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    page = (DOCS / "tutorial" / "ten-minutes.md").read_text().replace("8080", port)
    commands = blocks(page, "sh")
    (program,) = blocks(page, "python")
    (tmp_path / "program.py").write_text(f"import os\nkey = os.environ['NEARCAST_KEY']\n{program}")
    (tmp_path / "bin").mkdir()
    verb = tmp_path / "bin" / "nearcast"
    verb.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nearcast "$@"\n')
    verb.chmod(0o755)
    script = "\n".join([*commands, f'"{sys.executable}" program.py', "kill %1"])
    script = script.replace("nearcast serve &", f"nearcast serve --port {port} 2>server.log &")
    environment = {
        **os.environ,
        "NEARCAST_URL": f"http://127.0.0.1:{port}",
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }
    command = ["bash", "-e", "-m", "-c", script]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 0, run.stdout + run.stderr + (tmp_path / "server.log").read_text()
    shown = [line.strip() for block in blocks(page, "") for line in block.splitlines() if "pip install" not in line]
    assert len(shown) == 4
    for line in shown:
        assert line in run.stdout


def test_the_page_of_routes_is_that_of_the_server() -> None:
    command = [sys.executable, "-m", "nearcast.service.route_reference"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (DOCS / "reference" / "routes.md").read_text() == printed
