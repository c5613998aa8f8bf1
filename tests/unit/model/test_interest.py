"""Interests: the grammar, its errors with their positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InterestError, NearcastError
from nearcast.model.analysis import Analysis
from nearcast.model.interest import Interest, parse_interest


def clauses_of(text: str) -> set[tuple[frozenset[object], frozenset[object]]]:
    return {(frozenset(clause.required), frozenset(clause.forbidden)) for clause in parse_interest(text).clauses()}


def alternatives(*pairs: tuple[str, str]) -> set[tuple[frozenset[object], frozenset[object]]]:
    return {(frozenset(required.split()), frozenset(forbidden.split())) for required, forbidden in pairs}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ipad", [("ipad", "")]),
        ("(ipad OR iphone) AND sale AND NOT refurbished", [("ipad sale", "refurbished"), ("iphone sale", "refurbished")]),
        ("a b", [("a b", "")]),
        ("a OR b AND c", [("a", ""), ("b c", "")]),
        ("a or b c", [("a", ""), ("b c", "")]),
        ("a && b || !c", [("a b", ""), ("", "c")]),
        ("a&&b||c", [("a b", ""), ("c", "")]),
        ("NOT a b", [("b", "a")]),
        ("not not a", [("a", "")]),
        ("NOT (a OR b)", [("", "a b")]),
        ("NOT (a AND b)", [("", "a"), ("", "b")]),
        ('"Red car" and x', [("red car x", "")]),
        ('NOT "red car"', [("", "red"), ("", "car")]),
        ('"and"', [("and", "")]),
        ("#Sale c++ at&t yahoo! @bob", [("#sale c++ at&t yahoo! @bob", "")]),
        ("a(b)c", [("a b c", "")]),
        ("((a))", [("a", "")]),
        ("a OR a AND b", [("a", "")]),
        ("(a AND NOT a) OR b", [("b", "")]),
    ],
)
def test_interests_become_alternatives(text: str, expected: list[tuple[str, str]]) -> None:
    assert clauses_of(text) == alternatives(*expected)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("(a", 0, "never closed"),
        ("a)", 1, "closes nothing"),
        ("()", 1, "too early"),
        ("(a AND )", 7, "too early"),
        ("AND a", 0, "nothing on its left"),
        ("a AND OR b", 6, "nothing on its left"),
        ("a OR", 2, "nothing on its right"),
        ("a NOT", 2, "nothing on its right"),
        ("a (", 2, "nothing on its right"),
        ('a "b', 2, "quote is never closed"),
        ('a ""', 3, "no words"),
        ('a "..."', 3, "no words"),
        ("a " + "x" * 300, 2, "longer than"),
    ],
)
def test_errors_name_the_position_and_the_expectation(text: str, position: int, reason: str) -> None:
    with pytest.raises(InterestError, match=reason) as caught:
        parse_interest(text)
    assert caught.value.position == position
    assert "expected" in str(caught.value)


@pytest.mark.parametrize("text", ["(" * 5_000 + "a" + ")" * 5_000, "!" * 5_000 + "a", "(!" * 5_000 + "a"])
def test_deep_nesting_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(InterestError, match="nested deeper"):
        parse_interest(text)


def test_deep_nesting_within_a_raised_limit_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_MAX_INTEREST_DEPTH", "9000")
    deep = parse_interest("(" * 4_000 + "!" * 4_000 + "a" + ")" * 4_000)
    assert len(deep.clauses()) == 1
    assert deep.holds({"a"})


def test_a_long_flat_interest_is_not_deep() -> None:
    assert len(parse_interest(" OR ".join(f"NOT (a{i})" for i in range(200))).clauses()) == 200


def test_too_long_or_not_a_text_is_refused() -> None:
    with pytest.raises(InterestError, match="20000"):
        parse_interest("a " * 20_000)
    with pytest.raises(InterestError, match="expected a str"):
        parse_interest(5)  # type: ignore[arg-type]


def test_an_interest_is_a_value_and_keeps_its_text() -> None:
    one = parse_interest("a  OR B")
    assert str(one) == one.text == "a  OR B"
    assert one == parse_interest("a  OR B")
    assert len({one, parse_interest("a  OR B")}) == 1


def test_the_analysis_of_the_engine_applies() -> None:
    some = parse_interest('running OR "the cats"')
    analysis = Analysis(stem="english", stop_words="english")
    assert {clause.required for clause in some.clauses(analysis)} == {frozenset({"run"}), frozenset({"cat"})}
    assert some.holds({"run"}, analysis)
    with pytest.raises(InterestError, match="stop words") as caught:
        parse_interest('a "the"').clauses(analysis)
    assert caught.value.position == 3


@given(st.text(alphabet='ab AND OR NOT()"!&|#+', max_size=30))
def test_any_text_parses_or_is_refused_properly(text: str) -> None:
    try:
        parsed = parse_interest(text)
        parsed.clauses()
    except NearcastError:
        return
    assert isinstance(parsed, Interest)
