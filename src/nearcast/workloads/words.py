"""Words and their frequencies: real English ones, or a curve fitted to them.

`wordfreq` (extra `bench`) has 321,180 words. Further words, and all words without the package, are called `w<rank>`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.errors import EnvironmentProblem
from nearcast.model.normalise import fold

Frequencies = Literal["auto", "wordfreq", "curve"]

N_LISTED = 321_180
# Slope of the listed words between ranks 100,000 and 300,000, continued to the words beyond the list.
TAIL_SLOPE = 1.45
# (rank, centibels below 1) of wordfreq 3.1.1 'large' English, joined by straight lines over log rank. The mass of the first 1,
# 10, 100 and 1,000 words is within 2 % of the list's own.
CURVE = (
    (1, 127.0), (2, 157.0), (3, 159.0), (5, 164.0), (8, 193.0), (13, 207.8), (20, 225.4), (35, 249.0), (60, 269.9),
    (100, 296.4), (200, 332.4), (400, 360.7), (1000, 396.9), (3000, 449.9), (10000, 522.6), (30000, 603.0),
    (100000, 704.6), (N_LISTED, 794.1),
)  # fmt: skip
# A keyword must be in its normal form and need no quotes in an interest; `w<number>` is reserved for made-up words.
_NEEDS_QUOTES = re.compile(r"""[\s"()!&|]""")
_MADE_UP = re.compile(r"w\d+")


def resolve_frequencies(choice: Frequencies) -> Literal["wordfreq", "curve"]:
    """The source for `choice`: "auto" takes the real list if the package is installed."""
    if choice == "curve":
        return "curve"
    try:
        import wordfreq  # noqa: F401
    except ImportError:
        if choice == "wordfreq":
            raise EnvironmentProblem(
                "frequencies='wordfreq' needs the package wordfreq, which is not installed; "
                "install nearcast[bench], or ask for frequencies='curve'"
            ) from None
        return "curve"
    return "wordfreq"


def word_frequencies(n_words: int, source: Literal["wordfreq", "curve"], skip: int = 0) -> NDArray[np.float64]:
    """The share of each of `n_words` words, most frequent first, after leaving out the first `skip`."""
    listed = _listed_frequencies() if source == "wordfreq" else _curve_frequencies()
    ranks = np.arange(listed.size + 1, n_words + skip + 1)
    tail = listed[-1] * (ranks / listed.size) ** -TAIL_SLOPE
    share = np.concatenate([listed, tail])[skip : skip + n_words]
    normalised: NDArray[np.float64] = share / share.sum()
    return normalised


def zipf_frequencies(n_words: int, exponent: float = 1.0, offset: float = 1.7) -> NDArray[np.float64]:
    """Zipf and Mandelbrot's law: share of rank r proportional to (r + offset) ** -exponent."""
    share = (np.arange(1, n_words + 1) + offset) ** -exponent
    normalised: NDArray[np.float64] = share / share.sum()
    return normalised


def ranked_words(n_words: int, source: Literal["wordfreq", "curve"], skip: int = 0) -> pa.Array:
    """The words of `word_frequencies`, all distinct."""
    listed = _listed_words()[skip : skip + n_words] if source == "wordfreq" else pa.array([], pa.string())
    return pa.concat_arrays([listed, made_up_words(len(listed) + skip + 1, n_words - len(listed))])


def made_up_words(first_rank: int, n_words: int) -> pa.Array:
    """`w<rank>` for consecutive ranks."""
    ranks = pa.array(np.arange(first_rank, first_rank + n_words)).cast(pa.string())
    return pc.binary_join_element_wise("w", ranks, "")


def _listed_frequencies() -> NDArray[np.float64]:
    sizes = [len(bucket) for bucket in _buckets()]
    centibels = np.repeat(np.arange(len(sizes)), sizes)
    return _from_centibels(centibels)


def _curve_frequencies() -> NDArray[np.float64]:
    rank, centibels = np.array(CURVE).T
    return _from_centibels(np.interp(np.log(np.arange(1, N_LISTED + 1)), np.log(rank), centibels))


def _from_centibels(below_one: NDArray[Any]) -> NDArray[np.float64]:
    share: NDArray[np.float64] = np.power(10.0, below_one / -100.0)
    return share


@lru_cache(maxsize=1)
def _listed_words() -> pa.Array:
    words = (word for bucket in _buckets() for word in bucket)
    return pa.array([word if _is_plain(word) else f"w{rank}" for rank, word in enumerate(words, 1)], pa.string())


def _is_plain(word: str) -> bool:
    return word == fold(word) and not _NEEDS_QUOTES.search(word) and not _MADE_UP.fullmatch(word)


@lru_cache(maxsize=1)
def _buckets() -> list[list[str]]:
    import wordfreq

    buckets: list[list[str]] = wordfreq.get_frequency_list("en", wordlist="large")
    return buckets
