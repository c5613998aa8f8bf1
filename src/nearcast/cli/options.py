"""Options that several verbs share: `--set key=value`, `--at x,y`, `--url` and `--key`; and the check for optional packages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.errors import EnvironmentProblem, NearcastError

if TYPE_CHECKING:
    from nearcast.client import Client


def read_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """The values of `key=value` pairs: JSON (3, 0.5, true, [1, 3]), or else the text itself."""
    parameters = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise NearcastError(f"--set {pair!r} is not key=value; expected for example --set range=side")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        parameters[name.strip()] = tuple(value) if isinstance(value, list) else value
    return parameters


def read_location(text: str, option: str = "--at") -> tuple[float, ...]:
    """The numbers of `x,y` or of a box `x0,y0,x1,y1`; `option` names it in the error."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 4):
        raise NearcastError(f"{option} {text!r} is not a location; expected X,Y (longitude first) or X0,Y0,X1,Y1")
    return numbers


_SERVICE = ("litestar", "msgspec", "uvicorn", "pyroaring", "prometheus_client", "structlog", "httpx", "websockets")


def need_service() -> None:
    """Raise EnvironmentProblem unless the packages of the service are installed."""
    missing = [name for name in _SERVICE if find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(f"the service needs {', '.join(missing)}: pip install 'nearcast[service]'")


DEFAULT_URL = "http://127.0.0.1:8080"
Url = Annotated[str, typer.Option("--url", envvar="NEARCAST_URL", help="The server.")]
Key = Annotated[str | None, typer.Option("--key", envvar="NEARCAST_KEY", help="API key.", show_default=False)]


def connect(url: str, key: str | None) -> Client:
    """A client of the server."""
    need_service()
    from nearcast.client import Client

    return Client(url, key)


def split_words(text: str | None) -> list[str] | None:
    return None if text is None else text.split()
