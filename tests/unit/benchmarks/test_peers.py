"""Peers give our answers, and one that is not there is left out with the reason."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import make_report
from benchmarks.peers import PEERS
from benchmarks.results import read_results
from benchmarks.run import run_plan
from support.postgres_server import postgres_programs, small_database

PLAN = """
title = "peers"
paper = "none"
figure = "none"
claim = "Everyone answers alike."
kind = "peers"
seed = 3
[workload]
name = "tweets"
vocabulary_size = 40
frequencies = "curve"
pool = 20000
range_low = 2.0
range_high = 8.0
[sizes.tiny]
n_subscriptions = 3000
n_messages = 120
repetitions = 1
chunk = 50
n_history = 500
[vary]
parameter = "workload.range"
label = "ranges"
tiny = ["side"]
[check]
against = "other"
messages = 120
"""
EXPECTATION = """
[[expect]]
text = "Within a factor."
stays_within = ["nearcast", 1.15, "postgres_cells", "postgres_cells"]
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed here")
    with tempfile.TemporaryDirectory(prefix="nearcast-postgres-") as folder, small_database(Path(folder)) as database:
        yield database.url


def plan_with(folder: Path, peers: Sequence[str]) -> str:
    path = folder / "peers.toml"
    path.write_text(PLAN + "".join(f"[[series]]\nmethod = {peer!r}\n" for peer in peers), encoding="utf-8")
    return str(path)


def test_every_peer_gives_our_answers(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_BENCH_POSTGRES", postgres)
    results = read_results(run_plan(plan_with(tmp_path, [*PEERS]), "tiny", tmp_path))
    there = {name for name, peer in PEERS.items() if peer.missing() is None}
    assert there >= {"nearcast", "postgres_cells", "shapely_tree", "plain_python"}
    checks = {record.series: record.facts["check"] for record in results.records if "check" in record.facts}
    assert checks.keys() == there
    assert all(check["equal"] and check["pairs"] > 500 for check in checks.values())
    assert len(results.left_out) == len(PEERS) - len(there)
    assert results.curves("messages_per_second").keys() == there
    assert results.curves("singles_per_second").keys() == {name for name in there if PEERS[name].takes_singles}


def test_a_peer_that_is_not_there_is_left_out_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARCAST_BENCH_POSTGRES", raising=False)
    plan = Path(plan_with(tmp_path, ["nearcast", "postgres_cells"]))
    plan.write_text(plan.read_text(encoding="utf-8") + EXPECTATION, encoding="utf-8")
    results = read_results(run_plan(str(plan), "tiny", tmp_path))
    assert "NEARCAST_BENCH_POSTGRES" in results.left_out[0]
    assert set(results.curves("us_per_message")) == {"nearcast"}
    assert [judgement.verdict for _, judgement in results.judged()] == ["not judged"]
    make_report(tmp_path, tmp_path / "pages")
    assert results.left_out[0] in (tmp_path / "pages" / "own.md").read_text(encoding="utf-8").replace("\\_", "_")
