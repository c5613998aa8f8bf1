"""Runs a plan: measures every series at every point and writes raw records into a folder, which replaces that of an older run.

A run that takes hours may be interrupted: each finished point is kept, and a later run with `resume` continues after them.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.experiments import measure_point, steps_per_point
from benchmarks.plan import Plan, Point, read_plan
from benchmarks.record import read_records, write_record
from nearcast.machine import commit, machine, versions

Progress = Callable[[int, int, str], None]
PLAN_FILE = "plan.toml"


def run_plan(
    name: str,
    size: str = "tiny",
    out_folder: str | Path = "bench-results",
    progress: Progress | None = None,
    *,
    resume: bool = False,
) -> Path:
    """Measure a plan; returns the folder of its records: <out_folder>/<plan>/<size>.

    `progress(step, n_steps, what)` is called before each step. An older run of the same plan and size is replaced once the
    new one is complete. With `resume`, points that the same plan has measured at the same commit are not measured again,
    whether that run was complete or interrupted.
    """
    plan = read_plan(name)
    points = plan.points(size)
    n_steps = len(points) * steps_per_point(plan)
    folder = Path(out_folder) / plan.name / size
    unfinished = folder.with_name(f".{size}.new")
    circumstances = {"versions": versions(), "machine": machine(), "commit": commit()}
    if resume and _n_complete_points(folder, plan, circumstances) == len(points):
        return folder
    n_kept = _n_complete_points(unfinished, plan, circumstances) if resume else 0
    if not n_kept:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        (unfinished / PLAN_FILE).write_text(plan.source, encoding="utf-8")
    for number, point in enumerate(points[n_kept:], n_kept):
        step = number * steps_per_point(plan)

        def on_progress(what: str, label: str = point.label) -> None:
            nonlocal step
            if progress is not None:
                progress(step, n_steps, f"{label}: {what}")
            step += 1

        for position, record in enumerate(measure_point(plan, point, on_progress)):
            record.facts = {**_facts(plan, size, point, number, position), **circumstances, **record.facts}
            write_record(unfinished, record)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    if progress is not None:
        progress(n_steps, n_steps, "done")
    return folder


def _n_complete_points(folder: Path, plan: Plan, circumstances: Mapping[str, Any]) -> int:
    """How many points, counted from the first, a folder has complete records of, for this plan at this commit."""
    file = folder / PLAN_FILE
    if not file.is_file() or file.read_text(encoding="utf-8") != plan.source:
        return 0
    n_series = Counter(
        record.facts["point"]["number"]
        for record in read_records(folder)
        if all(record.facts[name] == circumstances[name] for name in ("commit", "versions"))
    )
    complete = itertools.takewhile(lambda number: n_series[number] == len(plan.series), itertools.count())
    return len(list(complete))


def _facts(plan: Plan, size: str, point: Point, number: int, position: int) -> dict[str, Any]:
    series = point.series[position]
    return {
        "plan": plan.name,
        "kind": plan.kind,
        "size": size,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": plan.seed,
        "point": {"number": number, "label": point.label, "value": point.value, "parameter": plan.vary},
        "series": {
            "number": position,
            "label": series.label,
            "subject": series.subject,
            "parameters": dict(series.parameters),
        },
        "repetitions": point.size.repetitions,
        "chunk": point.size.chunk,
        "n_messages": point.size.n_messages,
    }
