"""The map console in a browser: what tests and screenshots do with it."""

from __future__ import annotations

from typing import Any

from support.http_server import SmallServer

# Without a graphics card WebGL is drawn by the processor.
BROWSER_FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
_TRIES = 100
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Console:
    """A page of the console; its errors (`complaints`) and the addresses it requests (`asked`) are recorded."""

    def __init__(self, page: Any, server: SmallServer) -> None:
        self.page, self.server = page, server
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        page.on("console", lambda message: self._note(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.add(request.url))

    def _note(self, complaint: str) -> None:
        # A browser reports every refused request; a wrong key or a half-typed interest is shown to the user as well.
        if not any(expected in complaint for expected in ("status of 401", "status of 422")):
            self.complaints.append(complaint)

    def enter(self, at: str = "0,0,9") -> Console:
        """Open the page with the key in the address, and the map at a location."""
        self.page.goto(f"{self.server.url}/#key={self.server.key}&at={at}")
        self.page.wait_for_selector(".connection.connected")
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until the map takes clicks; without a graphics card its finest outlines are drawn much later."""
        while not self.page.evaluate("() => Boolean(window.nearcastMap && window.nearcastMap.getLayer('places'))"):
            self.page.wait_for_timeout(50)

    def pick(self, lon: float, lat: float, shown: str) -> None:
        """Click a location until the element `shown` appears."""
        for _ in range(_TRIES):
            self.page.mouse.click(*self.at(lon, lat))
            if self.page.locator(shown).count():
                return
            self.page.wait_for_timeout(300)
        self.page.wait_for_selector(shown)

    def at(self, lon: float, lat: float) -> tuple[float, float]:
        """The position of a location on the screen."""
        left, top, x, y = self.page.evaluate(
            "([lon, lat]) => { const map = window.nearcastMap; const box = map.getCanvas().getBoundingClientRect();"
            " const at = map.project([lon, lat]); return [box.left, box.top, at.x, at.y]; }",
            [lon, lat],
        )
        return left + x, top + y

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag from one location to another on the map."""
        self.page.mouse.move(*self.at(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.at(*end), steps=6)
        self.page.mouse.up()

    def open(self, panel: str) -> None:
        self.page.click(f"nav >> text={panel}")
