"""Reads a filter: `state:failed and (eval_loss < 1.2 or lr = 1e-5) -tag:old judge`.

    filter      = either
    either      = both ("or" both)*
    both        = one (["and"] one)*
    one         = ("not" | "-") one | "(" either ")" | comparison | word
    comparison  = field ("=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | ":") value ("," value)*

A field or value with blanks or signs is quoted, with `\\"` for a quote. Lists of values follow `:` and `=` only.
"""

from __future__ import annotations

import re

from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import (
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    Negation,
    Operator,
    Search,
    Word,
)

LONGEST = 2_000
_DEEPEST = 30
_BLANK = re.compile(r"\s*")
_OPERATORS: tuple[tuple[str, Operator], ...] = (
    ("<=", "<="),
    (">=", ">="),
    ("!=", "!="),
    ("==", "="),
    ("<", "<"),
    (">", ">"),
    ("=", "="),
    ("~", "~"),
)
_OPERATOR_HINT = "The operators are = != < <= > >= ~ and `:`."
_PLAIN = re.compile(r"[^\s()\"<>=!~:,]+")
# A value may hold the signs of operators: a time has colons.
_VALUE = re.compile(r"[^\s()\",]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_KEYWORD = re.compile(r"(and|or|not)(?![^\s()\"])", re.IGNORECASE)


def parse(text: str) -> Expression | None:
    """The filter of a text; None for a blank one, which lets everything through. Raises `BadFilter`."""
    if len(text) > LONGEST:
        raise BadFilter(f"a filter has at most {LONGEST} characters", LONGEST, len(text) - LONGEST)
    if "\x00" in text:
        raise BadFilter("a filter has no NUL character", text.index("\x00"))
    parser = _Parser(text)
    parser.skip()
    if parser.ended:
        return None
    expression = parser.either()
    if not parser.ended:
        raise BadFilter("this `)` closes nothing", parser.at)
    return expression


class _Parser:
    """`at` is behind blanks whenever a rule begins or has ended."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    def skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at

    def either(self) -> Expression:
        parts = [self.both()]
        while self._keyword("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def both(self) -> Expression:
        parts = [self.term()]
        while True:
            joined = self._keyword("and")
            if not joined and (self.ended or self.text[self.at] == ")" or self._sees("or")):
                return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))
            parts.append(self.term())

    def term(self) -> Expression:
        if self.ended:
            raise BadFilter("something is missing at the end", self.at)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise BadFilter(f"parentheses and negations are nested more than {_DEEPEST} deep", self.at)
        try:
            return self._term()
        finally:
            self.depth -= 1

    def _term(self) -> Expression:
        letter = self.text[self.at]
        if self._keyword("not"):
            return Negation(self.term())
        for word in ("and", "or"):
            if self._sees(word):
                detail = f"`{word}` needs something before it"
                raise BadFilter(detail, self.at, len(word), hint=f'Write "{word}" in quotes to search for it.')
        if letter == "-" and self.at + 1 < len(self.text) and not self.text[self.at + 1].isspace():
            self.at += 1
            return Negation(self.term())
        if letter == "(":
            return self._group()
        if letter == ")":
            raise BadFilter("this `)` closes nothing", self.at)
        return self._comparison()

    def _group(self) -> Expression:
        opened = self.at
        self.at += 1
        self.skip()
        expression = self.either()
        if self.ended:
            raise BadFilter("this `(` is not closed", opened)
        self.at += 1
        self.skip()
        return expression

    def _comparison(self) -> Expression:
        field = self._word(_PLAIN)
        if not self.ended and self.text[self.at] == ":":
            self.at += 1
            return Comparison(field, ":", self._values(field, listed=True))
        self.skip()
        for sign, operator in _OPERATORS:
            if self.text.startswith(sign, self.at):
                self.at += len(sign)
                self.skip()
                return Comparison(field, operator, self._values(field, listed=operator == "="))
        return Search(field)

    def _values(self, field: Word, *, listed: bool) -> tuple[Word, ...]:
        values = [self._value(field)]
        while listed and not self.ended and self.text[self.at] == ",":
            self.at += 1
            values.append(self._value(field))
        if not self.ended and self.text[self.at] == ",":
            raise BadFilter("several values follow only `:` and `=`", self.at)
        self.skip()
        return tuple(values)

    def _value(self, field: Word) -> Word:
        if self.ended or self.text[self.at].isspace() or self.text[self.at] in "(),":
            detail = f"`{field.text}` is compared with nothing"
            raise BadFilter(detail, self.at, hint="Put a text with blanks in quotes.")
        return self._word(_VALUE)

    def _word(self, pattern: re.Pattern[str]) -> Word:
        """A quoted text, or what the pattern takes."""
        start = self.at
        if self.text[start] == '"':
            quoted = _QUOTED.match(self.text, start)
            if quoted is None:
                raise BadFilter("this quote is not closed", start)
            self.at = quoted.end()
            return Word(_ESCAPED.sub(r"\1", quoted[1]), start, self.at - start, quoted=True)
        plain = pattern.match(self.text, start)
        if plain is None:
            raise BadFilter(f"`{self.text[start]}` has no field before it", start, hint=_OPERATOR_HINT)
        self.at = plain.end()
        return Word(plain[0], start, self.at - start)

    def _sees(self, keyword: str) -> bool:
        """Whether the keyword comes next, and not a field of this name."""
        match = _KEYWORD.match(self.text, self.at)
        return match is not None and match[1].lower() == keyword

    def _keyword(self, keyword: str) -> bool:
        if not self._sees(keyword):
            return False
        self.at += len(keyword)
        self.skip()
        return True
