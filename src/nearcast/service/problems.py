"""What a request can be answered with when it is not fulfilled: a status, a code for programs, a message for people."""

from __future__ import annotations

from nearcast.errors import NearcastError


class Problem(NearcastError):  # noqa: N818  # what the standard for such answers calls it
    """An error with an HTTP status. `retry_after` in seconds goes into the header of that name."""

    def __init__(self, status: int, code: str, message: str, where: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.where = where
        self.retry_after = retry_after


def not_found(what: str, id: str) -> Problem:
    return Problem(404, "not_found", f"there is no {what} {id!r} that this key may see; list them to find its id")


def forbidden(message: str) -> Problem:
    return Problem(403, "forbidden", message)


def unusable(message: str, where: str | None = None) -> Problem:
    return Problem(422, "unusable", message, where)


def busy(message: str, retry_after: int = 1) -> Problem:
    return Problem(429, "busy", message, retry_after=retry_after)


def store_failed(message: str) -> Problem:
    return Problem(503, "store_failed", message, retry_after=5)


def not_handed_over(message: str) -> Problem:
    return Problem(
        503, "pipeline_failed", f"{message}; it is kept here and will be handed over: send it again to know", retry_after=5
    )


def other_request(key: str | None) -> Problem:
    return Problem(409, "conflict", f"the idempotency key {key!r} was used for another request; use a new one for each")
