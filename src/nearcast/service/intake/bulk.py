"""Bulk requests: every line is checked by itself, and those that are good go on together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nearcast.service.intake.decoding import LineDecoder
from nearcast.service.problems import Problem
from nearcast.wire.api import BulkResult, ErrorBody, LineResult

Given = TypeVar("Given")
Good = TypeVar("Good")


@dataclass(slots=True)
class Lines(Generic[Good]):
    """The good ones with their line numbers; `results` holds what is to be told of lines."""

    good: list[Good] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    results: dict[int, LineResult] = field(default_factory=dict)
    n: int = 0

    def refuse(self, line: int, problem: Problem) -> None:
        body = ErrorBody(problem.code, str(problem), problem.where)
        self.results[line] = LineResult(line, "error", error=body)

    def told(self, cursor: int) -> BulkResult:
        results = [self.results[line] for line in sorted(self.results)]
        n_refused = sum(result.status == "error" for result in results)
        return BulkResult(self.n - n_refused, n_refused, str(cursor), results)


def check_lines(decoder: LineDecoder[Given], body: bytes, most: int, check: Callable[[Given, bytes], Good]) -> Lines[Good]:
    """Decode and check every line of a body; `check` gets the line too."""
    lines: Lines[Good] = Lines()
    given, texts = decoder.lines(body, most)
    lines.n = len(given)
    for at, (one, text) in enumerate(zip(given, texts, strict=True)):
        try:
            if isinstance(one, Problem):
                raise one
            lines.good.append(check(one, text))
            lines.line.append(at)
        except Problem as problem:
            lines.refuse(at, problem)
    return lines
