r"""The language that filters lists of trials: parses its text into conditions, or reports the place of an error.

    filter      = alternative { "or" alternative }
    alternative = part { [ "and" ] part }
    part        = [ "-" | "not" ] ( "(" filter ")" | condition | word )
    condition   = name operator value { "," value }
    operator    = ":" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"
    name, value, word = characters without blanks, quotes, parentheses and operators, or "a text": \" is a quote in it

A word is searched in the labels of the axes, in tags and in the sweep's name. `:` and `=` compare a whole label, in any
case of letters, or a number, or one of several (`loss:triplet,semihard`), or a range with its ends (`eta:0.1..1`,
`eta:0.1..`); `~` searches a part of a text. A value may have operators (`started>2026-11-22T10:30`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from orchestrator.views.errors import InvalidFilterError

LONGEST: Final = 1_000  # characters
MOST_CONDITIONS: Final = 40
MOST_VALUES: Final = 50  # of a condition
DEEPEST: Final = 8  # nested parentheses

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~"]


@dataclass(frozen=True, slots=True)
class Word:
    """A word in a filter: text that a label, tag or name must contain."""

    text: str
    at: int  # its position in the filter


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in a filter: a column, an operator and values."""

    name: str
    operator: Operator
    values: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a part of a filter."""

    part: "Filter"


@dataclass(frozen=True, slots=True)
class All:
    """Parts of a filter that all have to hold; an empty filter has none."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Alternatives in a filter, of which at least one has to hold."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Word | Condition | Not | All | Either


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["text", "quoted", "operator", "comma", "open", "close", "not", "end"]
    text: str
    at: int


_SIGNS: Final = r'(?P<open>\()|(?P<close>\))|(?P<comma>,)|(?P<quoted>"(?:[^"\\]|\\.)*")'
_VALUE: Final = re.compile(rf'{_SIGNS}|(?P<text>[^\s"(),]+)', re.DOTALL)
_NAME: Final = re.compile(
    rf'{_SIGNS}|(?P<operator>!=|<=|>=|[:=<>~])|(?P<not>-(?=\S))|(?P<text>[^\s"(),:=<>~!]+)', re.DOTALL
)


def parse(text: str) -> Filter:
    """Parse the text of a filter; raises InvalidFilterError with the position of the error."""
    if len(text) > LONGEST:
        raise InvalidFilterError(f"has {len(text):,} characters; at most {LONGEST:,} are allowed", 0)
    if (at := text.find("\x00")) >= 0:
        raise InvalidFilterError("holds a character that no text has (NUL); leave it out", at)
    return _Parser(text).whole()


def conditions(part: Filter) -> Iterator[Word | Condition]:
    """All words and conditions of a filter, in order."""
    match part:
        case Not(inner):
            yield from conditions(inner)
        case All(parts) | Either(parts):
            for inner in parts:
                yield from conditions(inner)
        case _:
            yield part


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next, self._conditions = 0, 0

    def whole(self) -> Filter:
        if self._seen.kind == "end":
            return All(())
        parsed = self._any(0)
        left = self._take()
        if left.kind != "end":
            raise InvalidFilterError("a `)` that nothing opened; leave it out, or quote it", left.at)
        return parsed

    @property
    def _seen(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._seen
        self._next += 1
        return token

    def _is(self, word: str) -> bool:
        return self._seen.kind == "text" and self._seen.text.lower() == word and self._following != "operator"

    @property
    def _following(self) -> str:
        return self._tokens[self._next + 1].kind

    def _any(self, depth: int) -> Filter:
        parts = [self._all(depth)]
        while self._is("or"):
            self._take()
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _all(self, depth: int) -> Filter:
        parts = [self._part(depth)]
        while self._seen.kind not in ("end", "close") and not self._is("or"):
            if self._is("and"):
                self._take()
            parts.append(self._part(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _part(self, depth: int) -> Filter:
        if self._seen.kind == "not" or (self._is("not") and self._following != "end"):
            self._take()
            if self._seen.kind == "not" or self._is("not"):
                raise InvalidFilterError("the opposite of an opposite; leave both out", self._seen.at)
            return Not(self._part(depth))
        token = self._take()
        if token.kind == "open":
            if depth == DEEPEST:
                raise InvalidFilterError(f"parentheses within more than {DEEPEST} others; write it flatter", token.at)
            inner = self._any(depth + 1)
            if self._take().kind != "close":
                raise InvalidFilterError("a `(` that nothing closes; add `)`", token.at)
            return inner
        if token.kind not in ("text", "quoted") or self._ends(token):
            raise InvalidFilterError(_wanted(token), token.at)
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise InvalidFilterError(f"more than {MOST_CONDITIONS} conditions; leave some out", token.at)
        return self._condition(token) if self._seen.kind == "operator" else Word(token.text, token.at)

    def _ends(self, token: _Token) -> bool:
        return token.kind == "text" and token.text.lower() in ("or", "and") and self._seen.kind != "operator"

    def _condition(self, name: _Token) -> Condition:
        sign = self._take()
        values = [self._value(name, sign)]
        while self._seen.kind == "comma":
            self._take()
            values.append(self._value(name, sign))
        if len(values) > MOST_VALUES:
            raise InvalidFilterError(f"{len(values)} values; at most {MOST_VALUES} are allowed", sign.at)
        if len(values) > 1 and sign.text not in (":", "=", "!=", "~"):
            raise InvalidFilterError(f"`{sign.text}` takes one value; `:` takes several", sign.at)
        operator: Operator = "=" if sign.text == ":" else sign.text  # type: ignore[assignment]
        return Condition(name.text, operator, tuple(values), name.at)

    def _value(self, name: _Token, sign: _Token) -> str:
        if self._seen.kind not in ("text", "quoted") or not self._seen.text:
            raise InvalidFilterError(
                f"a value is missing after `{name.text}{sign.text}`; such as `loss:triplet`, `eta<0.5`", self._seen.at
            )
        return self._take().text


def _wanted(token: _Token) -> str:
    found = "the filter ends" if token.kind == "end" else f"`{token.text}` stands"
    return f"{found} where a word or a condition is wanted, such as `loss:triplet` or `map@r>.6`"


def _tokens(text: str) -> Iterator[_Token]:
    at, value = 0, False  # `value`: whether a value comes next, which may have operators
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = (_VALUE if value else _NAME).match(text, at)
        if found is None and text[at] == '"':
            raise InvalidFilterError('a `"` that nothing closes; add another, or write \\" for the sign itself', at)
        if found is None:
            raise InvalidFilterError(f"`{text[at]}` stands where nothing is meant by it; quote it, or leave it out", at)
        kind: Any = found.lastgroup
        word = re.sub(r"\\(.)", r"\1", found[0][1:-1], flags=re.DOTALL) if kind == "quoted" else found[0]
        yield _Token(kind, word, at)
        at, value = found.end(), kind in ("operator", "comma")
    yield _Token("end", "", at)
