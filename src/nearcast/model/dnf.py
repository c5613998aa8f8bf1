"""Disjunctive normal form: an interest as clauses of required and forbidden words.

Clauses are bit masks while they are combined. Every step checks the limits, so an interest that explodes is refused early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nearcast.errors import InterestError
from nearcast.model.normalise import Keyword

if TYPE_CHECKING:
    from nearcast.model.analysis import Analysis

AND, OR, NOT, WORD, PHRASE = "and", "or", "not", "word", "phrase"


class Step(NamedTuple):
    """One step of an expression in postfix order."""

    kind: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Clause:
    """Satisfied by a message that has every required and no forbidden keyword."""

    required: frozenset[Keyword]
    forbidden: frozenset[Keyword] = frozenset()

    def holds(self, keywords: Iterable[Keyword]) -> bool:
        """Whether a message with these keywords satisfies the clause."""
        present = keywords if isinstance(keywords, (set, frozenset)) else frozenset(keywords)
        return self.required <= present and self.forbidden.isdisjoint(present)


class _Literal(NamedTuple):
    """A step once NOT has been pushed down to the words: AND, OR, or words that are required or forbidden."""

    kind: str
    words: tuple[str, ...] = ()
    is_negated: bool = False


class _Alternatives(NamedTuple):
    """Clauses as masks, none of them redundant, and the words they name."""

    masks: list[int]
    words: int


def expand(text: str, steps: tuple[Step, ...], analysis: Analysis, max_clauses: int, max_words: int) -> tuple[Clause, ...]:
    """The clauses of a postfix expression, sorted. Raises InterestError above a limit, or if nothing can ever match."""
    literals = _push_not_inward(text, steps, analysis)
    expansion = _Expansion(text, sorted({word for literal in literals for word in literal.words}), max_clauses)
    clauses = sorted(expansion.words_of(mask) for mask in expansion.evaluate(literals))
    if not clauses:
        raise InterestError(
            f"the interest {_shown(text)!r} can never match: every alternative requires and forbids the same word; correct it"
        )
    for required, forbidden in clauses:
        n_words = len(required) + len(forbidden)
        if n_words > max_words:
            raise InterestError(
                f"one alternative of the interest {_shown(text)!r} has {n_words} words; at most {max_words} are allowed; "
                "shorten it or raise NEARCAST_MAX_SUBSCRIPTION_KEYWORDS"
            )
    return tuple([Clause(frozenset(required), frozenset(forbidden)) for required, forbidden in clauses])


def _push_not_inward(text: str, steps: tuple[Step, ...], analysis: Analysis) -> list[_Literal]:
    """The steps with NOT pushed down to the words (De Morgan). In reverse, each operator comes before its operands."""
    literals: list[_Literal] = []
    pending = [False]
    for step in reversed(steps):
        is_negated = pending.pop()
        if step.kind == NOT:
            pending.append(not is_negated)
        elif step.kind in (AND, OR):
            pending += [is_negated, is_negated]
            literals.append(_Literal(step.kind if not is_negated else (OR if step.kind == AND else AND)))
        elif step.kind == WORD:
            literals.append(_Literal(WORD, (analysis.keyword(step.text),), is_negated))
        else:
            words = tuple(dict.fromkeys(analysis.words(step.text)))
            if not words:
                raise InterestError(
                    f"the phrase {step.text!r} at position {step.position} has no words besides stop words; "
                    "expected another word in the quotes",
                    step.position,
                )
            literals.append(_Literal(PHRASE, words, is_negated))
    literals.reverse()
    return literals


class _Expansion:
    """Clauses as integers: bit i is set if word i is required, bit n + i if it is forbidden.

    "A makes B redundant" is then `A & B == A`. Alternatives without a common word need no search for redundant ones.
    """

    def __init__(self, text: str, words: list[str], max_clauses: int) -> None:
        self.text = text
        self.words = words
        self.n = len(words)
        self.max_clauses = max_clauses
        self.required_bits = (1 << self.n) - 1

    def evaluate(self, literals: list[_Literal]) -> list[int]:
        bit_of = {word: 1 << i for i, word in enumerate(self.words)}
        stack: list[_Alternatives] = []
        for kind, words, is_negated in literals:
            if kind in (AND, OR):
                right, left = stack.pop(), stack.pop()
                combined = self._and(left, right) if kind == AND else self._or(left, right)
                stack.append(_Alternatives(combined, left.words | right.words))
                continue
            bits = [bit_of[word] for word in words]
            # NOT (a and b) = NOT a or NOT b.
            masks = self._within_limit([bit << self.n for bit in bits]) if is_negated else [sum(bits)]
            stack.append(_Alternatives(masks, sum(bits)))
        return stack[0].masks

    def words_of(self, mask: int) -> tuple[list[str], list[str]]:
        """The required and the forbidden words of a clause, sorted as the words are."""
        return self._words_of_bits(mask & self.required_bits), self._words_of_bits(mask >> self.n)

    def _words_of_bits(self, bits: int) -> list[str]:
        words = []
        while bits:
            lowest = bits & -bits
            words.append(self.words[lowest.bit_length() - 1])
            bits ^= lowest
        return words

    def _or(self, left: _Alternatives, right: _Alternatives) -> list[int]:
        if not left.words & right.words:
            return self._within_limit(left.masks + right.masks)
        # Neither side has redundant clauses, so only clauses of different sides are compared: a long chain of OR costs
        # the square of its length and not the cube.
        needed = [a for a in left.masks if not any(a & b == b for b in right.masks)]
        return self._within_limit(needed + [b for b in right.masks if not any(a & b == a for a in needed)])

    def _and(self, left: _Alternatives, right: _Alternatives) -> list[int]:
        if not left.words & right.words:
            self._check_n_clauses(len(left.masks) * len(right.masks))
            return [a | b for a in left.masks for b in right.masks]
        # An alternative that implies one of the other side need not be combined with it: keeps (X) AND (X) small.
        whole = {a for a in left.masks if any(a & b == b for b in right.masks)}
        whole |= {b for b in right.masks if any(a & b == a for a in left.masks)}
        rest_left = [a for a in left.masks if a not in whole]
        rest_right = [b for b in right.masks if b not in whole]
        combined = (a | b for a in rest_left for b in rest_right)
        return self._without_redundant(whole | {mask for mask in combined if not mask & self.required_bits & (mask >> self.n)})

    def _without_redundant(self, masks: set[int]) -> list[int]:
        """The clauses without redundant ones. Fewest words first: no later clause can make an earlier one redundant."""
        needed: list[int] = []
        for mask in sorted(masks, key=int.bit_count):
            if any(mask & smaller == smaller for smaller in needed):
                continue
            needed.append(mask)
            self._check_n_clauses(len(needed))
        return needed

    def _within_limit(self, masks: list[int]) -> list[int]:
        self._check_n_clauses(len(masks))
        return masks

    def _check_n_clauses(self, n_clauses: int) -> None:
        if n_clauses > self.max_clauses:
            raise InterestError(
                f"the interest {_shown(self.text)!r} has more than {self.max_clauses} alternatives when written out; "
                "split it into several subscriptions or raise NEARCAST_MAX_INTEREST_CLAUSES"
            )


def _shown(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "..."
