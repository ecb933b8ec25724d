"""Reads YAML 1.2 and JSON into plain data with the line of every value, and reports every problem of the syntax."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

from yaml import events
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.error import MarkedYAMLError
from yaml.nodes import Node
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from workers.catalog.wording import Findings, Problem, brief

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 32
_MAX_NODES: Final = 100_000  # an alias counts as the values that it stands for, here and below
_MAX_CHARACTERS: Final = MAX_BYTES  # of all texts together
_LONGEST_KEY: Final = 200
_MOST_KEYS: Final = 10_000  # of one mapping

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
# These look like a space but are none to YAML; they come from web pages and word processors.
_BLANKS: Final = "\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
_BLANK: Final = re.compile(f"(?:^[ ]*(?:-[ ]+)*|[:,{{\\[-][ ]*)([{_BLANKS}])")  # where only spaces may stand
_EDGE: Final = re.compile(f"^[{_BLANKS}]|[{_BLANKS}]$")
_LONGEST: Final = 300  # characters of a message; a tag or a key may be as long as the whole document
_INDEX: Final = re.compile(r"\[(\d+)\]\.?")
_ENDS: Final = re.compile(r"[.\[]")


class DocumentError(ValueError):
    """A text is not a single YAML or JSON document of plain values; `problems` has at most 200 of its problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(str(problem) for problem in problems))


class DocumentTooLargeError(DocumentError):
    """A YAML or JSON text is longer than `MAX_BYTES`."""


Place = tuple[int, "dict[str | int, Place] | None"]
"""The line of a value or of its key, and the places of the values in it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML or JSON document as plain data, with the line of every value."""

    value: Any
    place: Place

    def line(self, path: str) -> int | None:
        """The line, from 1 on, of the value at a path such as `compare.loss[3]`; None for the empty path.

        If there is no such value, it is the line of the last existing value on the path.
        """
        if not path:
            return None
        line, inner = self.place
        while path and inner and (step := _step(inner, path)):
            (line, inner), path = step
        return line


def _step(inner: Mapping[str | int, Place], path: str) -> tuple[Place, str] | None:
    """The place of the first key or index of a path, and the rest of the path; a key may contain dots and brackets."""
    if match := _INDEX.match(path):
        return (inner[int(match[1])], path[match.end() :]) if int(match[1]) in inner else None
    ends = [len(path), *(match.start() for match in _ENDS.finditer(path))]
    end = max((end for end in ends if path[:end] in inner), default=None)
    return None if end is None else (inner[path[:end]], path[end:].removeprefix("."))


def load_document(text: bytes) -> Document:
    """Parses a UTF-8 text as one YAML or JSON document; raises DocumentError, or DocumentTooLargeError over 1 MiB."""
    if len(text) > MAX_BYTES:
        message = f"the document has {len(text):,} bytes; at most {MAX_BYTES:,} are allowed"
        raise DocumentTooLargeError([Problem("", message)])
    decoded = _decode(text)
    building = _Building(decoded)
    try:
        value, place = building.document()
    except MarkedYAMLError as error:
        _refuse_yaml(error, decoded)
    except (ReaderError, ValueError, OverflowError) as error:  # for "\UFFFFFFFF" or a version `%YAML 1.x`
        if isinstance(error, DocumentError):
            raise
        _refuse(None, "this is not YAML: a character or a version that does not exist")
    if building.problems:
        raise DocumentError(building.problems.report())
    return Document(value, place)


Scalar = str | int | float | bool | None

_CORE: Final = "tag:yaml.org,2002:"  # written `!!`

_MAX_INTEGER: Final = 2**63 - 1
_MIN_INTEGER: Final = -(2**63)
_LONGEST_INTEGER: Final = 30  # digits; Python's own limit would raise another error

_INTEGER: Final = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_NUMBER: Final = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

_PLAIN: Final = {
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(_INTEGER),
    "float": re.compile(rf"{_NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"),
}
"""The patterns of plain scalars by tag, in order of precedence."""


