"""Messages: keywords or text, location, times."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from nearcast.errors import KeywordError, MessageError, NearcastError, RegionError
from nearcast.model.analysis import Analysis
from nearcast.model.message import Message
from nearcast.model.regions import Box


def test_keywords_keep_order_and_repeats() -> None:
    some = Message(1, keywords=["B", "a", "b"], location=(1, 2))
    assert some.keywords == ("b", "a", "b")
    assert some.words() == ("b", "a", "b")
    assert some.location == (1.0, 2.0)
    assert some.box == Box(1, 2, 1, 2)
    assert pickle.loads(pickle.dumps(some)) == some
    assert len({some, Message(1, ["b", "a", "b"], (1, 2))}) == 1


def test_texts_are_split_by_the_analysis() -> None:
    some = Message("m", text="The cats!", location=(0, 0))
    assert some.words() == ("the", "cats")
    assert some.words(Analysis(stem="english", stop_words="english")) == ("cat",)
    assert Message(1, ["cats"], (0, 0)).words(Analysis(stem="english")) == ("cat",)
    assert Message(1, [4, 4], (0, 0)).words(Analysis(stem="english")) == (4, 4)
    assert Message(1, text="", location=(0, 0)).words() == ()


def test_a_message_may_be_about_an_area() -> None:
    assert Message(1, [], Box(0, 0, 2, 2)).box == Box(0, 0, 2, 2)


@pytest.mark.parametrize("wrong", [{}, {"keywords": ["a"], "text": "a"}, {"keywords": [], "text": ""}, {"text": 5}])
def test_exactly_one_of_keywords_and_text_is_needed(wrong: dict[str, Any]) -> None:
    with pytest.raises(MessageError):
        Message(1, location=(0, 0), **wrong)


@pytest.mark.parametrize("id", ["", True, None, 2**63, 0.5])
def test_unusable_ids_are_refused(id: Any) -> None:
    with pytest.raises(MessageError):
        Message(id, [], (0, 0))


@pytest.mark.parametrize("location", [(1,), (1, 2, 3), "1,2", (math.nan, 0), (0, math.inf), (True, 0), ("1", "2")])
def test_unusable_locations_are_refused(location: Any) -> None:
    with pytest.raises(RegionError):
        Message(1, [], location)


def test_a_location_is_required() -> None:
    with pytest.raises(MessageError, match="location"):
        Message(1, [])


def test_the_number_of_words_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_MAX_MESSAGE_KEYWORDS", "2")
    assert Message(1, ["a", "b", "a"], (0, 0))
    with pytest.raises(KeywordError, match="3 distinct"):
        Message(1, ["a", "b", "c"], (0, 0))
    with pytest.raises(KeywordError, match="3 distinct"):
        Message(1, text="a b c", location=(0, 0)).words()


def test_times_become_seconds() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    some = Message(1, [], (0, 0), time=noon, expires=noon.timestamp() + 5)
    assert some.time == 1_704_110_400.0
    assert some.expires == 1_704_110_405.0
    berlin = noon.astimezone(timezone(timedelta(hours=1)))
    assert Message(1, [], (0, 0), time=berlin) == Message(1, [], (0, 0), time=1_704_110_400)
    assert Message(1, [], (0, 0)).time is None


@pytest.mark.parametrize(
    "times",
    [
        {"time": datetime(2024, 1, 1)},
        {"expires": datetime(2024, 1, 1)},
        {"time": 5, "expires": 5},
        {"time": 5, "expires": 4},
        {"time": math.nan},
        {"time": "now"},
        {"expires": True},
    ],
)
def test_unusable_times_are_refused(times: dict[str, Any]) -> None:
    with pytest.raises(MessageError):
        Message(1, [], (0, 0), **times)


@pytest.mark.parametrize("wrong", [{"keywords": "a"}, {"keywords": [""]}, {"location": None}, {"id": None}])
def test_every_refusal_is_a_value_error(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"id": 1, "keywords": [], "location": (0, 0)}
    with pytest.raises(ValueError) as caught:
        Message(**right | wrong)
    assert isinstance(caught.value, NearcastError)


def test_messages_load_without_geometry_or_tokeniser() -> None:
    heavy = "{'numpy', 'shapely', 'regex', 'numba'}"
    code = f"import sys, nearcast.model.message, nearcast.model.subscription as s; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
