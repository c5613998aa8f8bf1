"""From running text to keywords: split, fold, drop stop words, stem; the same for every message of an engine.

An `Analysis` is plain data and is saved with an index. The pattern, the stop words and the stemmers live in this module.
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

# These scripts put no spaces between words. Without a dictionary, overlapping pairs of characters stand for the words.
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

_ENGLISH_TEXT = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each either else few for
from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his
how how's i i'd i'll i'm i've if in into is isn't it it's its itself just let's me more most mustn't my myself no nor
not of off on once only or other our ours ourselves out over own same shan't she she'd she'll she's should shouldn't so
some such than that that's the their theirs them themselves then there there's these they they'd they'll they're
they've this those through to too under until up very was wasn't we we'd we'll we're we've were weren't what what's when
when's where where's which while who who's whom why why's will with won't would wouldn't you you'd you'll you're you've
your yours yourself yourselves
"""
# Words too common to tell texts apart, by language.
STOP_WORDS = {"english": frozenset(_ENGLISH_TEXT.split())}


@dataclass(frozen=True, slots=True, init=False)
class Analysis:
    """How texts, phrases and keywords become the words that are compared.

    Parameters
    ----------
    stem
        A PyStemmer language ("english", "german", ...): words are reduced to their stem. None: no stemming.
    stop_words
        "english", or the words themselves. They are dropped from texts and phrases, never from keywords.
    """

    stem: str | None
    stop_words: frozenset[str]

    def __init__(self, stem: str | None = None, stop_words: str | Iterable[str] | None = None) -> None:
        if stem is not None:
            _stemmer(stem)
        object.__setattr__(self, "stem", stem)
        object.__setattr__(self, "stop_words", _resolve_stop_words(stop_words))

    def words(self, text: str) -> list[str]:
        """The words of a text in order, with repeats. Words too long for a keyword are left out."""
        if not isinstance(text, str):
            raise MessageError(f"the text {text!r} is of type {type(text).__name__}; expected a str")
        limit = settings.limit("max_text_characters")
        if len(text) > limit:
            raise MessageError(
                f"the text has {len(text)} characters; at most {limit} are allowed; "
                "cut it or raise NEARCAST_MAX_TEXT_CHARACTERS"
            )
        max_bytes = settings.limit("max_keyword_bytes")
        words = [word for word in _split(fold(text.translate(_APOSTROPHES))) if _fits(word, max_bytes)]
        if self.stop_words:
            words = [word for word in words if word not in self.stop_words]
        return [self._stemmed(word) for word in words] if self.stem else words

    def keyword(self, word: str) -> str:
        """One keyword, normalised and, where stemming is on, stemmed; never split."""
        return self._stemmed(normalise(word))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a manifest. The stop words are written out, so a later built-in list does not change an old index."""
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
        # Tags, numbers and `c++` have no stem. They stay as they are, in keywords and in texts alike.
        if self.stem is None or not word.replace("'", "").isalpha():
            return word
        return str(_stemmer(self.stem).stemWord(word)) or word


def _split(text: str) -> Iterator[str]:
    for match in _PATTERN.finditer(text):
        kind, part = match.lastgroup, match.group()
        if kind == "tag":
            yield part
            yield from _split(part[1:])
        elif kind == "unspaced" and len(part) > 1:
            yield from (a + b for a, b in pairwise(part))
        else:
            yield part


def _fits(word: str, max_bytes: int) -> bool:
    return len(word) * 4 <= max_bytes or len(word.encode()) <= max_bytes


def _resolve_stop_words(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words not in STOP_WORDS:
            raise NearcastError(
                f"there is no list of stop words {stop_words!r}; give one of {sorted(STOP_WORDS)!r} or the words as a list"
            )
        return STOP_WORDS[stop_words]
    return frozenset(normalise(word) for word in stop_words)


def _stemmer(language: str) -> Any:
    # One per thread: a stemmer has a buffer and a cache that its calls share.
    stemmers: dict[str, Any] | None = getattr(_STEMMERS, "by_language", None)
    if stemmers is None:
        stemmers = _STEMMERS.by_language = {}
    if language not in stemmers:
        try:
            import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise EnvironmentProblem(
                f"stem={language!r} needs the package PyStemmer, which is not installed; run: pip install PyStemmer"
            ) from None
        if language not in Stemmer.algorithms():
            raise NearcastError(f"there is no stemmer for {language!r}; give one of {sorted(Stemmer.algorithms())!r}")
        stemmers[language] = Stemmer.Stemmer(language)
    return stemmers[language]


DEFAULT_ANALYSIS = Analysis()
