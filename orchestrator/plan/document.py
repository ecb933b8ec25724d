"""Reads what was posted, YAML 1.2 or JSON, into plain data; refuses what is malformed, ambiguous or too large."""

import re
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from yaml.composer import Composer, ComposerError
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from orchestrator.errors import InvalidSpecError, Problem, TooLargeError
from orchestrator.plan.scalar import CORE, PLAIN, read

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 100_000
"""Values in a document, an alias counted as what it stands for."""


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
    node = _compose(_decode(text))
    build = _Build()
    value = build.value(node, 1)
    if build.problems:
        raise InvalidSpecError(build.problems)
    return value


def nodes(text: bytes) -> tuple[str, Node]:
    """`text` as characters, and the tree of its nodes with their places in it; raises as `parse` does."""
    decoded = _decode(text)
    return decoded, _compose(decoded)


def _refuse(mark: _Mark | None, message: str) -> NoReturn:
    raise InvalidSpecError([_problem(mark, message)]) from None


def _problem(mark: _Mark | None, message: str) -> Problem:
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return Problem("", place + (message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."))


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


# Text to nodes


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's pure-Python reading up to nodes, with YAML 1.2's plain scalars and with limits.

    It constructs no objects, so that no tag can either.
    """

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._depth = 0
        self._nodes = 0
        self._sizes: dict[str, int] = {}  # by anchor; an anchor without one is still open

    def scan_to_next_token(self) -> None:
        """Skip tabs too within brackets: JSON may be indented with them, and YAML 1.2 allows it."""
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            self.forward()
            super().scan_to_next_token()

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose, counting depth and expanded size, so that what explodes is refused before it does."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        anchor = event.anchor
        if isinstance(event, AliasEvent):
            if anchor in self.anchors and anchor not in self._sizes:
                _refuse(event.start_mark, f"the alias '*{anchor}' stands within what it names")
            self._count(self._sizes.get(anchor, 0), event.start_mark)
            return super().compose_node(parent, index)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            _refuse(event.start_mark, f"the spec is nested deeper than {MAX_DEPTH} levels")
        before = self._nodes
        self._count(1, event.start_mark)
        node = super().compose_node(parent, index)
        if anchor is not None:
            self._sizes[anchor] = self._nodes - before
        self._depth -= 1
        return node

    def _count(self, nodes: int, mark: _Mark | None) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            _refuse(mark, f"the spec holds more than {MAX_NODES:,} values, an alias counted as what it stands for")


for _tag, (_pattern, _first) in PLAIN.items():
    _starts = [*_first, ""] if _tag == "null" else list(_first)
    _Loader.add_implicit_resolver(CORE + _tag, re.compile(rf"(?:{_pattern})\Z"), _starts)


def _compose(text: str) -> Node:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except ComposerError as error:
        if error.problem == "but found another document":
            _refuse(error.problem_mark, "a second document starts here; a spec is one document")
        _refuse_yaml(error)
    except MarkedYAMLError as error:
        _refuse_yaml(error)
    except (ValueError, OverflowError):  # PyYAML's on an escape such as "\UFFFFFFFF" or a version such as %YAML 1.x
        _refuse(loader.get_mark(), "this is not YAML: a character or a version that does not exist")
    if node is None:
        _refuse(None, "the spec is empty; it needs at least `version`, `name` and `recipe`")
    return node


def _refuse_yaml(error: MarkedYAMLError) -> NoReturn:
    """PyYAML's own words, on one line."""
    found = error.problem or error.context or "this is not YAML"
    if "'\\t'" in found:
        found = "a tab stands where YAML wants spaces"
    elif error.context and error.problem:
        found = f"{found} ({error.context})"
    _refuse(error.problem_mark or error.context_mark, " ".join(found.split()))


# Nodes to plain data


class _Build:
    """Turns nodes into plain data, noting every problem with its place."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def value(self, node: Node, depth: int) -> Any:
        if depth > MAX_DEPTH:  # an alias may lead deeper than what was composed
            _refuse(node.start_mark, f"the spec is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, MappingNode) and node.tag == CORE + "map":
            return self._mapping(node, depth)
        if isinstance(node, SequenceNode) and node.tag == CORE + "seq":
            return [self.value(item, depth + 1) for item in node.value]
        if isinstance(node, ScalarNode) and node.tag.startswith(CORE):
            try:
                return read(node.tag.removeprefix(CORE), node.value)
            except ValueError as error:
                return self._note(node, str(error))
        tag = node.tag.replace(CORE, "!!")
        return self._note(node, f"the tag '{tag}' is not allowed here; a spec holds plain values only")

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            value = self.value(value_node, depth + 1)
            key = self._key(key_node)
            if isinstance(key, str) and key not in found:
                found[key] = value
                lines[key] = key_node.start_mark.line + 1
            elif isinstance(key, str):
                self._note(key_node, f"the key '{key}' stands twice; first on line {lines[key]}")
        return found

    def _key(self, node: Node) -> str | None:
        """The text of a key; none where it is no text, which is then noted."""
        if not isinstance(node, ScalarNode):
            self._note(node, "a key must be text, not a list or a mapping")
            return None
        if node.value == "<<" and node.style is None:
            self._note(node, "merge keys ('<<') are not part of YAML 1.2; write the keys out")
            return None
        known = len(self.problems)
        key = self.value(node, 1)
        if not isinstance(key, str) and len(self.problems) == known:
            self._note(node, f"a key must be text; put '{node.value[:40]}' in quotes")
        return key if isinstance(key, str) else None

    def _note(self, node: Node, message: str) -> None:
        problem = _problem(node.start_mark, message)
        if problem not in self.problems[-20:]:  # an alias repeats what it names
            self.problems.append(problem)
