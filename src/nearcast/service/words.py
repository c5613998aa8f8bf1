"""Tenant and tags as required keywords of their own, so that matching itself keeps them apart."""

from __future__ import annotations

from collections.abc import Iterable

from nearcast.errors import KeywordError

# Private-use characters: no normalisation changes them, and no text analysis gives them.
_TENANT, _TAG = "\ue000", "\ue001"


def tenant_word(tenant: str) -> str:
    """The word that every message and subscription of a tenant has, and nobody else's."""
    return _TENANT + tenant


def tag_words(tags: Iterable[str]) -> list[str]:
    return [_TAG + tag for tag in tags]


def check_words(words: Iterable[str]) -> None:
    """Raise KeywordError for words that would pass as a tenant or a tag."""
    for word in words:
        if _TENANT in word or _TAG in word:
            raise KeywordError(f"{word!r} holds the private-use character U+E000 or U+E001; leave it out")


def without_reserved(words: Iterable[str]) -> list[str]:
    return [word for word in words if not word.startswith((_TENANT, _TAG))]


def in_plain_words(text: str) -> str:
    """A sentence about words, as Python shows them, with tenant and tags called by their names."""
    return text.replace(repr(_TENANT)[:-1], "tenant '").replace(repr(_TAG)[:-1], "tag '")
