"""Exceptions to the one shape of errors."""

from __future__ import annotations

import errno
import logging
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec

from nearcast.service.intake.decoding import problem_of
from nearcast.service.problems import Problem, not_found, store_failed
from nearcast.storage.errors import StoreError
from nearcast.wire.api import ErrorBody, ErrorOut

log = logging.getLogger(__name__)
AnyRequest = Request[Any, Any, Any]

_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}
DOCUMENTED = {
    status: ResponseSpec(ErrorOut, generate_examples=False, description=text)
    for status, text in {
        400: "Not JSON, or a parameter is wrong",
        401: "No key, or not a known one",
        403: "The key lacks the role",
        404: "Nothing here that this key may see",
        409: "In conflict with what is there",
        413: "Too large",
        422: "JSON, but not usable",
        429: "Too much at a time; see Retry-After",
        503: "Not ready, or the store cannot be written; see Retry-After",
    }.items()
}


def answer(status: int, body: ErrorBody, retry_after: int | None = None) -> Response[ErrorOut]:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(ErrorOut(body), status_code=status, headers=headers)


def of_problem(request: AnyRequest, problem: Problem) -> Response[ErrorOut]:
    request.app.state.broker.metrics.refused.labels(problem.code).inc()
    # The framework calls the body "data".
    where = None if problem.where is None else problem.where.replace("$.data", "$", 1)
    return answer(problem.status, ErrorBody(problem.code, str(problem), where), problem.retry_after)


def of_store(request: AnyRequest, error: StoreError) -> Response[ErrorOut]:
    return of_problem(request, store_failed(str(error)))


def of_http(request: AnyRequest, error: HTTPException) -> Response[ErrorOut]:
    """What the framework itself refuses."""
    if isinstance(error.__cause__, msgspec.DecodeError):
        return of_problem(request, problem_of(error.__cause__))
    message, where = error.detail, None
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        first = error.extra[0]
        message, where = str(first.get("message", message)), first.get("key")
    code = _CODES.get(error.status_code, "refused" if error.status_code < 500 else "internal")
    if error.status_code >= 500:
        return of_anything(request, error)
    return of_problem(request, Problem(error.status_code, code, message, where))


def of_anything(request: AnyRequest, error: Exception) -> Response[ErrorOut]:
    """A mistake of ours; it is told in the log and not to the world."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        # No file system takes such a name, so no file has it.
        return of_problem(request, not_found("file", request.url.path))
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return answer(500, ErrorBody("internal", "the server made a mistake; its log says more"))


HANDLERS: dict[Any, Any] = {
    Problem: of_problem,
    StoreError: of_store,
    HTTPException: of_http,
    Exception: of_anything,
}
