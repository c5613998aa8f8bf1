"""Run the demo: start a server as its own process, subscribe the city, open the page, and send reports and moves."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from nearcast.client import Client
from nearcast.demo.city import City
from nearcast.errors import NearcastError

_BEATS_PER_SECOND = 4
_encode_lines = msgspec.json.Encoder().encode_lines


def subscribe_city(client: Client, city: City) -> int:
    """Make all subscriptions of the city; returns their number."""
    subscriptions = [*city.neighbours(), *city.cars(), *city.ranked_subscribers()]
    result = client.subscribe_many(_encode_lines(subscriptions))
    if result.rejected:
        raise RuntimeError(f"{result.rejected} subscriptions of the demo were rejected, first: {result.results[0]}")
    return result.accepted


def run_city(client: Client, city: City, reports_per_second: float, is_over: Callable[[], bool]) -> None:
    """Send reports and moves until `is_over`. A beat waits for the answers of the last one: a slow server is not flooded."""
    reports, due = city.reports(), 0.0
    moves = _moves_by_beat(city)
    while not is_over():
        began = time.monotonic()
        due += reports_per_second / _BEATS_PER_SECOND
        n_now = int(due)
        due -= n_now
        if n_now:
            client.publish_many(_encode_lines(list(islice(reports, n_now))))
        client.move_many(_encode_lines(next(moves)))
        time.sleep(max(0.0, 1 / _BEATS_PER_SECOND - (time.monotonic() - began)))


def _moves_by_beat(city: City) -> Iterator[list[dict[str, Any]]]:
    """The moves of each beat: every car moves once a second, in one of the beats."""
    while True:
        moves = city.moves()
        for beat in range(_BEATS_PER_SECOND):
            yield moves[beat::_BEATS_PER_SECOND]


_MAP_VIEW = "-73.95,40.73,10.3"
_LISTENING = re.compile(r"listening on (\S+)")
_STOP_S = 15


def run_demo(folder: Path, port: int, rate: float, open_page: bool, on_progress: Callable[[str], None]) -> None:
    """Run the demo until Ctrl-C, or until the server ends."""
    folder.mkdir(parents=True, exist_ok=True)
    store = str(folder / "demo.db")
    key = _run("key", "create", "demo", "--role", "admin", "--store", store).strip()
    command = [sys.executable, "-m", "nearcast", "serve", "--store", store, "--port", str(port)]
    log = folder / "server.log"
    with log.open("w") as output, subprocess.Popen(command, stderr=output) as server:
        try:
            url = _address(server, log)
            with Client(url, key, retries=10) as client:
                city = City()
                on_progress(f"{subscribe_city(client, city)} subscriptions in the city")
                page = f"{url}/#key={key}&at={_MAP_VIEW}&tour"
                on_progress(f"the console: {page}")
                on_progress("Ctrl-C ends the demo")
                if open_page:
                    webbrowser.open(page)
                run_city(client, city, rate, lambda: server.poll() is not None)
        except KeyboardInterrupt:
            on_progress("ending")
        finally:
            server.terminate()
            server.wait(_STOP_S)


def _run(*arguments: str) -> str:
    return subprocess.run([sys.executable, "-m", "nearcast", *arguments], check=True, capture_output=True, text=True).stdout


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    while True:
        has_ended = server.poll() is not None
        output = log.read_text()
        match = _LISTENING.search(output)
        if match:
            return match.group(1)
        if has_ended:
            raise NearcastError(f"the server of the demo did not start: {output.strip()[-500:]}")
        time.sleep(0.05)
