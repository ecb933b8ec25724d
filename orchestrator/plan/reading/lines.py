"""Where in a spec's text a problem is: the line of what its path leads to."""

import re
from collections.abc import Iterable
from typing import Final

from yaml import YAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestrator.plan.reading.positions import nodes
from workers.catalog import Problem

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