def _tag_of(text: str) -> str:
    """The tag of a plain scalar, such as `int`, by its form; `str` if it matches no pattern."""
    return next((tag for tag, pattern in _PLAIN.items() if pattern.fullmatch(text)), "str")


def _null(text: str) -> None:
    if text not in ("", "~") and text.lower() != "null":
        raise ValueError(f"'{_short(text)}' is not null")


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"'{_short(text)}' is neither true nor false")
    return text.lower() == "true"


def _int(text: str) -> int:
    if not re.fullmatch(_INTEGER, text):
        raise ValueError(f"'{_short(text)}' is not a whole number")
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    if len(text) > _LONGEST_INTEGER or not _MIN_INTEGER <= int(text, base) <= _MAX_INTEGER:
        raise ValueError(f"the number {_short(text)} does not fit 64 bits")
    return int(text, base)


def _float(text: str) -> float:
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(f"'{_short(text)}' is not a finite number")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {_short(text)} is out of range")
    return number


def _str(text: str) -> str:
    try:  # JSON writes a character beyond U+FFFF as two escapes
        text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("the text holds half of a surrogate pair; remove it") from None
    if "\0" in text:
        raise ValueError("the text holds a NUL character; remove it")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "null": _null, "bool": _bool, "int": _int, "float": _float, "str": _str,
}  # fmt: skip


class _Spot(NamedTuple):
    """A place in the text, both counted from 0, as a `Mark` of PyYAML is."""

    line: int
    column: int


def _refuse(mark: Any, message: str) -> NoReturn:
    raise DocumentError([_problem(mark, message)]) from None


def _problem(mark: Any, message: str) -> Problem:
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return Problem("", place + brief(message, _LONGEST), mark.line + 1 if mark else None)


def _decode(text: bytes) -> str:
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse(None, "the text is UTF-16; save it as UTF-8")
    try:
        decoded = text.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        _refuse(None, f"the text is not UTF-8: byte 0x{text[error.start]:02x} at offset {error.start}")
    if bad := Reader.NON_PRINTABLE.search(decoded):
        before = decoded[: bad.start()]
        spot = _Spot(before.count("\n"), len(before) - before.rfind("\n") - 1)
        _refuse(spot, f"the character U+{ord(bad.group()):04X} is not allowed")
    return decoded


class _Named(NamedTuple):
    """The value that an anchor names, and what each alias of it counts."""

    value: Any
    place: Place
    nodes: int
    characters: int
    levels: int


