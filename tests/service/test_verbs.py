"""The client verbs of the command line, against a real server; and the load generator."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nearcast.cli.main import app
from nearcast.load.phases import PhaseResult, percentile
from support.http_server import SmallServer

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture(scope="module")
def server(shared_server: SmallServer) -> SmallServer:
    mine = copy.copy(shared_server)
    mine.key = shared_server.make_key("vera", "admin", "publisher", "subscriber", tenant="verbs")
    return mine


@pytest.fixture(autouse=True)
def _at_the_server(server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_URL", server.url)
    monkeypatch.setenv("NEARCAST_KEY", server.key)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def said(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_from_a_subscription_to_what_it_gets() -> None:
    assert said("subscribe", "hail", "--keywords", "hail", "--near", "-93.3,37.2", "--radius", "50000") == "hail\n"
    assert "m-" in said("publish", "--at", "-93.29,37.21", "--text", "Large hail now")
    shown = said("listen", "--after", "0", "--subscriptions", "hail", "--count", "1")
    assert "match" in shown
    assert "Large hail now" in shown
    assert "1,422 m" in shown
    event = json.loads(said("listen", "--after", "0", "--subscriptions", "hail", "--count", "1", "--json"))
    assert event["data"]["message"]["text"] == "Large hail now"
    assert "hail" in said("subscribe", "--list")
    assert "delivered" in said(
        "explain", "--url", os.environ["NEARCAST_URL"], "--id", "hail", "--at", "-93.3,37.2", "--text", "hail"
    )
    assert "ended" in said("subscribe", "--delete", "hail")


def test_moving_and_ranked() -> None:
    said("publish", "--at", "5,5", "--keywords", "kiosk", "--id", "kiosk-1", "--lifetime", "600")
    said("subscribe", "walker", "--keywords", "kiosk", "--near", "0,0", "--kind", "moving")
    assert "1 entered, 0 left" in said("move", "walker", "--to", "5,5")
    said("subscribe", "best", "--keywords", "kiosk", "--near", "5,5", "--kind", "ranked", "--k", "3")
    assert "kiosk-1" in said("top", "best")


def test_files_of_many(tmp_path: Path) -> None:
    subscriptions, messages = tmp_path / "s.ndjson", tmp_path / "m.ndjson"
    subscriptions.write_text('{"id": "bulk-1", "keywords": ["bulk"]}\n{"id": "bulk-2", "keywords": [""]}\n')
    result = run("subscribe", "--file", str(subscriptions))
    assert result.exit_code == 1
    assert "1 subscriptions accepted, 1 rejected" in result.stdout
    assert "line 1" in result.stderr
    place = {"type": "Point", "coordinates": [1, 2]}
    messages.write_text("".join(json.dumps({"location": place, "text": f"bulk {number}"}) + "\n" for number in range(7)))
    assert "7 messages accepted, 0 rejected" in said("publish", "--file", str(messages))
    moves = tmp_path / "moves.ndjson"
    moves.write_text('{"subscription": "bulk-1", "location": {"type": "Point", "coordinates": [0, 0]}}\n')
    assert run("move", "--file", str(moves)).exit_code == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("publish", "--text", "x"), "--at with --text"),
        (("publish", "--at", "here", "--text", "x"), "--at 'here' is not a location"),
        (("move", "walker"), "--to X,Y"),
        (("move", "walker", "--to", "1"), "--to '1' is not a location"),
        (("subscribe", "--near", "1,2", "--box", "1,2,3,4"), "expected one of them"),
        (("subscribe", "--rate", "often"), "--rate 'often' is not N/SECONDS"),
        (("top", "nobody"), "no subscription 'nobody'"),
        (("explain", "--id", "a"), "--url to ask a server"),
        (("listen", "--key", "nc_000000000000_x"), "not known"),
        (("load", "--url", "https://example.org"), "plain http"),
    ],
)
def test_mistakes_are_told_in_one_line(words: tuple[str, ...], expected: str) -> None:
    if words[0] == "explain":
        words = (*words, "--text", "x")
    result = run(*words)
    assert result.exit_code == 2
    assert expected in result.stderr.replace("\n", " ")


def test_the_load_generator_counts_what_was_kept_and_received() -> None:
    shown = said(
        "load", "--set", "vocabulary_size=2000", "--set", "pool=5000", "--subscriptions", "200", "--bulk", "500",
        "--batch", "100", "--single", "100", "--connections", "16", "--listeners", "20", "--live", "60",
    )  # fmt: skip
    for part in ("200", "500", "100", "1,200", "20 connections"):
        assert part in shown
    assert "WERE EXPECTED" not in shown


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert PhaseResult("x", 10, 2.0, []).cells()[3:6] == ("5", "-", "-")
