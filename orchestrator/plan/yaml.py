"""A YAML document as plain data with the place of every value, and every problem of its form."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from yaml import YAMLError
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from orchestrator.plan.problems import Findings
from orchestrator.views.errors import InvalidSpecError, TooLargeError
from workers.catalog import Problem, brief


class PurePython(Reader, Scanner, Parser):
    """PyYAML's own reading up to events, a tenth as fast as libyaml's: of what that cannot read, and for its places."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip tabs too within brackets: JSON may be indented with them, and YAML 1.2 allows it."""
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            self.forward()
            super().scan_to_next_token()


class _Loader(PurePython, Composer, BaseResolver):
    """The same up to nodes, whose ends of block texts are where an editor looks for them."""

    def __init__(self, text: str) -> None:
        PurePython.__init__(self, text)
        Composer.__init__(self)
        BaseResolver.__init__(self)


def nodes(text: bytes) -> tuple[str, Node]:
    """A text that `parse` has read, as characters, and the tree of its nodes with their places in it."""
    decoded = text.decode("utf-8").removeprefix("\ufeff")
    node = _Loader(decoded).get_single_node()
    assert node is not None
    return decoded, node


MOST_BYTES: Final = 65_536
"""Of a larger text no lines are told: to read the places takes a second for each 100 KB."""
_SAID: Final = re.compile(r"\bline (\d+)")
_INDEX: Final = re.compile(r"\[(\d+)\]\.?")


def lines(body: bytes, problems: Iterable[Problem]) -> list[int | None]:
    """The line of each problem, from 1 on; none where it cannot be told."""
    root: Node | None = None
    if len(body) <= MOST_BYTES:
        try:
            root = nodes(body)[1]
        except (YAMLError, ValueError, AssertionError, RecursionError):  # what cannot be read says its lines itself
            root = None
    return [_line(root, one) for one in problems]


def _line(root: Node | None, problem: Problem) -> int | None:
    if root is not None and problem.path:
        return _reached(root, problem.path)
    said = _SAID.search(problem.message)
    return int(said[1]) if said else None


def _reached(node: Node, path: str) -> int:
    """The line of the deepest node on the way: a problem may be that something is missing there."""
    line = int(node.start_mark.line) + 1
    rest = path
    while rest:
        step = _step(node, rest)
        if step is None:
            return line
        key_line, node, rest = step
        line = key_line + 1
    return line


def _step(node: Node, path: str) -> tuple[int, Node, str] | None:
    """The line of the next key or item on the way, its node, and the path that is left; keys may hold dots."""
    if isinstance(node, SequenceNode):
        match = _INDEX.match(path)
        if not match or int(match[1]) >= len(node.value):
            return None
        item = node.value[int(match[1])]
        return item.start_mark.line, item, path[match.end() :]
    if not isinstance(node, MappingNode):
        return None
    fitting = [
        (key, value)
        for key, value in node.value
        if isinstance(key, ScalarNode) and re.match(rf"{re.escape(key.value)}(?=[.\[]|$)", path)
    ]
    if not fitting:
        return None
    key, value = max(fitting, key=lambda pair: len(pair[0].value))
    return key.start_mark.line, value, path[len(key.value) :].removeprefix(".")


Scalar = str | int | float | bool | None

CORE: Final = "tag:yaml.org,2002:"
"""What the tags of the schema begin with; written `!!`."""

MAX_INTEGER: Final = 2**63 - 1
MIN_INTEGER: Final = -(2**63)
_LONGEST_INTEGER: Final = 30  # digits; longer fits no 64 bits, and Python's own limit is an error of another kind

_INTEGER: Final = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_NUMBER: Final = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

PLAIN: Final[Mapping[str, tuple[str, str]]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (_INTEGER, "-+0123456789"),
    "float": (rf"{_NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
}
"""By tag, in order of precedence: the pattern of its plain scalars and the characters that these begin with."""


def tag_of(text: str) -> str:
    """The tag that a plain scalar has by what it looks like, such as `int`; `str` where it looks like nothing else."""
    return next((tag for tag, pattern in _BY_FIRST.get(text[:1], ()) if pattern.fullmatch(text)), "str")


def read(tag: str, text: str) -> Scalar:
    """The value of a scalar by its tag, such as `int`; ValueError says what is wrong with it."""
    if tag not in _READERS:
        raise ValueError(f"the tag '!!{tag}' is not allowed; a spec holds plain values only")
    return _READERS[tag](text)


_PATTERNS: Final = {tag: (re.compile(pattern), first) for tag, (pattern, first) in PLAIN.items()}
_BY_FIRST: Final = {
    first: [(tag, pattern) for tag, (pattern, firsts) in _PATTERNS.items() if first in firsts]
    for first in {one for _, firsts in _PATTERNS.values() for one in firsts}
} | {"": [("null", _PATTERNS["null"][0])]}


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
    if len(text) > _LONGEST_INTEGER or not MIN_INTEGER <= int(text, base) <= MAX_INTEGER:
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
        raise ValueError("this text holds half of a surrogate pair") from None
    if "\0" in text:
        raise ValueError("this text holds a NUL character")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "null": _null, "bool": _bool, "int": _int, "float": _float, "str": _str,
}  # fmt: skip


MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 100_000
"""Values in a document, an alias counted as what it stands for."""
MAX_CHARACTERS: Final = MAX_BYTES
"""Of all texts of a document, an alias counted as what it stands for."""
LONGEST_KEY: Final = 200
MOST_KEYS: Final = 10_000
"""Keys of one mapping."""

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BLANKS: Final = "\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
"""What looks like a space and is none to YAML: pages and word processors bring it."""
_BLANK: Final = re.compile(f"(?:^[ ]*(?:-[ ]+)*|[:,{{\\[-][ ]*)([{_BLANKS}])")  # where only spaces may stand
_EDGE: Final = re.compile(f"^[{_BLANKS}]|[{_BLANKS}]$")
_LONGEST: Final = 300  # characters of a message, since a tag or a key may fill the whole spec


class _Mark(Protocol):
    """A place in the text, both counted from 0; PyYAML's marks are such."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class _Spot(NamedTuple):
    line: int
    column: int


def parse(text: bytes) -> Any:
    """Give the one document that `text` holds, as dicts, lists, strings, numbers, booleans and None.

    Raises TooLargeError over 1 MiB, InvalidSpecError with lines and columns otherwise.
    """
    if len(text) > MAX_BYTES:
        raise TooLargeError(f"The spec has {len(text):,} bytes; at most {MAX_BYTES:,} are allowed.")
    decoded = _decode(text)
    building = _Building(decoded)
    try:
        value = building.document()
    except MarkedYAMLError as error:
        _refuse_yaml(error, decoded)
    except (ReaderError, ValueError, OverflowError):  # on a character such as "\UFFFFFFFF", or a version %YAML 1.x
        _refuse(None, "this is not YAML: a character or a version that does not exist")
    if building.problems:
        raise InvalidSpecError(building.problems.told())
    return value


def _refuse(mark: _Mark | None, message: str) -> NoReturn:
    raise InvalidSpecError([_problem(mark, message)]) from None


def _problem(mark: _Mark | None, message: str) -> Problem:
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return Problem("", place + brief(message, _LONGEST))


# Bytes to text


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


# Text to plain data


class _Named(NamedTuple):
    """What an anchor names, and what each alias of it counts as."""

    value: Any
    nodes: int
    characters: int
    levels: int


class _Building:
    """Builds plain data from the events of libyaml, noting every problem with its place.

    What a tag names is never constructed. Nodes, characters and levels are counted as if aliases were written out, and
    before they are: what explodes is refused before it does.
    """

    def __init__(self, text: str) -> None:
        self.problems = Findings()
        # libyaml knows no pairs of escapes, in which JSON writes a character beyond U+FFFF.
        self._events: Any = PurePython(text) if _SURROGATE.search(text) else CParser(text)
        self._nodes = self._characters = self._deepest = 0
        self._named: dict[str, _Named | None] = {}  # by anchor; none: it is still open

    def document(self) -> Any:
        """The value of the one document."""
        self._next()  # the start of the stream
        if isinstance(self._next(), StreamEndEvent):
            _refuse(None, "the spec is empty; it needs at least `version`, `name` and `recipe`")
        value = self._value(self._next(), 1)
        self._next()  # the end of the document
        after = self._next()
        if isinstance(after, DocumentStartEvent):
            _refuse(after.start_mark, "a second document starts here; a spec is one document")
        return value

    def _next(self) -> Any:
        return self._events.get_event()

    def _value(self, event: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            _refuse(event.start_mark, f"the spec is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, AliasEvent):
            return self._alias(event, depth)
        anchor = event.anchor
        if anchor is None:
            return self._content(event, depth)
        if anchor in self._named:
            _refuse(event.start_mark, f"the anchor '&{brief(anchor)}' stands twice")
        self._named[anchor] = None
        nodes, characters, outer = self._nodes, self._characters, self._deepest
        self._deepest = depth
        value = self._content(event, depth)
        levels = self._deepest - depth + 1
        self._deepest = max(outer, self._deepest)
        self._named[anchor] = _Named(value, self._nodes - nodes, self._characters - characters, levels)
        return value

    def _alias(self, event: Any, depth: int) -> Any:
        name = brief(event.anchor)
        if event.anchor not in self._named:
            _refuse(event.start_mark, f"found undefined alias '{name}'")
        named = self._named[event.anchor]
        if named is None:
            _refuse(event.start_mark, f"the alias '*{name}' stands within what it names")
        if depth + named.levels - 1 > MAX_DEPTH:
            _refuse(event.start_mark, f"the spec is nested deeper than {MAX_DEPTH} levels")
        self._deepest = max(self._deepest, depth + named.levels - 1)
        self._count(named.nodes, named.characters, event.start_mark)
        return _copy(named.value)

    def _content(self, event: Any, depth: int) -> Any:
        self._deepest = max(self._deepest, depth)
        self._count(1, len(event.value) if isinstance(event, ScalarEvent) else 0, event.start_mark)
        tag = self._tag(event)
        if isinstance(event, MappingStartEvent):
            entries = self._mapping(depth)
            return entries if tag == "map" else self._strange(event, tag)
        if isinstance(event, SequenceStartEvent):
            items = self._sequence(depth)
            return items if tag == "seq" else self._strange(event, tag)
        if tag.startswith("!"):
            return self._strange(event, tag)
        if event.implicit[0] and (edge := _EDGE.search(event.value)):  # in quotes it may stand anywhere
            return self._note(event.start_mark, _blank(edge[0]))
        try:
            return read(tag, event.value)
        except ValueError as error:
            return self._note(event.start_mark, str(error))

    def _count(self, nodes: int, characters: int, mark: _Mark) -> None:
        self._nodes += nodes
        self._characters += characters
        so = "an alias counted as what it stands for"
        if self._nodes > MAX_NODES:
            _refuse(mark, f"the spec holds more than {MAX_NODES:,} values, {so}")
        if self._characters > MAX_CHARACTERS:
            _refuse(mark, f"the texts of the spec have more than {MAX_CHARACTERS:,} characters, {so}")

    def _tag(self, event: Any) -> str:
        """The tag of the core schema without its beginning; any other with its exclamation mark."""
        if event.tag is not None and event.tag != "!":
            given: str = event.tag
            return given.removeprefix(CORE) if given.startswith(CORE) else f"!{given.removeprefix('!')}"
        if isinstance(event, ScalarEvent):
            return tag_of(event.value) if event.implicit[0] else "str"
        return "map" if isinstance(event, MappingStartEvent) else "seq"

    def _strange(self, event: Any, tag: str) -> None:
        shown = tag if tag.startswith("!") else f"!!{tag}"
        self._note(event.start_mark, f"the tag '{shown}' is not allowed here; a spec holds plain values only")

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while _starts(event := self._next()):
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while _starts(event := self._next()):
            mark = event.start_mark
            if len(lines) == MOST_KEYS:
                _refuse(mark, f"a mapping with more than {MOST_KEYS:,} keys")
            key = self._key(event, depth)
            value = self._value(self._next(), depth + 1)
            if key is not None and key not in mapping:
                mapping[key] = value
                lines[key] = mark.line + 1
            elif key is not None:
                self._note(mark, f"the key '{key}' stands twice; first on line {lines[key]}")
        return mapping

    def _key(self, event: Any, depth: int) -> str | None:
        """The text of a key; none where it is no text, which is then noted."""
        known = len(self.problems)
        key = self._value(event, depth + 1)
        if isinstance(key, dict | list) or isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._note(event.start_mark, "a key must be text, not a list or a mapping")
        elif isinstance(event, ScalarEvent) and event.value == "<<" and event.implicit[0]:
            self._note(event.start_mark, "merge keys ('<<') are not part of YAML 1.2; write the keys out")
        elif not isinstance(key, str) and len(self.problems) == known:
            written = event.value if isinstance(event, ScalarEvent) else key
            self._note(event.start_mark, f"a key must be text; put '{brief(str(written), 40)}' in quotes")
        elif isinstance(key, str) and len(key) > LONGEST_KEY:
            said = f"the key '{brief(key, 40)}' has {len(key):,} characters; at most {LONGEST_KEY} are allowed"
            self._note(event.start_mark, said)
        elif isinstance(key, str):
            return key
        return None

    def _note(self, mark: _Mark | None, message: str) -> None:
        self.problems.append(_problem(mark, message))


def _starts(event: Any) -> bool:
    return isinstance(event, ScalarEvent | AliasEvent | SequenceStartEvent | MappingStartEvent)


def _copy(value: Any) -> Any:
    """Lists and mappings anew, so that an alias stands for a copy of its own."""
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _blank(character: str) -> str:
    name = unicodedata.name(character).lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name} stands where YAML wants spaces"


def _refuse_yaml(error: MarkedYAMLError, text: str) -> NoReturn:
    """The parser's own words, on one line; a blank that is no space, which it takes for text, is what went wrong."""
    told = error.problem_mark or error.context_mark
    mark: _Mark | None = told
    found = error.problem or error.context or "this is not YAML"
    lines = text.splitlines()[: mark.line + 1] if mark else []
    blanks = [(n, at) for n, line in enumerate(lines) if (at := _BLANK.search(line))]
    if "cannot start any token" in found and told and text[told.index : told.index + 1] == "\t":
        found = "a tab stands where YAML wants spaces"
    elif blanks:
        line, at = blanks[-1]
        mark, found = _Spot(line, at.start(1)), _blank(at[1])
    elif error.context and error.problem:
        found = f"{found} ({error.context})"
    _refuse(mark, " ".join(found.replace("in this context", "here").split()))