class _Building:
    """Builds plain data from the events of libyaml, and collects every problem with its place.

    It never constructs the object that a tag names. An alias is counted with all its nodes, characters and levels
    before it is copied, so that exponential documents are refused early.
    """

    def __init__(self, text: str) -> None:
        self.problems = Findings()
        # libyaml cannot read pairs of escapes, as JSON writes characters beyond U+FFFF.
        self._events: Any = _PurePython(text) if _SURROGATE.search(text) else CParser(text)
        self._nodes = self._characters = self._deepest = 0
        self._named: dict[str, _Named | None] = {}  # by anchor; None while its value is being read

    def document(self) -> tuple[Any, Place]:
        self._next()  # the start of the stream
        if isinstance(self._next(), events.StreamEndEvent):
            _refuse(None, "the document is empty; it should hold a mapping")
        found = self._value(self._next(), 1)
        self._next()  # the end of the document
        after = self._next()
        if isinstance(after, events.DocumentStartEvent):
            _refuse(after.start_mark, "a second document starts here; one is allowed")
        return found

    def _next(self) -> Any:
        return self._events.get_event()

    def _value(self, event: Any, depth: int) -> tuple[Any, Place]:
        if depth > MAX_DEPTH:
            _refuse(event.start_mark, f"the document is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, events.AliasEvent):
            return self._alias(event, depth)
        anchor = event.anchor
        if anchor is None:
            return self._content(event, depth)
        if anchor in self._named:
            _refuse(event.start_mark, f"the anchor '&{brief(anchor)}' stands twice")
        self._named[anchor] = None
        nodes, characters, outer = self._nodes, self._characters, self._deepest
        self._deepest = depth
        value, place = self._content(event, depth)
        levels = self._deepest - depth + 1
        self._deepest = max(outer, self._deepest)
        self._named[anchor] = _Named(value, place, self._nodes - nodes, self._characters - characters, levels)
        return value, place

    def _alias(self, event: Any, depth: int) -> tuple[Any, Place]:
        name = brief(event.anchor)
        if event.anchor not in self._named:
            _refuse(event.start_mark, f"found undefined alias '{name}'")
        named = self._named[event.anchor]
        if named is None:
            _refuse(event.start_mark, f"the alias '*{name}' stands within what it names")
        if depth + named.levels - 1 > MAX_DEPTH:
            _refuse(event.start_mark, f"the document is nested deeper than {MAX_DEPTH} levels")
        self._deepest = max(self._deepest, depth + named.levels - 1)
        self._count(named.nodes, named.characters, event.start_mark)
        return _copy(named.value), (event.start_mark.line + 1, named.place[1])

    def _content(self, event: Any, depth: int) -> tuple[Any, Place]:
        self._deepest = max(self._deepest, depth)
        self._count(1, len(event.value) if isinstance(event, events.ScalarEvent) else 0, event.start_mark)
        tag, line = self._tag(event), event.start_mark.line + 1
        if isinstance(event, events.MappingStartEvent):
            entries, places = self._mapping(depth)
            return self._plain(entries, event, tag, "map"), (line, places)
        if isinstance(event, events.SequenceStartEvent):
            found = [*self._sequence(depth)]
            items = self._plain([value for value, _ in found], event, tag, "seq")
            return items, (line, {at: place for at, (_, place) in enumerate(found)})
        return self._scalar(event, tag), (line, None)

    def _plain(self, value: Any, event: Any, tag: str, expected: str) -> Any:
        """A collection; None, with a problem, if its tag names another type."""
        if tag == expected:
            return value
        self._note_tag(event, tag)
        return None

    def _scalar(self, event: Any, tag: str) -> Scalar:
        if tag.startswith("!"):
            self._note_tag(event, tag)
            return None
        if event.implicit[0] and (edge := _EDGE.search(event.value)):  # allowed anywhere within quotes
            self._note(event.start_mark, _blank(edge[0]))
            return None
        try:
            if tag not in _READERS:
                raise ValueError(f"the tag '!!{tag}' is not allowed; plain values are allowed")
            return _READERS[tag](event.value)
        except ValueError as error:
            self._note(event.start_mark, str(error))
            return None

    def _count(self, nodes: int, characters: int, mark: Any) -> None:
        self._nodes += nodes
        self._characters += characters
        aliases = "an alias counted as what it stands for"
        if self._nodes > _MAX_NODES:
            _refuse(mark, f"the document holds more than {_MAX_NODES:,} values, {aliases}")
        if self._characters > _MAX_CHARACTERS:
            _refuse(mark, f"the texts of the document have more than {_MAX_CHARACTERS:,} characters, {aliases}")

    def _tag(self, event: Any) -> str:
        """A tag of the core schema without its prefix, such as `int`; any other tag with its exclamation mark."""
        if event.tag is not None and event.tag != "!":
            tag: str = event.tag
            return tag.removeprefix(_CORE) if tag.startswith(_CORE) else f"!{tag.removeprefix('!')}"
        if isinstance(event, events.ScalarEvent):
            return _tag_of(event.value) if event.implicit[0] else "str"
        return "map" if isinstance(event, events.MappingStartEvent) else "seq"

    def _note_tag(self, event: Any, tag: str) -> None:
        shown = tag if tag.startswith("!") else f"!!{tag}"
        self._note(event.start_mark, f"the tag '{shown}' is not allowed here; plain values are allowed")

    def _sequence(self, depth: int) -> Iterator[tuple[Any, Place]]:
        while _starts(event := self._next()):
            yield self._value(event, depth + 1)

    def _mapping(self, depth: int) -> tuple[dict[str, Any], dict[str | int, Place]]:
        mapping: dict[str, Any] = {}
        places: dict[str | int, Place] = {}
        while _starts(event := self._next()):
            mark = event.start_mark
            if len(places) == _MOST_KEYS:
                _refuse(mark, f"a mapping with more than {_MOST_KEYS:,} keys")
            key = self._key(event, depth)
            value, (_, inner) = self._value(self._next(), depth + 1)
            if key is not None and key not in mapping:
                mapping[key], places[key] = value, (mark.line + 1, inner)
            elif key is not None:
                self._note(mark, f"the key '{key}' stands twice; first on line {places[key][0]}")
        return mapping, places

    def _key(self, event: Any, depth: int) -> str | None:
        """The text of a key; None, with a problem, if it is not a valid text."""
        known = len(self.problems)
        key, _ = self._value(event, depth + 1)
        if isinstance(key, dict | list) or isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            self._note(event.start_mark, "a key must be text, not a list or a mapping")
        elif isinstance(event, events.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            self._note(event.start_mark, "merge keys ('<<') are not part of YAML 1.2; write the keys out")
        elif not isinstance(key, str) and len(self.problems) == known:
            written = event.value if isinstance(event, events.ScalarEvent) else key
            self._note(event.start_mark, f"a key must be text; put '{brief(str(written), 40)}' in quotes")
        elif isinstance(key, str) and len(key) > _LONGEST_KEY:
            found = f"the key '{brief(key, 40)}' has {len(key):,} characters; at most {_LONGEST_KEY} are allowed"
            self._note(event.start_mark, found)
        elif isinstance(key, str):
            return key
        return None

    def _note(self, mark: Any, message: str) -> None:
        self.problems.append(_problem(mark, message))


def _starts(event: Any) -> bool:
    return isinstance(
        event, events.ScalarEvent | events.AliasEvent | events.SequenceStartEvent | events.MappingStartEvent
    )


def _copy(value: Any) -> Any:
    """A deep copy, so that each alias has its own value."""
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _blank(character: str) -> str:
    name = unicodedata.name(character).lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name} stands where YAML wants spaces"


def _refuse_yaml(error: MarkedYAMLError, text: str) -> NoReturn:
    """Raises the parser's message on one line. Often a blank that YAML takes for text is the cause."""
    reported = error.problem_mark or error.context_mark
    mark: Any = reported
    found = error.problem or error.context or "this is not YAML"
    lines = text.splitlines()[: mark.line + 1] if mark else []
    blanks = [(n, at) for n, line in enumerate(lines) if (at := _BLANK.search(line))]
    if "cannot start any token" in found and reported and text[reported.index : reported.index + 1] == "\t":
        found = "a tab stands where YAML wants spaces"
    elif blanks:
        line, at = blanks[-1]
        mark, found = _Spot(line, at.start(1)), _blank(at[1])
    elif error.context and error.problem:
        found = f"{found} ({error.context})"
    _refuse(mark, " ".join(found.replace("in this context", "here").split()))


class _PurePython(Reader, Scanner, Parser):
    """PyYAML's own parser: a tenth as fast as libyaml, but it reads pairs of escapes and gives exact places."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        """Also skips tabs within brackets: JSON may be indented with them, and YAML 1.2 allows it."""
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            self.forward()
            super().scan_to_next_token()


class _Loader(_PurePython, Composer, BaseResolver):
    """Parses up to nodes; block texts end where an editor expects it."""

    def __init__(self, text: str) -> None:
        _PurePython.__init__(self, text)
        Composer.__init__(self)
        BaseResolver.__init__(self)


def nodes(text: bytes) -> tuple[str, Node]:
    """Parses a YAML text to characters and a tree of nodes with their places, for edits that keep the rest of the
    text.
    """
    decoded = text.decode("utf-8").removeprefix("\ufeff")
    node = _Loader(decoded).get_single_node()
    assert node is not None
    return decoded, node
