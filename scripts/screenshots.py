"""Pictures of the console for the documentation, taken from the running product.

    PYTHONPATH=tests python scripts/screenshots.py docs/images

Needs a browser, the console (`make console`) and the extras `service`, `bench` and `dev`.
"""

from __future__ import annotations

import shutil
import sys
import threading
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from nearcast.client import Client
from nearcast.demo.city import City
from nearcast.demo.run import run_city, subscribe_city
from support.console_page import BROWSER_FLAGS, BROWSERS, Console
from support.http_server import small_server

CITY_VIEW = "-73.95,40.73,10.3"
CLOSE_VIEW = "-73.97,40.75,11.6"


def take(browser: Any, server: Any, folder: Path) -> None:
    """The six main views."""
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
    page.set_default_timeout(120_000)
    console = Console(page, server)

    def shot(name: str) -> None:
        _keep(page, folder / f"{name}.png")
        sys.stdout.write(f"{name}.png\n")

    console.enter(CITY_VIEW)
    console.open("Inbox")
    page.wait_for_selector(".events li >> nth=8")
    page.wait_for_timeout(4000)
    shot("console-city")

    console.open("Subscribe")
    page.fill("input[name=interest]", "(dog OR cat) AND NOT dead")
    page.click("text=Circle")
    console.drag((-73.96, 40.74), (-73.91, 40.74))
    page.wait_for_selector(".trial")
    shot("console-subscribe")

    console.open("Index")
    page.check("input[type=checkbox]")
    page.wait_for_timeout(2000)
    shot("console-index")
    page.uncheck("input[type=checkbox]")

    console.open("Inbox")
    page.mouse.move(160, 240)
    page.wait_for_timeout(800)
    page.mouse.click(160, 240)
    page.wait_for_selector(".recipients button")
    page.click(".recipients button >> nth=0")
    page.wait_for_selector(".why")
    shot("console-why")

    console.open("System")
    page.click("header >> text=Dark")
    page.wait_for_timeout(8000)
    shot("console-system")
    page.close()

    phone = browser.new_page(viewport={"width": 390, "height": 780}, color_scheme="dark")
    phone.set_default_timeout(120_000)
    small = Console(phone, server).enter(CLOSE_VIEW)
    small.open("Inbox")
    phone.wait_for_selector(".events li >> nth=3")
    phone.wait_for_timeout(3000)
    _keep(phone, folder / "console-phone.png")
    sys.stdout.write("console-phone.png\n")
    phone.close()


def _keep(page: Any, path: Path) -> None:
    """In 256 colours: a quarter of the size, and nobody sees it."""
    with Image.open(BytesIO(page.screenshot())) as taken:
        taken.convert("RGB").quantize(256).save(path, optimize=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    browser_path = next(filter(None, map(shutil.which, BROWSERS)))
    with (
        TemporaryDirectory() as place,
        small_server(Path(place)) as server,
        Client(server.url, server.key, retries=10) as client,
    ):
        city, is_over = City(), threading.Event()
        subscribe_city(client, city)
        life = threading.Thread(target=run_city, args=(client, city, 10.0, is_over.is_set))
        life.start()
        try:
            with sync_playwright() as driver:
                take(driver.chromium.launch(executable_path=browser_path, args=[*BROWSER_FLAGS]), server, folder)
        finally:
            is_over.set()
            life.join()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
