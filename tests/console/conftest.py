"""A browser on a real server. Skipped where there is no browser, or where the console was not built (`make console`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import resources
from typing import Any

import httpx
import pytest

from support.console_page import BROWSER_FLAGS, BROWSERS, Console
from support.http_server import SmallServer, small_server


# Not longer than these tests: Playwright's event loop runs in this thread, and others need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser here: looked for {', '.join(BROWSERS)}")
    if not resources.files("nearcast.service").joinpath("static", "index.html").is_file():
        pytest.skip("the console is not built: make console")
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=[*BROWSER_FLAGS])
        yield started
        started.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallServer]:
    with small_server(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture
def api(server: SmallServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1", headers={"authorization": f"Bearer {server.key}"}, timeout=60) as client:
        yield client


@pytest.fixture
def console(browser: Any, server: SmallServer) -> Iterator[Console]:
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
    page.set_default_timeout(60_000)
    opened = Console(page, server)
    yield opened
    page.close()
    assert opened.complaints == []
    assert {url for url in opened.asked if not url.startswith((server.url, "blob:", "data:"))} == set()
