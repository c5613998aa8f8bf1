"""Bodies to structs: one JSON document, or lines of them where a bad line does not stop the others."""

from __future__ import annotations

import re
from typing import Generic, TypeVar

import msgspec
import numpy as np

from nearcast.service.problems import Problem, unusable
from nearcast.wire.api import MessageIn, MoveIn, SubscriptionIn

T = TypeVar("T")
_MOST_DEPTH = 64
"""Arrays and objects inside each other; far above what a shape takes, far below what decoders can bear."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_depth(body: bytes) -> None:
    """Raise Problem 422 for JSON that is nested too deeply: it could be taken once and never be read again."""
    if body.count(b"[") + body.count(b"{") <= _MOST_DEPTH:
        return
    brackets = np.frombuffer(_STRING.sub(b"", body).translate(None, _NO_BRACKETS), np.uint8)
    is_opening = (brackets == ord("[")) | (brackets == ord("{"))
    depth = int(np.cumsum(np.where(is_opening, 1, -1)).max(initial=0))
    if depth > _MOST_DEPTH:
        raise unusable(f"the JSON is {depth} levels deep; at most {_MOST_DEPTH} are allowed: make it flatter")


class LineDecoder(Generic[T]):
    """Decodes documents of one kind."""

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(kind)

    def one(self, body: bytes) -> T:
        """The document; raises Problem 400 for bad JSON, 422 for a wrong one."""
        check_depth(body)
        try:
            return self._decoder.decode(body)
        except msgspec.DecodeError as error:
            raise problem_of(error) from None
        except UnicodeDecodeError:
            raise Problem(400, "not_json", "the body is not UTF-8; expected JSON in UTF-8") from None

    def lines(self, body: bytes, most: int) -> tuple[list[T | Problem], list[bytes]]:
        """What each line holds, or what is wrong with it; and the lines. Blank lines are no lines."""
        texts = [line for line in body.split(b"\n") if line and not line.isspace()]
        if len(texts) > most:
            raise Problem(413, "too_large", f"the request has {len(texts)} lines; at most {most} are allowed: send several")
        try:
            for text in texts:
                check_depth(text)
            found: list[T | Problem] = [*self._decoder.decode_lines(body)]
            if len(found) == len(texts):
                return found, texts
        except (msgspec.DecodeError, UnicodeDecodeError, Problem):
            # One by one, to tell which.
            pass
        return self._one_by_one(texts), texts

    def _one_by_one(self, lines: list[bytes]) -> list[T | Problem]:
        found: list[T | Problem] = []
        for line in lines:
            try:
                found.append(self.one(line))
            except Problem as problem:
                found.append(problem)
        return found


def problem_of(error: msgspec.DecodeError) -> Problem:
    """What msgspec says, as a Problem: bad JSON is 400, good JSON of a wrong shape 422."""
    if isinstance(error, msgspec.ValidationError):
        text, _, where = str(error).partition(" - at `")
        return unusable(text, where.rstrip("`") or None)
    return Problem(400, "not_json", f"the body is not JSON: {error}")


SUBSCRIPTIONS = LineDecoder(SubscriptionIn)
MESSAGES = LineDecoder(MessageIn)
MOVES = LineDecoder(MoveIn)
