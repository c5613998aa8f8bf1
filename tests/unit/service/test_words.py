"""Tenants and tags keep apart by words that no folding makes alike."""

from __future__ import annotations

import pytest

from nearcast.model.normalise import normalise
from nearcast.service.intake.tenant_keywords import in_plain_words, tag_words, tenant_word, without_reserved


def test_names_that_differ_in_case_have_words_that_differ_when_folded() -> None:
    names = ["acme", "Acme", "ACME", "acme.", "A", "a", "", "aa"]
    assert len({normalise(tenant_word(name)) for name in names}) == len(names)
    assert len({normalise(word) for word in tag_words(names)}) == len(names)
    assert {normalise(tenant_word(name)) for name in names}.isdisjoint(tag_words(names))
    assert without_reserved([tenant_word("Acme"), "oak", *tag_words(["A"])]) == ["oak"]


@pytest.mark.parametrize("name", ["Acme", "a.b:c@d-e", "Z" * 128])
def test_a_reason_calls_tenant_and_tag_by_their_names(name: str) -> None:
    # The longest name gives a word that engines take.
    word, (tag,) = normalise(tenant_word(name)), tag_words([name])
    told = in_plain_words(f"lacks the keyword {word!r} and {tag!r}; has 'oak'")
    assert told == f"lacks the keyword tenant {name!r} and tag {name!r}; has 'oak'"
