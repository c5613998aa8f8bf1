"""What can go wrong on the way to a server and back."""

from __future__ import annotations

from nearcast.errors import NearcastError


class ApiError(NearcastError):
    """The server refused, in its own words. `code` is for programs, `where` the field it complains about."""

    def __init__(
        self, status: int, code: str, message: str, where: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.where = where
        self.retry_after_s = retry_after_s


class ServerUnreachable(NearcastError):  # noqa: N818  # says what happened
    """No answer came: nobody there, a connection that broke, a time-out.

    Operator action: check the URL, and that the server runs.
    """
