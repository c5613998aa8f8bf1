"""Compare two versions of nearcast side by side: `python benchmarks/compare.py OLD NEW`.

OLD and NEW are checkouts of the repository, or Python executables with nearcast installed. Both versions get the same input,
made here from a seed, and work on it in turns, each in a process of its own: first one, then the other, round after round. What
they answer (as sorted tables) and their work counters must be equal; times are compared as a ratio of medians. With `--again`,
OLD takes part twice: the spread between the two is the noise of the machine.

Only the public interface is used, so that a version with other modules inside can be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import nearcast as nc

SEED = 20261119
N_WORDS = 20_000
N_TOWNS = 40

# One round: what it answers, and its counters.
Answer = tuple[pa.Table, dict[str, float]]
Round = Callable[[int], Answer]


class Input:
    """A plane with towns, words by Zipf's law: the same for every version."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = np.random.default_rng(seed)
        self._town = self._random.random((N_TOWNS, 2)) * 1000
        weight = 1 / np.arange(1, N_WORDS + 1)
        self._below = np.cumsum(weight / weight.sum())

    def points(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        town = self._town[self._random.integers(0, N_TOWNS, n)]
        at = town + self._random.normal(0, 12, (n, 2))
        return np.clip(at[:, 0], 0, 1000), np.clip(at[:, 1], 0, 1000)

    def words(self, n: int, low: int, high: int) -> pa.Array:
        n_words = self._random.integers(low, high + 1, n)
        drawn = np.searchsorted(self._below, self._random.random(int(n_words.sum())))
        start = np.concatenate([[0], np.cumsum(n_words)]).astype(np.int32)
        names = pa.array([f"w{i}" for i in range(N_WORDS + 1)])
        return pa.ListArray.from_arrays(pa.array(start), names.take(pa.array(drawn)))

    def subscriptions(self, n: int, first: int = 0, width: float = 30) -> pa.Table:
        x, y = self.points(n)
        half = self._random.random(n) * width / 2
        box = {"x0": x - half, "y0": y - half, "x1": x + half, "y1": y + half}
        return pa.table({"id": np.arange(first, first + n), "keywords": self.words(n, 1, 3), **box})

    def interests(self, n: int, first: int) -> pa.Table:
        """Subscriptions with alternatives and words that must not be there."""
        plain = self.subscriptions(n, first)
        words = self.words(n, 3, 3).to_pylist()
        said = [f"({a} OR {b}) AND NOT {c}" if c not in (a, b) else a for a, b, c in words]
        return plain.drop_columns(["keywords"]).append_column("interest", pa.array(said))

    def messages(self, n: int, first: int = 0, low: int = 4, high: int = 12) -> pa.Table:
        x, y = self.points(n)
        return pa.table({"id": np.arange(first, first + n), "keywords": self.words(n, low, high), "x": x, "y": y})

    def timed_messages(self, n: int, first: int, lifetime: int) -> pa.Table:
        stamp = np.arange(first, first + n)
        return (
            self.messages(n, first).append_column("time", pa.array(stamp)).append_column("expires", pa.array(stamp + lifetime))
        )

    def moves(self, n: int, n_subscriptions: int, width: float = 30) -> pa.Table:
        x, y = self.points(n)
        half = self._random.random(n) * width / 2
        number = self._random.choice(n_subscriptions, n, replace=False)
        return pa.table({"id": number, "x0": x - half, "y0": y - half, "x1": x + half, "y1": y + half})

    def ranked(self, n: int) -> pa.Table:
        x, y = self.points(n)
        return pa.table({"id": np.arange(n), "keywords": self.words(n, 1, 3), "x": x, "y": y, "k": np.full(n, 20)})


def _counters(engine: Any) -> dict[str, float]:
    report, stats = engine.report, engine.stats()
    return {
        "matches": report.matches,
        "candidates": report.candidates,
        "nodes": report.nodes_visited,
        "rejected": len(report.rejected),
        "bytes": stats["bytes"],
    }


def _wait_for_merge(matcher: Any) -> None:
    # `settle` is what older versions call it.
    (matcher.wait_for_merge if hasattr(matcher, "wait_for_merge") else matcher.settle)()


def matching(index: str, n_subscriptions: int, n_messages: int, n_interests: int = 0) -> Round:
    made = Input()
    matcher = nc.Matcher(index, space="plane")
    matcher.subscribe_table(made.subscriptions(n_subscriptions))
    if n_interests:
        matcher.subscribe_table(made.interests(n_interests, n_subscriptions))
    _wait_for_merge(matcher)
    batches = [made.messages(n_messages) for _ in range(3)]

    def run(number: int) -> Answer:
        return matcher.match_table(batches[number % 3]), _counters(matcher)

    return run


def subscribing(n_subscriptions: int) -> Round:
    made = Input()
    tables = [made.subscriptions(n_subscriptions // 10, first * n_subscriptions // 10) for first in range(10)]
    messages = made.messages(2_000)

    def run(number: int) -> Answer:
        matcher = nc.Matcher(space="plane")
        for table in tables:
            matcher.subscribe_table(table)
        matcher.unsubscribe(pa.array(np.arange(number, n_subscriptions, 7)))
        _wait_for_merge(matcher)
        return matcher.match_table(messages), _counters(matcher)

    return run


def objects(n_subscriptions: int, n_messages: int) -> Round:
    made = Input()
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(made.subscriptions(n_subscriptions))
    _wait_for_merge(matcher)
    rows = made.messages(n_messages).to_pylist()
    messages = [nc.Message(row["id"], keywords=row["keywords"], location=(row["x"], row["y"])) for row in rows]

    def run(number: int) -> Answer:
        found = [matcher.publish([message]) for message in messages]
        pairs = [(delivery.message_id, delivery.subscription_id) for each in found for delivery in each]
        columns = [np.array(column, np.int64) for column in zip(*pairs, strict=True)]
        return pa.table(columns, ["message_id", "subscription_id"]), _counters(matcher)

    return run


def saving(n_subscriptions: int) -> Round:
    made = Input()
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(made.subscriptions(n_subscriptions))
    _wait_for_merge(matcher)
    messages = made.messages(2_000)

    def run(number: int) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            matcher.save(Path(folder) / "saved")
            opened = nc.Matcher.open(Path(folder) / "saved")
            return opened.match_table(messages), _counters(opened)

    return run


def moving(index: str, n_subscriptions: int, n_messages: int, n_moves: int) -> Round:
    made = Input()
    matcher = nc.MovingMatcher(index, space="plane")
    matcher.subscribe_table(made.subscriptions(n_subscriptions))
    lifetime = 4 * n_messages
    for step in range(4):
        matcher.publish_table(made.timed_messages(n_messages, step * n_messages, lifetime))

    def run(number: int) -> Answer:
        # What is made is made in the order of the rounds, so that both versions get the same.
        changes = [matcher.publish_table(made.timed_messages(n_messages, (4 + number) * n_messages, lifetime))]
        counters = _counters(matcher)
        changes.append(matcher.move_table(made.moves(n_moves, n_subscriptions)))
        counters.update({f"move_{name}": value for name, value in _counters(matcher).items()})
        return pa.concat_tables(changes), counters

    return run


def ranking(index: str, n_subscriptions: int, window: int, n_messages: int) -> Round:
    made = Input()
    ranker = nc.Ranker(window=nc.CountWindow(window), index=index, space="plane", bounds=nc.Box(0, 0, 1000, 1000))
    ranker.subscribe_table(made.ranked(n_subscriptions))
    for first in range(0, 2 * window, window // 2):
        ranker.publish_table(made.messages(window // 2, first))

    def run(number: int) -> Answer:
        changes = ranker.publish_table(made.messages(n_messages, 2 * window + number * n_messages))
        return changes, _counters(ranker)

    return run


def interests(n: int) -> Round:
    said = Input().interests(n, 0)["interest"].to_pylist()

    def run(number: int) -> Answer:
        read = [str(nc.parse_interest(text)) for text in said]
        return pa.table({"interest": read}), {}

    return run


PLANS: dict[str, Callable[[], Round]] = {
    "match": lambda: matching("frequency_grid", 300_000, 50_000),
    "match_checked": lambda: matching("frequency_grid", 150_000, 20_000, 50_000),
    "match_adaptive_tree": lambda: matching("adaptive_tree", 100_000, 10_000),
    "match_frequency_pyramid": lambda: matching("frequency_pyramid", 100_000, 10_000),
    "match_quadtrees": lambda: matching("space_first_quadtree", 100_000, 10_000),
    "subscribe": lambda: subscribing(200_000),
    "objects": lambda: objects(200_000, 1_000),
    "save_and_open": lambda: saving(200_000),
    "moving": lambda: moving("moving_grid", 100_000, 2_000, 10_000),
    "moving_adaptive_tree": lambda: moving("moving_adaptive_tree", 20_000, 500, 1_000),
    "ranked": lambda: ranking("impact_grid", 50_000, 20_000, 2_000),
    "ranked_group_pruned": lambda: ranking("group_pruned", 10_000, 5_000, 500),
    "interests": lambda: interests(2_000),
}


def digest(table: pa.Table) -> str:
    """A hash of a table whose rows have no order."""
    table = table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
    hashed = hashlib.sha256()
    for name in table.column_names:
        hashed.update(name.encode())
        column = table[name].combine_chunks()
        values = column.to_pylist() if pa.types.is_string(column.type) else None
        hashed.update(json.dumps(values).encode() if values is not None else column.to_numpy(zero_copy_only=False).tobytes())
    return hashed.hexdigest()[:16]


def work(plan: str) -> None:
    """The process of one version: a line in is a round, a line out is its result."""
    run = PLANS[plan]()
    for line in sys.stdin:
        started = time.perf_counter()
        answer, counters = run(int(line))
        seconds = time.perf_counter() - started
        result = {"seconds": seconds, "rows": answer.num_rows, "digest": digest(answer), "counters": counters}
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


class Version:
    """One version at work on one plan."""

    def __init__(self, label: str, where: str, plan: str) -> None:
        path = Path(where).resolve()
        is_checkout = path.is_dir()
        environment = dict(os.environ, PYTHONHASHSEED="0")
        environment.pop("PYTHONPATH", None)
        if is_checkout:
            environment["PYTHONPATH"] = str(path / "src")
        # A virtual environment is known by the path it is called with.
        python = sys.executable if is_checkout else os.path.abspath(where)
        command = [python, str(Path(__file__).resolve()), "--work", plan]
        self.label = label
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)

    def run(self, number: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.label} ended with code {self._process.wait()}")
        result: dict[str, Any] = json.loads(line)
        return result

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Where answers or counters of one round differ. Bytes are compared as a ratio, not here."""
    if (old["rows"], old["digest"]) != (new["rows"], new["digest"]):
        yield f"answers: {old['rows']} rows {old['digest']}, {new['rows']} rows {new['digest']}"
    for name in sorted(old["counters"].keys() | new["counters"].keys()):
        one, other = old["counters"].get(name), new["counters"].get(name)
        if one != other and not name.endswith("bytes"):
            yield f"{name}: {one}, {other}"


def compare(plan: str, old: str, new: str, rounds: int, again: bool) -> bool:
    """Run one plan with all versions in turns, print one line; whether answers and counters are equal."""
    versions = [Version("old", old, plan), Version("new", new, plan), *([Version("again", old, plan)] if again else [])]
    results: dict[str, list[dict[str, Any]]] = {version.label: [] for version in versions}
    # The first round is for warming up: it is compared, but its time does not count.
    for number in range(rounds + 1):
        # Nobody runs twice in a row: what it reads would still be in the cache.
        first = number % len(versions)
        for version in versions[first:] + versions[:first]:
            results[version.label].append(version.run(number))
    for version in versions:
        version.end()
    differing = [
        f"round {number}: {text}"
        for number, (one, other) in enumerate(zip(results["old"], results["new"], strict=True))
        for text in differences(one, other)
    ]
    median = {label: statistics.median(r["seconds"] for r in each[1:]) for label, each in results.items()}
    best = {label: min(r["seconds"] for r in each[1:]) for label, each in results.items()}
    line = f"{plan:24} old {median['old'] * 1e3:9.2f} ms"
    for label, name in (("new", "new/old"), ("again", "old/old")):
        if label in median:
            line += f"  {name} {median[label] / median['old']:.3f} (best {best[label] / best['old']:.3f})"
    size = results["old"][-1]["counters"].get("bytes")
    if size:
        line += f"  bytes {results['new'][-1]['counters']['bytes'] / size:.4f}"
    print(f"{line}  {results['old'][-1]['rows']} rows  {'equal' if not differing else 'DIFFERENT'}", flush=True)  # noqa: T201
    for text in differing[:5]:
        print(f"    {text}")  # noqa: T201
    return not differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="OLD NEW", help="checkouts, or Python executables")
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="only this one; may be given several times")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--again", action="store_true", help="run OLD a second time, to see the noise")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work)
        return
    if len(given.versions) != 2:
        parser.error(f"{len(given.versions)} versions were given; expected two: OLD NEW")
    old, new = given.versions
    equal = [compare(plan, old, new, given.rounds, given.again) for plan in given.plan or PLANS]
    sys.exit(0 if all(equal) else 1)


if __name__ == "__main__":
    main()
