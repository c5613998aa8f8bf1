"""Runs a plan: every point, every series, raw records into a folder that replaces the one of the run before.

A run that takes hours may be interrupted: its points are kept as they come, and a later run goes on after them.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
    """Measure a plan and give the folder of its records: <out_folder>/<plan>/<size>.

    `progress(step, n_steps, what)` is called before each step. An older run of the same plan and size is replaced once the
    new one is complete. With `resume`, what the same plan has measured at the same commit is not measured again, be it whole
    or interrupted.
    """
    from benchmarks.experiments import KINDS

    plan = read_plan(name)
    points = plan.points(size)
    kind = KINDS[plan.kind]
    steps_per_point = kind.n_steps(plan)
    n_steps = len(points) * steps_per_point
    folder = Path(out_folder) / plan.name / size
    fresh = folder.with_name(f".{size}.new")
    circumstances = {"versions": versions(), "machine": machine(), "commit": commit()}
    if resume and _n_whole_points(folder, plan, circumstances) == len(points):
        return folder
    n_kept = _n_whole_points(fresh, plan, circumstances) if resume else 0
    if not n_kept:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        (fresh / PLAN_FILE).write_text(plan.source, encoding="utf-8")
    for number, point in enumerate(points[n_kept:], n_kept):
        step = number * steps_per_point

        def say(what: str, label: str = point.label) -> None:
            nonlocal step
            if progress is not None:
                progress(step, n_steps, f"{label}: {what}")
            step += 1

        for place, record in enumerate(kind.measure(plan, point, say)):
            record.facts = {**_facts(plan, size, point, number, place), **circumstances, **record.facts}
            write_record(fresh, record)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    if progress is not None:
        progress(n_steps, n_steps, "done")
    return folder


def _n_whole_points(folder: Path, plan: Plan, circumstances: Mapping[str, Any]) -> int:
    """How many points, from the first on, the folder holds of this plan at this commit."""
    file = folder / PLAN_FILE
    if not file.is_file() or file.read_text(encoding="utf-8") != plan.source:
        return 0
    series_at = Counter(
        record.facts["point"]["number"]
        for record in read_records(folder)
        if all(record.facts[name] == circumstances[name] for name in ("commit", "versions"))
    )
    whole = itertools.takewhile(lambda number: series_at[number] == len(plan.series), itertools.count())
    return len(list(whole))


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
