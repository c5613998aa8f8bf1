"""What engines give back reads well and compares by value."""

from __future__ import annotations

import pytest

from nearcast.model.delivery import Change, Delivery, Explanation, MatchReport, RankChange


def test_results_are_values() -> None:
    assert len({Delivery(1, "m"), Delivery(1, "m"), Delivery(2, "m")}) == 2
    assert Change(1, 2, -1) == Change(1, 2, -1)
    assert RankChange(0, 1, 2, 1, 0.5) != RankChange(0, 1, 2, -1, 0.5)
    with pytest.raises(AttributeError):
        Delivery(1, 2).message_id = 3  # type: ignore[misc]


def test_a_report_shows_the_work_and_the_first_rejections() -> None:
    report = MatchReport(messages=3, matches=2, candidates=9, nodes_visited=4, rejected=[(i, "bad") for i in range(7)])
    text = str(report)
    assert "3 messages, 2 matches" in text
    assert "9 candidates" in text
    assert "7 rejected" in text
    assert "row 0: bad" in text
    assert "2 more" in text
    assert MatchReport().rejected is not MatchReport().rejected


def test_an_explanation_reads_as_a_sentence_per_reason() -> None:
    text = str(Explanation(False, ("the word 'sale' is missing",), ("root", "leaf 3")))
    assert text == "not delivered\n  - the word 'sale' is missing\n  path: root > leaf 3"
    assert str(Explanation(True)) == "delivered"
