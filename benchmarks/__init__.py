"""Experiments: each is a file, and every number can be traced to a raw record. `python -m benchmarks` runs and reports them.

A plan (`plans/<paper>/<figure>.toml`) states what varies, what is fixed, which indexes take part and what the paper claims.
`run_plan` goes through its points: it generates the workload once, then for each series it builds, warms up, measures, and
compares the answers with those of another index. What was measured is written as it is (`record.py`). Numbers are functions
over records (`metrics`), so a new metric needs no new run. `make_report` writes pages (claim, verdict, table) and
`measured.csv`, from which the figures are drawn.

    run_plan("ap_tree/number_of_subscriptions", "tiny", "bench-results")
    make_report("bench-results", "docs/experiments")

A new kind of experiment is one module in `experiments`.
"""

from benchmarks.plan import Plan, list_plans, read_plan
from benchmarks.report.pages import make_report
from benchmarks.run import run_plan

__all__ = ["Plan", "list_plans", "make_report", "read_plan", "run_plan"]
