"""Pages, plots and a table of every value over what was measured."""

from benchmarks.report.pages import make_report

__all__ = ["make_report"]
