"""Keywords: one spelling, and everything that is none."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast.errors import KeywordError
from nearcast.model.normalise import fold, normalise, read_keywords


@given(st.text())
@example("\u017ft")
@example("ᾈ")
@example("İ")
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=20))
def test_the_ascii_shortcut_changes_nothing(text: str) -> None:
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if text.isascii():
        assert fold(text) == once
    assert unicodedata.is_normalized("NFKC", fold(text))


@pytest.mark.parametrize(
    ("word", "expected"),
    [("IPad", "ipad"), ("Straße", "strasse"), ("ﬁne", "fine"), ("\uff21\uff22\uff23", "abc"), ("É", "é"), (" a b ", " a b ")],
)
def test_keywords_are_folded_and_never_split(word: str, expected: str) -> None:
    assert normalise(word) == expected


@pytest.mark.parametrize("word", ["", 5, None, b"word", "x" * 257, "é" * 129, "x" * 10_000, "\ud800", "é\ud800"])
def test_unusable_keywords_are_refused(word: Any) -> None:
    with pytest.raises(KeywordError):
        normalise(word)


def test_the_longest_keyword_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert normalise("x" * 256)
    monkeypatch.setenv("NEARCAST_MAX_KEYWORD_BYTES", "3")
    with pytest.raises(KeywordError, match="longer than 3 bytes"):
        normalise("four")


def test_keyword_lists_keep_order_and_repeats() -> None:
    assert read_keywords(["B", "a", "b"], "it") == ("b", "a", "b")
    assert read_keywords(np.array([3, 1, 3], dtype=np.int32), "it") == (3, 1, 3)
    assert read_keywords([], "it") == ()


@pytest.mark.parametrize("keywords", ["plain", b"plain", 5, ["a", 1], [1, "a"], [True], [1.5], [None], [2**31], [-(2**31) - 1]])
def test_lists_of_anything_else_are_refused(keywords: Any) -> None:
    with pytest.raises(KeywordError):
        read_keywords(keywords, "it")


def test_a_plain_text_is_told_to_become_a_list() -> None:
    with pytest.raises(KeywordError, match=r"use \['pizza'\]"):
        read_keywords("pizza", "it")
