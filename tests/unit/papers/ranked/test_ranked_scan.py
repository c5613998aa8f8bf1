"""An index without lists says so."""

from __future__ import annotations

import nearcast as nc


def test_it_has_nothing_to_tell_and_nothing_to_save() -> None:
    ranker = nc.Ranker(nc.CountWindow(3), "ranked_scan")
    ranker.subscribe([nc.RankedSubscription(1, ["a"], (0, 0))])
    assert ranker.explain(nc.Message(1, ["a"], (0, 0)), 1).path == ("every subscription is scored",)
    assert ranker.stats()["index_bytes"] == 0
