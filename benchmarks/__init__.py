"""Measurement: every experiment is a file, every number can be traced to a raw record.

A plan (`plans/<paper>/<figure>.toml`) says what varies, what is fixed, which indexes take part and what the paper claims.
`run_plan` goes through its points: generate the workload once, then for each series build, warm up, measure, and check the
answers against another index. What was measured is written as it is (`record`); numbers are functions over records
(`metrics`), so a new metric needs no new run. `make_report` makes pages of them: claim, verdict, figures, table.

    run_plan("ap_tree/number_of_subscriptions", "tiny", "bench-results")
    make_report("bench-results", "docs/experiments")

A new kind of experiment is one function in `kinds`.
"""

from benchmarks.plan import Plan, list_plans, read_plan
from benchmarks.report.pages import make_report
from benchmarks.run import run_plan

__all__ = ["Plan", "list_plans", "make_report", "read_plan", "run_plan"]
