"""Five thousand subscriptions and ten thousand messages on the map: it loads, it answers, and how fast is told."""

from __future__ import annotations

import json
import time

import httpx
import numpy as np
import pytest

from nearcast.testing.budget import current_budget
from support.console_page import Console

pytestmark = [
    pytest.mark.xdist_group("console"),
    pytest.mark.skipif(not current_budget().is_soak, reason="takes long; NEARCAST_SOAK=1 asks for it"),
]
N_SUBSCRIPTIONS, N_MESSAGES = 5_000, 10_000
N_FRAMES = 30


def test_thousands_stay_usable(console: Console, api: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    places = np.random.default_rng(5).normal([-96.0, 38.0], [10.0, 4.0], (N_SUBSCRIPTIONS + N_MESSAGES, 2)).round(5).tolist()
    lines = [
        json.dumps(
            {"id": f"many-{at}", "keywords": ["noise"], "region": {"type": "Circle", "coordinates": place, "radius": 20_000}}
        )
        for at, place in enumerate(places[:N_SUBSCRIPTIONS])
    ]
    api.post("/subscriptions/bulk", content="\n".join(lines)).raise_for_status()
    started = time.perf_counter()
    page = console.enter("-96,38,4").page
    usable_s = time.perf_counter() - started
    for first in range(N_SUBSCRIPTIONS, len(places), 1000):
        sent = [
            {"text": "noise", "location": {"type": "Point", "coordinates": place}} for place in places[first : first + 1000]
        ]
        api.post("/messages/bulk", content="\n".join(map(json.dumps, sent))).raise_for_status()
        page.wait_for_timeout(1200)
    page.wait_for_selector(f".counts >> text={N_MESSAGES:,}")
    console.settle()
    frame_ms = page.evaluate(
        """async (n) => {
            const map = window.nearcastMap, times = [];
            for (let at = 0; at < n; at += 1) {
                const began = performance.now();
                map.panBy([at % 2 ? 20 : -20, 0], { animate: false });
                await new Promise((done) => map.once('render', done));
                times.push(performance.now() - began);
            }
            return times.sort((a, b) => a - b);
        }""",
        N_FRAMES,
    )
    click_began = time.perf_counter()
    console.open("System")
    page.wait_for_selector(".chart canvas")
    click_s = time.perf_counter() - click_began
    with capsys.disabled():
        print(  # noqa: T201  # what a person wants to know of this run
            f"\n{N_SUBSCRIPTIONS:,} subscriptions: usable after {usable_s:.1f} s; with {N_MESSAGES:,} messages, drawn by the "
            f"processor, a frame takes {frame_ms[len(frame_ms) // 2]:.0f} ms (median), a panel opens in {click_s:.2f} s"
        )
    assert len(frame_ms) == N_FRAMES
