"""Boolean interests: from text such as `(ipad OR iphone) AND sale AND NOT refurbished` to steps and clauses.

Grammar, loosest first: OR (`||`), AND (`&&`, or nothing between neighbours), NOT (`!`), parentheses, words, "phrases".
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from nearcast import settings
from nearcast.errors import InterestError, KeywordError
from nearcast.model.analysis import DEFAULT_ANALYSIS, Analysis
from nearcast.model.dnf import AND, NOT, OR, PHRASE, WORD, Clause, Step, expand

_OPERATORS = {"AND": AND, "&&": AND, "OR": OR, "||": OR, "NOT": NOT, "!": NOT}
_BINDING = {OR: 1, AND: 2, NOT: 3}
_TOKEN = re.compile(
    r"""\s*(?: (?P<operator> && | \|\| | ! )
             | (?P<open> \( ) | (?P<close> \) )
             | "(?P<phrase> [^"]* )"
             | (?P<unclosed> " )
             | (?P<word> (?: (?! && | \|\| ) [^\s"()] )+ ) )""",
    re.VERBOSE,
)
_OPEN = "("


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Interest:
    """A parsed interest; equal to another with the same text.

    `steps` is the expression in postfix order, which neither evaluation nor expansion needs recursion for.
    """

    text: str
    steps: tuple[Step, ...] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def clauses(self, analysis: Analysis | None = None) -> tuple[Clause, ...]:
        """The interest as alternatives, in a fixed order, without superfluous ones."""
        most_clauses = settings.limit("max_interest_clauses")
        most_words = settings.limit("max_subscription_keywords")
        return _expanded(self.text, self.steps, analysis or DEFAULT_ANALYSIS, most_clauses, most_words)

    def holds(self, words: Container[str], analysis: Analysis | None = None) -> bool:
        """Whether a message with these (analysed) words satisfies the interest: the definition, without clauses."""
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
def _expanded(text: str, steps: tuple[Step, ...], analysis: Analysis, most_clauses: int, most_words: int) -> tuple[Clause, ...]:
    # Cached because a subscription is expanded when it is made and again when it is indexed.
    return expand(text, steps, analysis, most_clauses, most_words)


def parse_interest(text: str) -> Interest:
    """The interest, or InterestError with the position of the first character that is wrong."""
    if not isinstance(text, str):
        raise InterestError(f"the interest {text!r} is of type {type(text).__name__}; expected a str")
    most = settings.limit("max_interest_characters")
    if len(text) > most:
        raise InterestError(f"the interest has {len(text)} characters; at most {most} are allowed; split the subscription")
    return Interest(text, tuple(_Parser(text).parse()))


class _Parser:
    """Operator precedence with an explicit stack, so that depth is a number to check and not the interpreter's."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[Step] = []
        self.waiting: list[_Token] = []
        self.most_depth = settings.limit("max_interest_depth")
        self.n_nested = 0

    def parse(self) -> list[Step]:
        has_operand = False
        for token in self._tokens():
            if token.kind in (AND, OR):
                if not has_operand:
                    raise self._error(f"{token.text!r} has nothing on its left", token.position, "a word before it")
                self._push_operator(token)
                has_operand = False
            elif token.kind == ")":
                if not has_operand:
                    raise self._error("')' comes too early", token.position, "a word, a phrase or '('")
                self._close(token)
            else:
                if has_operand:
                    self._push_operator(_Token(AND, "", token.position))
                has_operand = token.kind in (WORD, PHRASE)
                if has_operand:
                    self.steps.append(self._operand(token))
                else:
                    self._nest(token)
        return self._finish(has_operand)

    def _finish(self, has_operand: bool) -> list[Step]:
        if not self.steps and not self.waiting:
            raise InterestError(f"the interest {self.text!r} is empty; expected at least one word", 0)
        if not has_operand:
            last = self.waiting[-1]
            raise self._error(f"{last.text!r} has nothing on its right", last.position, "a word after it")
        while self.waiting:
            token = self.waiting.pop()
            if token.kind == _OPEN:
                raise self._error("'(' is never closed", token.position, "a matching ')'")
            self.steps.append(Step(token.kind, token.text, token.position))
        return self.steps

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        end = len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if match is None or match.lastgroup is None:
                raise self._error("this is not part of an interest", position, "a word")
            kind, text, start = match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup)
            position = match.end()
            if kind == "unclosed":
                raise self._error("the quote is never closed", start, "a second '\"'")
            if kind == "word" and text.upper() in _OPERATORS:
                kind = "operator"
            if kind == "operator":
                tokens.append(_Token(_OPERATORS[text.upper()], text, start))
            elif kind in ("open", "close"):
                tokens.append(_Token(text, text, start))
            else:
                tokens.append(_Token(PHRASE if kind == "phrase" else WORD, text, start))
        return tokens

    def _operand(self, token: _Token) -> Step:
        try:
            if token.kind == WORD:
                DEFAULT_ANALYSIS.keyword(token.text)
            elif not DEFAULT_ANALYSIS.words(token.text):
                raise self._error(f"the phrase {token.text!r} has no words", token.position, "letters or digits in the quotes")
        except KeywordError as error:
            raise self._error(str(error), token.position, "a keyword") from None
        return Step(token.kind, token.text, token.position)

    def _nest(self, token: _Token) -> None:
        self.n_nested += 1
        if self.n_nested > self.most_depth:
            raise self._error(
                f"parentheses and NOT are nested deeper than {self.most_depth}", token.position, "a flatter interest"
            )
        self.waiting.append(token)

    def _push_operator(self, token: _Token) -> None:
        while self.waiting and self.waiting[-1].kind != _OPEN and _BINDING[self.waiting[-1].kind] >= _BINDING[token.kind]:
            self._emit(self.waiting.pop())
        self.waiting.append(token)

    def _close(self, token: _Token) -> None:
        while self.waiting and self.waiting[-1].kind != _OPEN:
            self._emit(self.waiting.pop())
        if not self.waiting:
            raise self._error("')' closes nothing", token.position, "a '(' before it")
        self.waiting.pop()
        self.n_nested -= 1

    def _emit(self, token: _Token) -> None:
        self.n_nested -= token.kind == NOT
        self.steps.append(Step(token.kind, token.text, token.position))

    def _error(self, what: str, position: int, expected: str) -> InterestError:
        start, end = max(position - 20, 0), position + 20
        near = ("..." if start else "") + self.text[start:end] + ("..." if end < len(self.text) else "")
        return InterestError(f"{what} at position {position}, near {near!r}; expected {expected}", position)
