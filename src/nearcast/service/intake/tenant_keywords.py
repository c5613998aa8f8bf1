"""Tenant and tags as required keywords of their own, so that matching itself keeps them apart."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import lru_cache

from nearcast.errors import KeywordError

# Private-use characters: no normalisation changes them, and no text analysis gives them.
_TENANT, _TAG = "\ue000", "\ue001"
_CODED = re.compile(r"'\\ue00([01])([a-z2-7]*)'")


def tenant_word(tenant: str) -> str:
    """The word that every message and subscription of a tenant has, and nobody else's."""
    return _TENANT + _coded(tenant)


def tag_words(tags: Iterable[str]) -> list[str]:
    return [_TAG + _coded(tag) for tag in tags]


@lru_cache(10_000)
def _coded(name: str) -> str:
    """Another for every name, also when letters differ only in case: words are folded, names are not."""
    # Base 32 and not hexadecimal: the longest names must not be longer than a keyword may be.
    return base64.b32encode(name.encode()).decode().rstrip("=").lower()


def _name(coded: str) -> str:
    return base64.b32decode(coded.upper() + "=" * (-len(coded) % 8)).decode()


def check_words(words: Iterable[str]) -> None:
    """Raise KeywordError for words that would pass as a tenant or a tag."""
    for word in words:
        if _TENANT in word or _TAG in word:
            raise KeywordError(f"{word!r} holds the private-use character U+E000 or U+E001; leave it out")


def without_reserved(words: Iterable[str]) -> list[str]:
    return [word for word in words if not word.startswith((_TENANT, _TAG))]


def in_plain_words(text: str) -> str:
    """A sentence about words, as Python shows them, with tenant and tags called by their names."""
    return _CODED.sub(lambda found: f"{('tenant', 'tag')[int(found[1])]} {_name(found[2])!r}", text)
