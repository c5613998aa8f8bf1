"""Boolean interests: text such as `(ipad OR iphone) AND sale AND NOT refurbished` as steps and clauses.

Grammar, loosest first: OR (`||`), AND (`&&`, or nothing between neighbours), NOT (`!`), parentheses, words, "phrases".
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from functools import lru_cache

from nearcast import settings
from nearcast.errors import InterestError, KeywordError
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.dnf import AND, NOT, OR, PHRASE, WORD, Clause, Step, expand

_OPERATORS = {"AND": AND, "&&": AND, "OR": OR, "||": OR, "NOT": NOT, "!": NOT}
_OPEN = "("
_BINDING = {_OPEN: 0, OR: 1, AND: 2, NOT: 3}
# Every text without blanks at its end is a sequence of these.
_TOKEN = re.compile(
    r"""\s*(?: (?P<operator> && | \|\| | ! )
             | (?P<open> \( ) | (?P<close> \) )
             | "(?P<phrase> [^"]* )"
             | (?P<unclosed> " )
             | (?P<word> (?: (?! && | \|\| ) [^\s"()] )+ ) )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Interest:
    """A parsed interest; equal to another with the same text.

    `steps` is the expression in postfix order: evaluation and expansion need no recursion.
    """

    text: str
    steps: tuple[Step, ...] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def clauses(self, analysis: Analysis | None = None) -> tuple[Clause, ...]:
        """The interest as alternatives, in a fixed order, without redundant ones."""
        max_clauses = settings.limit("max_interest_clauses")
        max_words = settings.limit("max_subscription_keywords")
        return _expand_cached(self.text, self.steps, analysis or DEFAULT_ANALYSIS, max_clauses, max_words)

    def holds(self, words: Container[str], analysis: Analysis | None = None) -> bool:
        """Whether a message with these (analysed) words satisfies the interest: the definition, evaluated step by step."""
        analysis = analysis or DEFAULT_ANALYSIS
        values: list[bool] = []
        for step in self.steps:
            if step.kind == WORD:
                values.append(analysis.keyword(step.text) in words)
            elif step.kind == PHRASE:
                values.append(all(word in words for word in analysis.words(step.text)))
            elif step.kind == NOT:
                values.append(not values.pop())
            else:
                right, left = values.pop(), values.pop()
                values.append(left and right if step.kind == AND else left or right)
        return values[0]


@lru_cache(maxsize=1024)
def _expand_cached(
    text: str, steps: tuple[Step, ...], analysis: Analysis, max_clauses: int, max_words: int
) -> tuple[Clause, ...]:
    # Cached: a subscription is expanded when it is made and again when it is indexed.
    return expand(text, steps, analysis, max_clauses, max_words)


def parse_interest(text: str) -> Interest:
    """The interest, or InterestError with the position of the first character that is wrong."""
    if not isinstance(text, str):
        raise InterestError(f"the interest {text!r} is of type {type(text).__name__}; expected a str")
    limit = settings.limit("max_interest_characters")
    if len(text) > limit:
        raise InterestError(f"the interest has {len(text)} characters; at most {limit} are allowed; split the subscription")
    return Interest(text, tuple(_Parser(text).parse()))


class _Parser:
    """Operator precedence with an explicit stack: nesting is limited by a setting, not by Python's stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[Step] = []
        # Operators and open parentheses whose right side is not complete.
        self.pending: list[Step] = []
        self.max_word_length = settings.limit("max_keyword_bytes")
        self.max_depth = settings.limit("max_interest_depth")
        self.n_nested = 0

    def parse(self) -> list[Step]:
        has_operand = False
        for match in _TOKEN.finditer(self.text.rstrip()):
            kind = str(match.lastgroup)
            text, position = match[kind], match.start(kind)
            operator = _OPERATORS.get(text.upper()) if kind in ("word", "operator") and len(text) <= 3 else None
            if operator in (AND, OR):
                if not has_operand:
                    raise self._error(f"{text!r} has nothing on its left", position, "a word before it")
                self._push_operator(Step(operator, text, position))
                has_operand = False
            elif kind == "close":
                if not has_operand:
                    raise self._error("')' comes too early", position, "a word, a phrase or '('")
                self._close(position)
            else:
                if has_operand:
                    self._push_operator(Step(AND, "", position))
                has_operand = operator is None and kind != "open"
                if has_operand:
                    self.steps.append(self._operand(kind, text, position))
                else:
                    self._nest(Step(operator or _OPEN, text, position))
        return self._finish(has_operand)

    def _finish(self, has_operand: bool) -> list[Step]:
        if not self.steps and not self.pending:
            raise InterestError(f"the interest {self.text!r} is empty; expected at least one word", 0)
        if not has_operand:
            last = self.pending[-1]
            raise self._error(f"{last.text!r} has nothing on its right", last.position, "a word after it")
        self._pop_operators(0)
        if self.pending:
            raise self._error("'(' is never closed", self.pending[-1].position, "a matching ')'")
        return self.steps

    def _operand(self, kind: str, text: str, position: int) -> Step:
        if kind == "unclosed":
            raise self._error("the quote is never closed", position, "a second '\"'")
        if kind == "phrase":
            if not DEFAULT_ANALYSIS.words(text):
                raise self._error(f"the phrase {text!r} has no words", position, "letters or digits in the quotes")
            return Step(PHRASE, text, position)
        # A short word in ASCII is always a keyword.
        if len(text) > self.max_word_length or not text.isascii():
            try:
                DEFAULT_ANALYSIS.keyword(text)
            except KeywordError as error:
                raise self._error(str(error), position, "a keyword") from None
        return Step(WORD, text, position)

    def _nest(self, step: Step) -> None:
        self.n_nested += 1
        if self.n_nested > self.max_depth:
            raise self._error(
                f"parentheses and NOT are nested deeper than {self.max_depth}", step.position, "a flatter interest"
            )
        self.pending.append(step)

    def _push_operator(self, step: Step) -> None:
        self._pop_operators(_BINDING[step.kind])
        self.pending.append(step)

    def _pop_operators(self, loosest: int) -> None:
        """Append the pending operators that bind at least as tightly as `loosest`, up to the last open parenthesis."""
        while self.pending and _BINDING[self.pending[-1].kind] >= max(1, loosest):
            step = self.pending.pop()
            self.n_nested -= step.kind == NOT
            self.steps.append(step)

    def _close(self, position: int) -> None:
        self._pop_operators(0)
        if not self.pending:
            raise self._error("')' closes nothing", position, "a '(' before it")
        self.pending.pop()
        self.n_nested -= 1

    def _error(self, what: str, position: int, expected: str) -> InterestError:
        start, end = max(position - 20, 0), position + 20
        near = ("..." if start else "") + self.text[start:end] + ("..." if end < len(self.text) else "")
        return InterestError(f"{what} at position {position}, near {near!r}; expected {expected}", position)
