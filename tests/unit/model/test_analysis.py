"""Texts become words, in every script."""

from __future__ import annotations

import pickle
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import EnvironmentProblem, KeywordError, MessageError, NearcastError
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.normalise import normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("... !!", []),
        ("Hello, World! hello", ["hello", "world", "hello"]),
        ("don\u2019t rock'n'roll 'tis O'", ["don't", "rock'n'roll", "tis", "o"]),
        ("#Coffee_Shop @Bob ##x", ["#coffee_shop", "coffee_shop", "@bob", "bob", "#x", "x"]),
        ("\uff03Tag", ["#tag", "tag"]),
        ("bob@example.com", ["bob", "example", "com"]),
        ("C++ c# F#, notepad++ a+b", ["c++", "c#", "f#", "notepad++", "a", "b"]),
        ("3.5 1,000 3.5mm end. 7.", ["3.5", "1,000", "3.5mm", "end", "7"]),
        ("สวัสดีครับ हिन्दी भाषा", ["สวัสดีครับ", "हिन्दी", "भाषा"]),
        ("東京都 カ", ["東京", "京都", "カ"]),
        ("iPhone東京ラーメン", ["iphone", "東京", "京ラ", "ラー", "ーメ", "メン"]),
        ("#東京都", ["#東京都", "東京", "京都"]),
        ("서울 한국어", ["서울", "한국어"]),
        ("👨‍👩‍👧 🇩🇪🇫🇷 👍🏽 ❤️ 1️⃣", ["👨‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽", "❤️", "1️⃣"]),
        ("ok👍ok", ["ok", "👍", "ok"]),
        ("Straße ﬁne", ["strasse", "fine"]),
        ("re-use e-mail", ["re", "use", "e", "mail"]),
    ],
)
def test_texts_become_words(text: str, expected: list[str]) -> None:
    assert DEFAULT_ANALYSIS.words(text) == expected


@given(st.text(max_size=60))
def test_every_word_of_a_text_is_a_keyword_in_its_final_spelling(text: str) -> None:
    for word in DEFAULT_ANALYSIS.words(text):
        assert normalise(word) == word


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_text_has_the_words_of_its_lines(first: str, second: str) -> None:
    both = DEFAULT_ANALYSIS.words(first + "\n" + second)
    assert both == DEFAULT_ANALYSIS.words(first) + DEFAULT_ANALYSIS.words(second)


def test_stop_words_are_dropped_from_texts_but_not_from_keywords() -> None:
    english = Analysis(stop_words="english")
    assert english.words("The cat and the hat don't") == ["cat", "hat"]
    assert english.keyword("The") == "the"
    assert Analysis(stop_words=["CAT"]).words("the Cat") == ["the"]
    with pytest.raises(NearcastError, match="klingon"):
        Analysis(stop_words="klingon")
    with pytest.raises(KeywordError):
        Analysis(stop_words=[""])


def test_stemming_brings_texts_and_keywords_together() -> None:
    stemmed = Analysis(stem="english")
    assert stemmed.words("Running runs") == ["run", "run"]
    assert stemmed.keyword("RUNNING") == "run"
    assert stemmed.words("#cats c++") == [stemmed.keyword("#cats"), "cat", stemmed.keyword("c++")]
    with pytest.raises(NearcastError, match="english"):
        Analysis(stem="klingon")


def test_stemming_works_in_other_threads() -> None:
    keywords: list[str] = []
    thread = threading.Thread(target=lambda: keywords.append(Analysis(stem="english").keyword("cats")))
    thread.start()
    thread.join()
    assert keywords == ["cat"]


def test_without_the_package_stemming_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(EnvironmentProblem, match="pip install PyStemmer"):
        Analysis(stem="finnish")


@pytest.mark.parametrize(
    "some", [Analysis(), Analysis(stem="german"), Analysis(stop_words="english"), Analysis("english", ["x"])]
)
def test_an_analysis_is_a_value_that_can_be_saved(some: Analysis) -> None:
    assert Analysis.from_dict(some.to_dict()) == some
    assert pickle.loads(pickle.dumps(some)) == some
    assert hash(Analysis.from_dict(some.to_dict())) == hash(some)


def test_an_unknown_field_of_a_saved_analysis_is_refused() -> None:
    with pytest.raises(NearcastError, match="colour"):
        Analysis.from_dict({"colour": 1})


def test_long_texts_are_refused_and_long_words_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DEFAULT_ANALYSIS.words("a " + "x" * 300 + " b") == ["a", "b"]
    monkeypatch.setenv("NEARCAST_MAX_TEXT_CHARACTERS", "10")
    with pytest.raises(MessageError, match="MAX_TEXT_CHARACTERS"):
        DEFAULT_ANALYSIS.words("x" * 11)
    with pytest.raises(MessageError, match="expected a str"):
        DEFAULT_ANALYSIS.words(5)  # type: ignore[arg-type]
