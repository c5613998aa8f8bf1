"""The normal form of a keyword (NFKC and casefold), and the checks that every keyword passes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

from nearcast import settings
from nearcast.errors import KeywordError
from nearcast.model.inputs import whole_number

Keyword: TypeAlias = str | int

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1


def fold(text: str) -> str:
    """NFKC and casefold, repeated until nothing changes. So folding twice gives the same as folding once."""
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
    return _normalise(word, settings.limit("max_keyword_bytes"))


def _normalise(word: object, max_bytes: int) -> str:
    if not isinstance(word, str):
        raise KeywordError(f"the keyword {word!r} is of type {type(word).__name__}; expected a str")
    # Composition joins at most three characters into one: longer input cannot fit and is refused before the work.
    if len(word) > 3 * max_bytes:
        raise _too_long(word, max_bytes)
    folded = fold(word)
    if not folded:
        raise KeywordError("the keyword '' is empty; leave it out, or use keywords=[] for 'no condition on words'")
    if (len(folded) if folded.isascii() else keyword_bytes(folded)) > max_bytes:
        raise _too_long(word, max_bytes)
    return folded


def keyword_bytes(word: str) -> int:
    """Length in UTF-8; raises KeywordError on half characters (lone surrogates), which have no UTF-8."""
    try:
        return len(word.encode())
    except UnicodeEncodeError:
        raise KeywordError(f"the keyword {word!r} holds a lone surrogate; expected text that can be written as UTF-8") from None


def read_keywords(keywords: Iterable[Keyword], label: str) -> tuple[str, ...] | tuple[int, ...]:
    """Normalised words in their order, with repeats, or the ints unchanged; never both kinds. `label` is for errors."""
    if isinstance(keywords, (str, bytes)):
        raise KeywordError(f"the keywords of {label} are the plain text {keywords!r}; expected a list: use [{keywords!r}]")
    try:
        words = list(keywords)
    except TypeError:
        raise KeywordError(f"the keywords of {label} are {keywords!r}; expected a list of str (or of int)") from None
    n_texts = sum(isinstance(word, str) for word in words)
    if 0 < n_texts < len(words):
        raise KeywordError(f"the keywords {words!r} of {label} mix kinds; expected all str, or all int32")
    if n_texts:
        max_bytes = settings.limit("max_keyword_bytes")
        return tuple([_normalise(word, max_bytes) for word in words])
    return tuple([_keyword_id(word, label) for word in words])


def check_count(n_distinct: int, name: str, label: str) -> None:
    """Raise KeywordError above the limit called `name`."""
    limit = settings.limit(name)
    if n_distinct > limit:
        raise KeywordError(
            f"{label} has {n_distinct} distinct keywords; at most {limit} are allowed; "
            f"drop some or raise NEARCAST_{name.upper()}"
        )


def _keyword_id(word: object, label: str) -> int:
    number = whole_number(word)
    if number is None:
        raise KeywordError(f"the keyword {word!r} of {label} is of type {type(word).__name__}; expected str (or int32)")
    if not _INT32_MIN <= number <= _INT32_MAX:
        raise KeywordError(f"the keyword id {number!r} of {label} does not fit into int32; number the keywords from 0")
    return number


def _too_long(word: str, max_bytes: int) -> KeywordError:
    shown = word if len(word) <= 40 else word[:40] + "..."
    return KeywordError(
        f"the keyword {shown!r} is longer than {max_bytes} bytes of UTF-8; shorten it or raise NEARCAST_MAX_KEYWORD_BYTES"
    )
