"""Bodies to structs: one JSON document, or lines of them where a bad line does not stop the others."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from nearcast.service.problems import Problem, unusable
from nearcast.service.wire import MessageIn, MoveIn, SubscriptionIn

T = TypeVar("T")


class LineDecoder(Generic[T]):
    """Decodes documents of one kind."""

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(kind)

    def one(self, body: bytes) -> T:
        """The document; raises Problem 400 for bad JSON, 422 for a wrong one."""
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
            found: list[T | Problem] = [*self._decoder.decode_lines(body)]
            if len(found) == len(texts):
                return found, texts
        except (msgspec.DecodeError, UnicodeDecodeError):
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
