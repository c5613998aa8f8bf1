"""`python -m benchmarks list|run|report|figures`: the experiments of the papers, and our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.main import Commands

if TYPE_CHECKING:
    from rich.progress import TaskID

    from benchmarks.results import Results

app = typer.Typer(
    cls=Commands,
    help="Experiments of the papers, measured here.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_Out = Annotated[Path, typer.Option(help="Folder of the results.")]
_To = Annotated[Path, typer.Option(help="Folder of the pages.")]


@app.command("list")
def list_all() -> None:
    """List the plans and what they claim."""
    from benchmarks.plan import list_plans, read_plan
    from nearcast.cli.console import results, table_of

    plans = [read_plan(name) for name in list_plans()]
    rows = [(plan.name, f"{plan.paper}, {plan.figure}", plan.claim) for plan in plans]
    results().print(table_of(("plan", "figure", "claim"), rows))


@app.command()
def run(
    plans: Annotated[list[str], typer.Argument(help="Names of plans, files that end in .toml, or: all.")],
    size: Annotated[str, typer.Option(help="tiny (seconds), small (minutes) or paper (hours, tens of GB).")] = "tiny",
    resume: Annotated[bool, typer.Option("--resume", help="Continue after what was measured at this commit.")] = False,
    out: _Out = Path("bench-results"),
) -> None:
    """Run plans: answers are checked, raw records are kept."""
    from benchmarks.plan import SIZES, list_plans
    from benchmarks.results import read_results
    from benchmarks.run import run_plan
    from nearcast.cli.console import progress_bar, results
    from nearcast.errors import NearcastError, PlanError

    if size not in SIZES:
        raise PlanError(f"--size {size!r} is unknown; expected {', '.join(SIZES)}")
    names = list_plans() if plans == ["all"] else plans
    failed: dict[str, str] = {}
    for name in names:
        with progress_bar() as progress:
            task = progress.add_task(name, total=None)

            def show_step(step: int, n_steps: int, what: str, name: str = name, task: TaskID = task) -> None:
                progress.update(task, completed=step, total=n_steps, description=f"{name} {what}")

            try:
                folder = run_plan(name, size, out, show_step, resume=resume)
            except NearcastError as error:
                # The other plans may have taken hours: they go on.
                if len(names) == 1:
                    raise
                failed[name] = str(error)
                continue
        _show(read_results(folder))
    results().print(f"python -m benchmarks report --out {out} makes pages of the results", style="dim")
    if failed:
        raise PlanError("these did not run: " + "; ".join(f"{name}: {reason}" for name, reason in failed.items()))


@app.command()
def report(out: _Out = Path("bench-results"), to: _To = Path("docs/experiments")) -> None:
    """Make pages of all results, one for each paper: claims, verdicts, tables, and figures."""
    from benchmarks.report.pages import make_report

    typer.echo(str(make_report(out, to)))


@app.command()
def figures(to: _To = Path("docs/experiments")) -> None:
    """Draw the figures of the pages from their table of values, measured.csv."""
    from benchmarks.report.plot import FIGURES, draw_figures

    typer.echo(f"{len(draw_figures(to))} figures in {to / FIGURES}")


def _show(results: Results) -> None:
    from benchmarks.metrics import METRICS
    from benchmarks.report.pages import written
    from nearcast.cli import console

    metrics = [name for name in results.plan.metrics if results.curves(name)]
    rows = []
    for record in results.records:
        values = [METRICS[name].of(record) for name in metrics]
        cells = ["" if value is None else written(value) for value in values]
        rows.append((str(record.facts["point"]["label"]), record.series, *cells))
    header = (results.plan.vary_label, "series", *(METRICS[name].label for name in metrics))
    screen = console.results()
    screen.print(console.table_of(header, rows, title=f"{results.plan.name} ({results.size}): {results.plan.title}"))
    for expected, judgement in results.judged():
        screen.print(f"{judgement.verdict}: {expected.text} ({judgement.reason})", markup=False)
    for reason in results.left_out:
        screen.print(reason, markup=False)
    if results.plan.why:
        screen.print(results.plan.why, markup=False)
    screen.print(f"{results.verdict}; records in {results.folder}\n", markup=False)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
