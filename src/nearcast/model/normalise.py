"""The one spelling of a keyword: NFKC and casefold, nothing else; and the checks every keyword passes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

from nearcast import settings
from nearcast.errors import KeywordError
from nearcast.model.quantities import whole_number

Keyword: TypeAlias = str | int

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1


def fold(text: str) -> str:
    """NFKC and casefold until nothing changes, so that folding twice is folding once."""
    if text.isascii():
        return text.lower()
    while True:
        # One round is not enough: casefold may undo a composition, and NFKC may bring capitals back.
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        if folded == text:
            return folded
        text = folded


def normalise(word: str) -> str:
    """The keyword as nearcast stores and compares it."""
    return _normalised(word, settings.limit("max_keyword_bytes"))


def _normalised(word: object, most: int) -> str:
    if not isinstance(word, str):
        raise KeywordError(f"the keyword {word!r} is of type {type(word).__name__}; expected a str")
    # Composition makes one character of at most three, so that huge input can be refused before the work.
    if len(word) > 3 * most:
        raise _too_long(word, most)
    folded = fold(word)
    if not folded:
        raise KeywordError("the keyword '' is empty; leave it out, or use keywords=[] for 'no condition on words'")
    if (len(folded) if folded.isascii() else keyword_bytes(folded)) > most:
        raise _too_long(word, most)
    return folded


def keyword_bytes(word: str) -> int:
    """Length in UTF-8; raises KeywordError on half characters (lone surrogates), which have no UTF-8."""
    try:
        return len(word.encode())
    except UnicodeEncodeError:
        raise KeywordError(f"the keyword {word!r} holds a lone surrogate; expected text that can be written as UTF-8") from None


def read_keywords(keywords: Iterable[Keyword], owner: str) -> tuple[str, ...] | tuple[int, ...]:
    """Normalised words in the given order with repeats, or the ints as they are; never both kinds."""
    if isinstance(keywords, (str, bytes)):
        raise KeywordError(f"the keywords of {owner} are the plain text {keywords!r}; expected a list: use [{keywords!r}]")
    try:
        given = list(keywords)
    except TypeError:
        raise KeywordError(f"the keywords of {owner} are {keywords!r}; expected a list of str (or of int)") from None
    n_words = sum(isinstance(word, str) for word in given)
    if 0 < n_words < len(given):
        raise KeywordError(f"the keywords {given!r} of {owner} mix kinds; expected all str, or all int32")
    if n_words:
        most = settings.limit("max_keyword_bytes")
        return tuple([_normalised(word, most) for word in given])
    return tuple([_keyword_id(word, owner) for word in given])


def check_count(n_distinct: int, name: str, owner: str) -> None:
    """Raise KeywordError above the limit called `name`."""
    most = settings.limit(name)
    if n_distinct > most:
        raise KeywordError(
            f"{owner} has {n_distinct} distinct keywords; at most {most} are allowed; "
            f"drop some or raise NEARCAST_{name.upper()}"
        )


def _keyword_id(word: object, owner: str) -> int:
    number = whole_number(word)
    if number is None:
        raise KeywordError(f"the keyword {word!r} of {owner} is of type {type(word).__name__}; expected str (or int32)")
    if not _INT32_MIN <= number <= _INT32_MAX:
        raise KeywordError(f"the keyword id {number!r} of {owner} does not fit into int32; number the keywords from 0")
    return number


def _too_long(word: str, most: int) -> KeywordError:
    shown = word if len(word) <= 40 else word[:40] + "..."
    return KeywordError(
        f"the keyword {shown!r} is longer than {most} bytes of UTF-8; shorten it or raise NEARCAST_MAX_KEYWORD_BYTES"
    )
