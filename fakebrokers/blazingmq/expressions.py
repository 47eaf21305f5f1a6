"""Expressions of subscriptions over message properties (docs/protocols/blazingmq.md, 9; bmqeval).

    takes = compile_expression('region == "eu" && exists(amount) && amount > 100')
    takes({"region": "eu", "amount": 200})

A message whose properties do not allow an answer (one is absent, or of another type) does not match.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fakebrokers.errors import FakeBrokerError

Value = bool | int | str
Properties = Mapping[str, Value]
Evaluate = Callable[[Properties], Value]

MAX_LENGTH = 128
MAX_OPERATORS = 10
MAX_PROPERTIES = 10
_I64 = range(-(2**63), 2**63)

_TOKEN = re.compile(
    r"""[ \t\n]*(?:
    (?P<word>[a-zA-Z][a-zA-Z0-9_.]*) |
    (?P<integer>-?[0-9]+) |
    "(?P<string>(?:[^\\"]|\\.)*)" |
    (?P<sign>\|\||&&|==|!=|<=|>=|[<>!~+\-*/%()]) |
    (?P<end>\Z) |
    (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)

#: Binary operators by how strongly they bind; those of one rank go from left to right.
_RANKS = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">=": 4,
    ">": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}
_UNARY_RANK = 7
_NOT_CHAINED = {3, 4}  # a == b == c is no expression
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">=": operator.ge,
    ">": operator.gt,
}


class BadExpression(FakeBrokerError):
    """A text that is no expression."""


class _Undecided(Exception):
    """The properties of a message do not allow an answer."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def compile_expression(text: str) -> Callable[[Properties], bool]:
    """A test for the properties of messages.

    Raises:
        BadExpression: It is none, or a broker would find it too long or too complex.
    """
    if len(text) > MAX_LENGTH:
        raise BadExpression(f"expected at most {MAX_LENGTH} characters, got {len(text)}")
    parser = _Parser(text)
    evaluate = parser.expression(0)
    parser.expect("end", "")
    if parser.operators > MAX_OPERATORS:
        raise BadExpression(f"expected at most {MAX_OPERATORS} operators, got {parser.operators}")
    if not 1 <= parser.properties <= MAX_PROPERTIES:
        raise BadExpression(f"expected 1 to {MAX_PROPERTIES} properties, got {parser.properties}")

    def matches(properties: Properties) -> bool:
        try:
            return evaluate(properties) is True
        except _Undecided:
            return False

    return matches


class _Parser:
    """Reads an expression, operators by their rank."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)
        self.operators = 0
        self.properties = 0

    def _take(self) -> _Token:
        taken = self._next
        if taken.kind != "end":
            self._next = next(self._tokens)
        return taken

    def expect(self, kind: str, text: str) -> None:
        """Read a token that has to come next."""
        token = self._take()
        if (token.kind, token.text) != (kind, text):
            raise BadExpression(
                f"expected {text or 'the end'} at {token.at}, got {token.text or 'the end'!r}"
            )

    def expression(self, rank: int) -> Evaluate:
        """Read an expression of operators that bind more strongly than `rank`."""
        left = self._operand()
        chained = 0
        while self._next.kind == "sign" and _RANKS.get(self._next.text, 0) > rank:
            sign = self._take()
            own = _RANKS[sign.text]
            if own == chained:
                raise BadExpression(f"expected no second comparison at {sign.at}, got {sign.text!r}")
            chained = own if own in _NOT_CHAINED else 0
            self.operators += 1
            left = _binary(sign.text, left, self.expression(own))
        return left

    def _operand(self) -> Evaluate:
        token = self._take()
        if token.kind == "integer":
            return _Literal(_checked(token))
        if token.kind == "string":
            return _Literal(token.text)
        if token.kind == "word":
            return self._word(token)
        if token.text == "(":
            inner = self.expression(0)
            self.expect("sign", ")")
            return inner
        if token.kind == "sign" and token.text in ("!", "~", "-"):
            self.operators += 1
            return _unary(token.text, self.expression(_UNARY_RANK))
        raise BadExpression(f"expected a value at {token.at}, got {token.text or 'the end'!r}")

    def _word(self, token: _Token) -> Evaluate:
        if token.text in ("true", "false"):
            return _Literal(token.text == "true")
        self.properties += 1
        if token.text == "exists" and self._next.text == "(":
            self._take()
            name = self._take()
            if name.kind != "word":
                raise BadExpression(f"expected a property at {name.at}, got {name.text!r}")
            self.expect("sign", ")")
            return lambda properties: name.text in properties
        return _property(token.text)


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        kind = str(found.lastgroup)
        yield _Token(kind, found[kind], found.start(kind))
        if kind == "end":
            return


def _checked(token: _Token) -> int:
    number = int(token.text)
    if number not in _I64:
        raise BadExpression(f"expected a number of 64 bits at {token.at}, got {token.text}")
    return number


class _Literal:
    """A value that stands in the text."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, properties: Properties) -> Value:
        return self.value


def _property(name: str) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        if name not in properties:
            raise _Undecided
        return properties[name]

    return evaluate


def _boolean(value: Value) -> bool:
    if not isinstance(value, bool):
        raise _Undecided
    return value


def _number(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Undecided
    return value


def _unary(sign: str, operand: Evaluate) -> Evaluate:
    if sign == "-":
        return lambda properties: -_number(operand(properties))
    return lambda properties: not _boolean(operand(properties))


def _binary(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if sign == "||":
        return lambda properties: _boolean(left(properties)) or _boolean(right(properties))
    if sign == "&&":
        return lambda properties: _boolean(left(properties)) and _boolean(right(properties))
    if sign in _COMPARISONS:
        simpler = _with_boolean(sign, left, right) or _with_boolean(sign, right, left)
        return simpler or _comparison(_COMPARISONS[sign], left, right)
    return lambda properties: _calculated(sign, _number(left(properties)), _number(right(properties)))


def _with_boolean(sign: str, literal: Evaluate, other: Evaluate) -> Evaluate | None:
    """A comparison with `true` or `false`, as they stand in the text, is the other side or its contrary."""
    if sign not in ("==", "!=") or not isinstance(literal, _Literal) or not isinstance(literal.value, bool):
        return None
    same = literal.value is (sign == "==")
    if isinstance(other, _Literal) and isinstance(other.value, bool):
        return _Literal(other.value is same)
    return other if same else lambda properties: not _boolean(other(properties))


def _comparison(compare: Callable[[Any, Any], bool], left: Evaluate, right: Evaluate) -> Evaluate:
    """Of two strings or two numbers; booleans cannot be compared."""

    def evaluate(properties: Properties) -> bool:
        one, other = left(properties), right(properties)
        if isinstance(one, str):
            if not isinstance(other, str):
                raise _Undecided
            return compare(one, other)
        return compare(_number(one), _number(other))

    return evaluate


def _calculated(sign: str, one: int, other: int) -> int:
    """As a C++ compiler has it: 64 bits, and quotients are cut off towards zero."""
    if sign in "/%":
        if other == 0 or (one == _I64[0] and other == -1):
            raise _Undecided
        quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        return quotient if sign == "/" else one - other * quotient
    result = {"+": one + other, "-": one - other, "*": one * other}[sign]
    return (result - _I64[0]) % 2**64 + _I64[0]
