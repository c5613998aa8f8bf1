"""The map console in a real browser against a real server: what people do with it, and what they see."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.console_page import Console
from support.http_server import SmallServer

pytestmark = pytest.mark.xdist_group("console")


def circle(lon: float, lat: float, radius: float) -> dict[str, Any]:
    return {"type": "Circle", "coordinates": [lon, lat], "radius": radius}


def subscribe(api: httpx.Client, **given: Any) -> None:
    api.put(f"/subscriptions/{given['id']}", json=given).raise_for_status()


def publish(api: httpx.Client, text: str, lon: float, lat: float) -> str:
    at = {"type": "Point", "coordinates": [lon, lat]}
    return str(api.post("/messages", json={"text": text, "location": at}).raise_for_status().json()["id"])


def test_a_wrong_key_is_told_and_a_right_one_enters(console: Console, server: SmallServer) -> None:
    page = console.page
    page.goto(server.url)
    page.fill("input[name=key]", "nc_wrong")
    page.click("text=Enter")
    assert "key" in page.text_content("[role=alert]")
    page.fill("input[name=key]", server.key)
    page.click("text=Enter")
    page.wait_for_selector(".connection.connected")
    kept = page.evaluate("() => [sessionStorage.getItem('nearcast-key'), JSON.stringify(localStorage), location.hash]")
    assert kept[0] == server.key
    assert server.key not in kept[1] + kept[2]


def test_a_region_is_drawn_tried_and_subscribed_to_and_a_message_arrives(console: Console, api: httpx.Client) -> None:
    publish(api, "jazz concert tonight", 10.0, 10.0)
    publish(api, "karaoke tonight", 10.0, 10.0)
    page = console.enter("10,10,9").page
    page.fill("input[name=interest]", "(jazz OR blues) AND")
    page.click("text=Circle")
    console.drag((10.0, 10.0), (10.2, 10.0))
    assert "position" in page.text_content(".problem").lower() or "expected" in page.text_content(".problem").lower()
    page.fill("input[name=interest]", "(jazz OR blues) AND NOT karaoke")
    page.wait_for_selector(".trial")
    assert "1 of the last 2 messages" in page.text_content(".trial")
    page.fill("input[name=name]", "drawn")
    page.click("button.main")
    page.wait_for_selector(".details >> text=drawn")
    console.open("Publish")
    page.fill("textarea[name=text]", "Blues in the park")
    page.click("text=Place")
    page.mouse.click(*console.at(10.1, 10.05))
    page.click("button.main")
    console.open("Inbox")
    row = page.wait_for_selector(".events >> text=Blues in the park")
    assert "matched" in row.evaluate("(row) => row.closest('li').textContent")
    kept = api.get("/subscriptions/drawn").json()
    assert kept["interest"] == "(jazz OR blues) AND NOT karaoke"
    assert kept["region"]["radius"] == pytest.approx(21_900, rel=0.05)
    # Who got it, and why.
    page.mouse.move(*console.at(10.1, 10.0))
    page.click(".events >> text=Blues in the park")
    page.wait_for_selector(".details >> text=1 got it")
    page.click(".recipients >> text=drawn")
    page.wait_for_selector(".why >> text=Why:")


def test_a_subscriber_is_dragged_and_messages_enter_and_leave(console: Console, api: httpx.Client) -> None:
    subscribe(api, id="car", kind="moving", keywords=["market"], region=circle(30.0, 0.0, 5_000))
    publish(api, "flea market", 30.3, 0.0)
    page = console.enter("30.1,0,9").page
    console.open("Inbox")
    # Only what is drawn can be dragged.
    console.pick(30.0, 0.0, ".details >> text=car")
    page.click(".details .close")
    console.drag((30.0, 0.0), (30.3, 0.0))
    page.wait_for_selector(".events >> text=entered")
    console.pick(30.3, 0.0, ".details >> text=car")
    page.click(".details .close")
    console.drag((30.3, 0.0), (29.9, 0.0))
    page.wait_for_selector(".events >> text=left")
    for _ in range(50):
        reached = api.get("/subscriptions/car").json()["region"]["coordinates"][0]
        if reached == pytest.approx(29.9, abs=0.02):
            break
        page.wait_for_timeout(100)
    assert reached == pytest.approx(29.9, abs=0.02)


def test_why_not_is_told_for_a_message_and_a_subscriber(console: Console, api: httpx.Client) -> None:
    subscribe(api, id="far", kind="boolean", keywords=["opera"], region=circle(50.0, 20.0, 3_000))
    console.enter("50,20,9")
    publish(api, "opera in the next town", 50.3, 20.0)
    console.pick(50.3, 20.0, ".details >> text=Nobody got it")
    console.pick(50.0, 20.0, ".why >> text=Why not")


def test_a_subscription_is_paused_and_edited_and_keeps_what_the_form_does_not_show(console: Console, api: httpx.Client) -> None:
    subscribe(api, id="night", kind="boolean", keywords=["owl"], region=circle(-60.0, 5.0, 9_000), metadata={"note": "mine"})
    page = console.enter("-60,5,9").page
    console.pick(-60.0, 5.0, ".details >> text=night")
    page.click(".details button:text-is('Pause')")
    page.wait_for_selector(".details button:text-is('Resume')")
    assert api.get("/subscriptions/night").json()["paused"]
    page.click(".details >> text=Edit")
    page.fill("input[name=interest]", "owl OR bat")
    page.click("button.main")
    page.wait_for_selector(".details >> text=owl OR bat")
    kept = api.get("/subscriptions/night").json()
    assert (kept["interest"], kept["metadata"], kept["paused"]) == ("owl OR bat", {"note": "mine"}, True)
    page.click(".details button:text-is('Resume')")
    page.wait_for_selector(".details button:text-is('Pause')")
    assert "paused" not in api.get("/subscriptions/night").json()


def test_ranked_lists_cells_and_charts_are_shown(console: Console, api: httpx.Client) -> None:
    at = {"type": "Point", "coordinates": [70.0, 5.0]}
    subscribe(api, id="desk", kind="ranked", keywords=["storm"], location=at, k=3)
    for number in range(4):
        publish(api, f"storm number {number}", 70.0 + 0.1 * number, 5.0)
    page = console.enter("70,5,9").page
    console.pick(70.0, 5.0, ".top li >> nth=2")
    assert page.locator(".top li").count() == 3
    console.open("Index")
    page.check("input[type=checkbox]")
    page.wait_for_selector("text=frequency_grid")
    page.click(".shapes >> text=Place")
    page.mouse.click(*console.at(70.2, 5.0))
    page.wait_for_selector(".path li, .panel >> text=No cell lies over this point")
    console.open("System")
    page.wait_for_selector(".chart canvas >> nth=3")
    publish(api, "one more storm", 70.0, 5.0)
    for _ in range(50):
        shown = page.text_content(".chart:has-text('Memory') .key b")
        if shown not in ("–", "0"):
            break
        page.wait_for_timeout(200)
    assert shown not in ("–", "0")


def test_what_came_while_the_server_was_away_is_there_afterwards(
    console: Console, server: SmallServer, api: httpx.Client
) -> None:
    subscribe(api, id="steady", kind="boolean", keywords=["bread"], region=circle(90.0, 0.0, 9_000))
    page = console.enter("90,0,9").page
    console.open("Inbox")
    publish(api, "fresh bread", 90.0, 0.0)
    page.wait_for_selector(".events >> text=fresh bread")
    server.kill()
    page.wait_for_selector(".connection.connecting")
    server.start()
    publish(api, "more bread", 90.0, 0.0)
    page.wait_for_selector(".connection.connected")
    page.wait_for_selector(".events >> text=more bread")
    assert page.locator(".events >> text=fresh bread").count() == 1
    # The browser tells of every request that nobody answered.
    console.complaints.clear()


def test_dark_and_on_a_phone_everything_can_be_reached(console: Console, api: httpx.Client) -> None:
    subscribe(api, id="small", kind="boolean", keywords=["tea"], region=circle(-30.0, 0.0, 9_000))
    console.page.set_viewport_size({"width": 390, "height": 780})
    page = console.enter("-30,0,8").page
    page.click("header >> text=Dark")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    for panel in ("Publish", "Inbox", "Index", "System", "Subscribe"):
        console.open(panel)
        box = page.locator(".panel").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
