"""Runs a plan: every point, every series, raw records into a folder that replaces the one of the run before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nearcast.bench.machine import commit, machine, versions
from nearcast.bench.plan import Plan, Point, read_plan
from nearcast.bench.record import write_record

Progress = Callable[[int, int, str], None]
PLAN_FILE = "plan.toml"


def run_plan(name: str, size: str = "tiny", out_folder: str | Path = "bench-results", progress: Progress | None = None) -> Path:
    """Measure a plan and give the folder of its records: <out_folder>/<plan>/<size>.

    `progress(step, n_steps, what)` is called before each step. An older run of the same plan and size is replaced once the
    new one is complete.
    """
    from nearcast.bench.kinds import KINDS

    plan = read_plan(name)
    points = plan.points(size)
    kind = KINDS[plan.kind]
    n_steps = len(points) * kind.n_steps(plan)
    folder = Path(out_folder) / plan.name / size
    fresh = folder.with_name(f".{size}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    circumstances = {"versions": versions(), "machine": machine(), "commit": commit()}
    step = 0
    for number, point in enumerate(points):

        def say(what: str, label: str = point.label) -> None:
            nonlocal step
            if progress is not None:
                progress(step, n_steps, f"{label}: {what}")
            step += 1

        for place, record in enumerate(kind.measure(plan, point, say)):
            record.facts = {**_facts(plan, size, point, number, place), **circumstances, **record.facts}
            write_record(fresh, record)
    (fresh / PLAN_FILE).write_text(plan.source, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    if progress is not None:
        progress(n_steps, n_steps, "done")
    return folder


def _facts(plan: Plan, size: str, point: Point, number: int, place: int) -> dict[str, Any]:
    series = point.series[place]
    return {
        "plan": plan.name,
        "kind": plan.kind,
        "size": size,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": plan.seed,
        "point": {"number": number, "label": point.label, "value": point.value, "parameter": plan.vary},
        "series": {
            "number": place,
            "label": series.label,
            "subject": series.subject,
            "parameters": dict(series.parameters),
        },
        "repetitions": point.size.repetitions,
        "chunk": point.size.chunk,
        "n_messages": point.size.n_messages,
    }
