"""One server for all tests that share one; those that kill it have their own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.http_server import SmallServer, small_server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallServer]:
    settings = {
        "NEARCAST_SERVICE_BODY_BYTES": "200000",
        "NEARCAST_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "NEARCAST_WEBHOOK_HTTP": "1",
    }
    with small_server(tmp_path_factory.mktemp("shared"), **settings) as running:
        yield running


@pytest.fixture
def api(shared_server: SmallServer) -> Iterator[httpx.Client]:
    """With a key of all roles."""
    headers = {"authorization": f"Bearer {shared_server.key}"}
    with httpx.Client(base_url=shared_server.url, headers=headers, timeout=120) as client:
        yield client
