"""Disjunctive normal form: an interest as clauses of required and forbidden words.

Clauses are bit masks while they are combined; limits hold at every step, so that nothing explodes before it is refused.
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
    """A step after NOT has been pushed down to the words: AND, OR, or words with a sign."""

    kind: str
    words: tuple[str, ...] = ()
    is_negated: bool = False


def expand(text: str, steps: tuple[Step, ...], analysis: Analysis, most_clauses: int, most_words: int) -> tuple[Clause, ...]:
    """The clauses of a postfix expression, sorted; InterestError past a limit or if nothing can ever match."""
    literals = _push_not_inward(text, steps, analysis)
    numbers: dict[str, int] = {}
    for literal in literals:
        for word in literal.words:
            numbers.setdefault(word, len(numbers))
    masks = _Masks(text, numbers, most_clauses)
    clauses = [masks.clause(mask) for mask in masks.evaluate(literals)]
    if not clauses:
        raise InterestError(
            f"the interest {_shown(text)!r} can never match: every alternative wants and forbids the same word; correct it"
        )
    for clause in clauses:
        n_words = len(clause.required) + len(clause.forbidden)
        if n_words > most_words:
            raise InterestError(
                f"one alternative of the interest {_shown(text)!r} has {n_words} words; at most {most_words} are allowed; "
                "shorten it or raise NEARCAST_MAX_SUBSCRIPTION_KEYWORDS"
            )
    return tuple(sorted(clauses, key=lambda clause: (sorted(map(str, clause.required)), sorted(map(str, clause.forbidden)))))


def _push_not_inward(text: str, steps: tuple[Step, ...], analysis: Analysis) -> list[_Literal]:
    """De Morgan from the root down: postfix read backwards meets each operator before its operands."""
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


class _Masks:
    """Clauses as integers: bit i says word i is required, bit n + i that it is forbidden.

    Then "A makes B superfluous" is `A & B == A`.
    """

    def __init__(self, text: str, numbers: dict[str, int], most_clauses: int) -> None:
        self.text = text
        self.numbers = numbers
        self.words = list(numbers)
        self.most_clauses = most_clauses
        self.required_bits = (1 << len(numbers)) - 1

    def evaluate(self, literals: list[_Literal]) -> list[int]:
        stack: list[list[int]] = []
        for literal in literals:
            if literal.kind == AND:
                right, left = stack.pop(), stack.pop()
                stack.append(self._both(left, right))
            elif literal.kind == OR:
                right, left = stack.pop(), stack.pop()
                stack.append(self._either(left, right))
            else:
                bits = [1 << self.numbers[word] for word in literal.words]
                if literal.is_negated:
                    # NOT (a and b) = NOT a or NOT b.
                    stack.append(self._smallest({bit << len(self.words) for bit in bits}))
                else:
                    stack.append([sum(bits)])
        return stack[0]

    def clause(self, mask: int) -> Clause:
        return Clause(self._words(mask & self.required_bits), self._words(mask >> len(self.words)))

    def _words(self, bits: int) -> frozenset[Keyword]:
        return frozenset(word for i, word in enumerate(self.words) if bits >> i & 1)

    def _either(self, left: list[int], right: list[int]) -> list[int]:
        # Both sides are free of superfluous clauses, so only clauses of different sides are compared: a long chain of
        # OR costs the square of its length and not the cube.
        kept = [a for a in left if not any(a & b == b for b in right)]
        return self._within_limit(kept + [b for b in right if not any(a & b == a for a in kept)])

    def _both(self, left: list[int], right: list[int]) -> list[int]:
        # An alternative that already implies one of the other side needs no combining: keeps (X) AND (X) small.
        kept = {a for a in left if any(a & b == b for b in right)} | {b for b in right if any(a & b == a for a in left)}
        rest_left = [a for a in left if a not in kept]
        rest_right = [b for b in right if b not in kept]
        combined = (a | b for a in rest_left for b in rest_right)
        n = len(self.words)
        return self._smallest(kept | {mask for mask in combined if not mask & self.required_bits & (mask >> n)})

    def _smallest(self, masks: set[int]) -> list[int]:
        """Without superfluous clauses. Fewest words first: no later clause can make an earlier one superfluous."""
        kept: list[int] = []
        for mask in sorted(masks, key=lambda mask: (mask.bit_count(), mask)):
            if any(mask & smaller == smaller for smaller in kept):
                continue
            kept.append(mask)
            self._within_limit(kept)
        return kept

    def _within_limit(self, masks: list[int]) -> list[int]:
        if len(masks) > self.most_clauses:
            raise InterestError(
                f"the interest {_shown(self.text)!r} has more than {self.most_clauses} alternatives when written out; "
                "split it into several subscriptions or raise NEARCAST_MAX_INTEREST_CLAUSES"
            )
        return masks


def _shown(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "..."
