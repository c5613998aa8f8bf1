"""From running text to keywords: split, fold, drop stop words, stem; the same for every message of an engine.

`Analysis` is data (saved beside an index); the pattern and the stemmers live in this module.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import regex  # type: ignore[import-untyped, unused-ignore]

from nearcast import settings
from nearcast.errors import EnvironmentProblem, MessageError, NearcastError
from nearcast.model.normalise import fold, normalise
from nearcast.model.stop_words import STOP_WORDS

# No spaces between words in these scripts: without a dictionary, overlapping pairs of characters find them.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\u30FC]"
_LETTER = rf"[[\p{{L}}\p{{N}}\p{{M}}]--{_UNSPACED}]"
# Inside a word: apostrophes, the points of numbers, underscores, the invisible joiners of Indic and Persian spelling.
_INNER = r"(?: '(?=\p{L}) | (?<=\p{Nd})[.,](?=\p{Nd}) | _+ | [\u200C\u200D](?=\p{L}) )"
_PICTURE = r"[\p{Extended_Pictographic}--[\u00A9\u00AE]][\uFE0E\uFE0F]?\p{Emoji_Modifier}?[\U000E0020-\U000E007F]*"
_PATTERN = regex.compile(
    rf"""
      (?P<tag> (?<![\p{{L}}\p{{N}}\p{{M}}_&]) [#@] [\p{{L}}\p{{N}}\p{{M}}_]*[\p{{L}}\p{{N}}][\p{{L}}\p{{N}}\p{{M}}_]* )
    | (?P<code> (?<!{_LETTER}) (?: \p{{L}}\# | \p{{L}}+\+\+ ) (?![\p{{L}}\p{{N}}\p{{M}}_]) )
    | (?P<unspaced> {_UNSPACED}+ )
    | (?P<emoji> [0-9\#*]\uFE0F?\u20E3 | \p{{Regional_Indicator}}{{2}} | {_PICTURE}(?:\u200D{_PICTURE})* )
    | (?P<word> {_LETTER}+ (?: {_INNER} {_LETTER}+ )* )
    """,
    regex.VERSION1 | regex.VERBOSE,
)
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\uff07": "'"})
_STEMMERS = threading.local()


@dataclass(frozen=True, slots=True, init=False)
class Analysis:
    """How texts, phrases and keywords become the words that are compared.

    Parameters
    ----------
    stem
        A PyStemmer language ("english", "german", ...): words are cut to their stem. None: left whole.
    stop_words
        "english", or the words themselves: dropped from texts and phrases, never from keywords.
    """

    stem: str | None
    stop_words: frozenset[str]

    def __init__(self, stem: str | None = None, stop_words: str | Iterable[str] | None = None) -> None:
        if stem is not None:
            _stemmer(stem)
        object.__setattr__(self, "stem", stem)
        object.__setattr__(self, "stop_words", _resolve_stop_words(stop_words))

    def words(self, text: str) -> list[str]:
        """The words of a text in order, with repeats; those too long to be a keyword are left out."""
        if not isinstance(text, str):
            raise MessageError(f"the text {text!r} is of type {type(text).__name__}; expected a str")
        most = settings.limit("max_text_characters")
        if len(text) > most:
            raise MessageError(
                f"the text has {len(text)} characters; at most {most} are allowed; cut it or raise NEARCAST_MAX_TEXT_CHARACTERS"
            )
        longest = settings.limit("max_keyword_bytes")
        words = [word for word in _split(fold(text.translate(_APOSTROPHES))) if _fits(word, longest)]
        if self.stop_words:
            words = [word for word in words if word not in self.stop_words]
        return [self._stemmed(word) for word in words] if self.stem else words

    def keyword(self, word: str) -> str:
        """One keyword, normalised and, where stemming is on, stemmed; never split."""
        return self._stemmed(normalise(word))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a manifest; stop words are written out, so that a later built-in list changes nothing."""
        return {"stem": self.stem, "stop_words": sorted(self.stop_words)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Analysis:
        unknown = set(data) - {"stem", "stop_words"}
        if unknown:
            raise NearcastError(
                f"the analysis {dict(data)!r} has unknown fields {sorted(unknown)!r}; expected stem, stop_words"
            )
        return cls(stem=data.get("stem"), stop_words=data.get("stop_words"))

    def _stemmed(self, word: str) -> str:
        # Tags, numbers and `c++` have no stem; leaving them alone here keeps keywords and texts in step.
        if self.stem is None or not word.replace("'", "").isalpha():
            return word
        return str(_stemmer(self.stem).stemWord(word)) or word


def _split(text: str) -> Iterator[str]:
    for match in _PATTERN.finditer(text):
        kind, found = match.lastgroup, match.group()
        if kind == "tag":
            yield found
            yield from _split(found[1:])
        elif kind == "unspaced" and len(found) > 1:
            yield from (a + b for a, b in pairwise(found))
        else:
            yield found


def _fits(word: str, longest: int) -> bool:
    return len(word) * 4 <= longest or len(word.encode()) <= longest


def _resolve_stop_words(given: str | Iterable[str] | None) -> frozenset[str]:
    if given is None:
        return frozenset()
    if isinstance(given, str):
        if given not in STOP_WORDS:
            raise NearcastError(
                f"there is no list of stop words {given!r}; give one of {sorted(STOP_WORDS)!r} or the words as a list"
            )
        return STOP_WORDS[given]
    return frozenset(normalise(word) for word in given)


def _stemmer(language: str) -> Any:
    # One per thread: a stemmer keeps a buffer and a cache that calls share.
    known: dict[str, Any] | None = getattr(_STEMMERS, "by_language", None)
    if known is None:
        known = _STEMMERS.by_language = {}
    if language not in known:
        try:
            import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise EnvironmentProblem(
                f"stem={language!r} needs the package PyStemmer, which is not installed; run: pip install PyStemmer"
            ) from None
        if language not in Stemmer.algorithms():
            raise NearcastError(f"there is no stemmer for {language!r}; give one of {sorted(Stemmer.algorithms())!r}")
        known[language] = Stemmer.Stemmer(language)
    return known[language]


DEFAULT_ANALYSIS = Analysis()
