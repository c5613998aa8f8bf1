"""Disjunctive normal form: equal to the expression, minimal, bounded."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import InterestError
from nearcast.model.dnf import Clause
from nearcast.model.interest import parse_interest

WORDS = ["a", "b", "c", "d", "e"]
ASSIGNMENTS = [frozenset(subset) for n in range(6) for subset in combinations(WORDS, n)]

expressions = st.recursive(
    st.sampled_from([*WORDS, '"a b"', '"c d e"']),
    lambda inner: st.one_of(
        inner.map("NOT {}".format),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} AND {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} {pair[1]})"),
        inner.map("!({})".format),
    ),
    max_leaves=12,
)


def evaluate(text: str, words: frozenset[str]) -> bool:
    """By Python's own parser: neither our steps nor our clauses."""
    python = text.replace('"a b"', "(a and b)").replace('"c d e"', "(c and d and e)")
    python = python.replace("AND", "and").replace("OR", "or").replace("NOT", "not").replace("!", " not ")
    tokens = python.replace("(", " ( ").replace(")", " ) ").split()
    joined: list[str] = []
    for token in tokens:
        starts_operand = token in ("(", "not") or token in WORDS
        if starts_operand and joined and (joined[-1] == ")" or joined[-1] in WORDS):
            joined.append("and")
        joined.append(token)
    return bool(eval(" ".join(joined), {word: word in words for word in WORDS}))


@settings(max_examples=300)
@given(expressions)
def test_clauses_mean_what_the_expression_means(text: str) -> None:
    interest = parse_interest(text)
    expected = [evaluate(text, words) for words in ASSIGNMENTS]
    assert [interest.holds(words) for words in ASSIGNMENTS] == expected
    try:
        clauses = interest.clauses()
    except InterestError:
        assert not any(expected)
        return
    assert [any(clause.holds(words) for clause in clauses) for words in ASSIGNMENTS] == expected


@given(expressions)
def test_no_clause_is_contradictory_or_superfluous_and_the_order_is_fixed(text: str) -> None:
    try:
        clauses = parse_interest(text).clauses()
    except InterestError:
        return
    assert not any(clause.required & clause.forbidden for clause in clauses)
    for one in clauses:
        assert not any(
            other is not one and other.required <= one.required and other.forbidden <= one.forbidden for other in clauses
        )
    assert clauses == parse_interest(text + " ").clauses()


def test_an_interest_that_can_never_match_is_refused() -> None:
    with pytest.raises(InterestError, match="can never match"):
        parse_interest("a AND NOT a").clauses()


def test_an_explosion_is_refused_before_it_happens() -> None:
    text = " AND ".join(f"(a{i} OR b{i})" for i in range(500))
    with pytest.raises(InterestError, match="256 alternatives"):
        parse_interest(text).clauses()


def test_repeating_a_long_alternative_adds_nothing() -> None:
    one = "(" + " OR ".join(f"w{i}" for i in range(256)) + ")"
    assert len(parse_interest(" AND ".join([one] * 7)).clauses()) == 256


def test_the_limit_of_clauses_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    interest = parse_interest("a OR b OR c")
    assert len(interest.clauses()) == 3
    monkeypatch.setenv("NEARCAST_MAX_INTEREST_CLAUSES", "2")
    with pytest.raises(InterestError, match="2 alternatives"):
        interest.clauses()


def test_a_clause_has_a_limited_number_of_words() -> None:
    assert len(parse_interest(" ".join(f"w{i}" for i in range(256))).clauses()[0].required) == 256
    with pytest.raises(InterestError, match="257 words"):
        parse_interest(" ".join(f"w{i}" for i in range(257))).clauses()


def test_clauses_work_on_integer_keywords_too() -> None:
    assert Clause(frozenset({1, 2}), frozenset({3})).holds([2, 1, 9])
    assert not Clause(frozenset({1}), frozenset({3})).holds({1, 3})
