"""Says which extra to install when a verb needs packages that are not there."""

from __future__ import annotations

from importlib.util import find_spec

from nearcast.errors import EnvironmentProblem

_SERVICE = ("litestar", "msgspec", "uvicorn", "pyroaring", "prometheus_client", "structlog", "httpx", "websockets")


def need_service() -> None:
    """Raise EnvironmentProblem unless the packages of the service are there."""
    missing = [name for name in _SERVICE if find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(f"the service needs {', '.join(missing)}: pip install 'nearcast[service]'")
