"""JSON that is nested too deeply is refused before anything recurses into it."""

from __future__ import annotations

import pytest

from nearcast.service.intake.decoding import MESSAGES, check_depth
from nearcast.service.problems import Problem

PLACE = b'"location":{"type":"Point","coordinates":[1,2]}'


def deep(n: int) -> bytes:
    return b'{%s,"payload":%s%s}' % (PLACE, b"[" * n, b"]" * n)


@pytest.mark.parametrize("n", [64, 500, 100_000])
def test_a_document_that_is_too_deep_is_unusable(n: int) -> None:
    assert MESSAGES.one(deep(63)).location is not None
    with pytest.raises(Problem) as told:
        MESSAGES.one(deep(n))
    assert told.value.status == 422
    # A start without an end recurses as deeply.
    with pytest.raises(Problem):
        MESSAGES.one(b'{"payload":' + b'{"a":' * n)


def test_a_line_that_is_too_deep_does_not_stop_the_others() -> None:
    found, _ = MESSAGES.lines(b"\n".join((deep(3), deep(64), deep(5000), deep(63))), 9)
    assert [isinstance(one, Problem) for one in found] == [False, True, True, False]


@pytest.mark.parametrize(
    "body",
    [
        b'{"text":"' + b"[" * 1000 + b'"}',
        b'{"text":"\\"' + b"{[" * 1000 + b'\\\\"}',
        b'{"ring":[' + b",".join([b"[1,2]"] * 1000) + b"]}",
        b'["' + b"x" * 1_000_000 + b'","' + b"[" * 100 + b'"]',
        b"]" * 1000,
    ],
)
def test_brackets_in_strings_and_beside_each_other_are_not_deep(body: bytes) -> None:
    check_depth(body)
