"""Starts the server of the demo as a process of its own, settles the city, opens the page, and keeps it going."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

from nearcast.client import Client
from nearcast.demo.city import City
from nearcast.demo.day import live, settle
from nearcast.errors import NearcastError

_WHERE = "-73.95,40.73,10.3"
_LISTENING = re.compile(r"listening on (\S+)")
_STOP_S = 15


def run_demo(folder: Path, port: int, rate: float, is_opened: bool, say: Callable[[str], None]) -> None:
    """Until Ctrl-C, or until the server ends by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    store = str(folder / "demo.db")
    key = _run("key", "create", "demo", "--role", "admin", "--store", store).strip()
    command = [sys.executable, "-m", "nearcast", "serve", "--store", store, "--port", str(port)]
    log = folder / "server.log"
    with log.open("w") as told, subprocess.Popen(command, stderr=told) as server:
        try:
            url = _address(server, log)
            with Client(url, key, retries=10) as client:
                city = City()
                say(f"{settle(client, city)} subscriptions in the city")
                page = f"{url}/#key={key}&at={_WHERE}&tour"
                say(f"the console: {page}")
                say("Ctrl-C ends the demo")
                if is_opened:
                    webbrowser.open(page)
                live(client, city, rate, lambda: server.poll() is not None)
        except KeyboardInterrupt:
            say("ending")
        finally:
            server.terminate()
            server.wait(_STOP_S)


def _run(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", "nearcast", *words], check=True, capture_output=True, text=True).stdout


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    while True:
        has_ended = server.poll() is not None
        told = log.read_text()
        found = _LISTENING.search(told)
        if found:
            return found.group(1)
        if has_ended:
            raise NearcastError(f"the server of the demo did not start: {told.strip()[-500:]}")
        time.sleep(0.05)
