"""Sets values in the text of a spec: `recipe.validation` to `none`; comments and order stay."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestrator.plan.reading.document import parse
from orchestrator.plan.reading.positions import nodes
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Problem, shown

Steps = Sequence[str | int]
"""The keys and positions that lead to a value; the last key may be a new one."""

_INDEX: Final = re.compile(r"\[(\d{1,6})\]")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*")


def edited(text: bytes, assignments: Sequence[str]) -> bytes:
    """`text` with each `path=value` done in turn; a value is YAML, and a path is as the messages of a check write it.

    Raises InvalidSpecError for a text that is no YAML and for an assignment that means nothing, TooLargeError.
    """
    for assignment in assignments:
        path, sign, given = assignment.partition("=")
        if not sign or not path.strip() or not given.strip():
            _refuse(assignment, "expected PATH=VALUE, such as select.split=test")
        try:
            value = parse(given.encode())
        except InvalidSpecError as error:
            _refuse(assignment, f"the value is no YAML: {error.problems[0].message}")
        text = _assigned(text, path.strip(), value, assignment)
    return text


def _refuse(assignment: str, message: str) -> None:
    raise InvalidSpecError([Problem(f"--set {assignment}", message)]) from None


def _assigned(text: bytes, path: str, value: Any, assignment: str) -> bytes:
    document = parse(text)
    try:
        steps, value = _steps(document, path, value)
    except ValueError as error:
        raise InvalidSpecError([Problem(f"--set {assignment}", str(error))]) from None
    return placed(text, steps, value)


def placed(text: bytes, steps: Steps, value: Any) -> bytes:
    """`text` with `value` at the end of `steps`, of which all but the last are there."""
    wanted = _put(parse(text), steps, value)
    spliced = _spliced(text, steps, value)
    try:
        if parse(spliced) == wanted:
            return spliced
    except InvalidSpecError:  # an anchor was cut out, or the value stands behind an alias
        pass
    return json.dumps(wanted, indent=2, ensure_ascii=False).encode() + b"\n"


# Paths


def _steps(document: Any, path: str, value: Any) -> tuple[list[str | int], Any]:
    """The way to `path` in a document, and the value at its end, wrapped where a block is missing on the way.

    Keys may hold dots, as axes do, so at each mapping the longest key that fits is taken.
    """
    steps: list[str | int] = []
    here, rest = document, path
    while rest:
        if isinstance(here, list):
            match = _INDEX.match(rest)
            if not match or int(match[1]) >= len(here):
                raise ValueError(f"{_spelled(steps)} is a list of {len(here)}; expected a position from [0] on")
            steps.append(int(match[1]))
            here, rest = here[int(match[1])], rest[match.end() :].removeprefix(".")
            continue
        if not isinstance(here, Mapping):
            raise ValueError(f"{_spelled(steps)} is {shown(here)} and has nothing within it")
        key = _key(here, rest) if steps else _first(rest)
        steps.append(key)
        rest = rest[len(key) :].removeprefix(".")
        if rest and here.get(key) is None:  # a block that the spec lacks
            return steps, {rest: value}
        here = here.get(key)
    return steps, value


def _first(path: str) -> str:
    """The key of the spec itself, in which there is never a dot."""
    found = re.match(r"[^.\[]+", path)
    if not found:
        raise ValueError(f"{shown(path)} is no path; expected one such as recipe.iterations")
    return found[0]


def _key(mapping: Mapping[str, Any], path: str) -> str:
    """The longest key of the mapping that `path` is or leads through; the whole path where none is."""
    fitting = [key for key in mapping if path == key or _leads(mapping[key], path.removeprefix(key), path, key)]
    return max(fitting, key=len, default=path)


def _leads(value: Any, rest: str, path: str, key: str) -> bool:
    """Whether `path` goes on with `rest` within the value at `key`."""
    if not path.startswith(key):
        return False
    return (isinstance(value, Mapping) and rest.startswith(".")) or (isinstance(value, list) and rest.startswith("["))


def _spelled(steps: Steps) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _put(here: Any, steps: Steps, value: Any) -> Any:
    """A copy of plain data with `value` at the end of `steps`."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(here, list):
        return [_put(one, rest, value) if at == step else one for at, one in enumerate(here)]
    return {**here, step: _put(here.get(step), rest, value)}


# Text


def _spliced(raw: bytes, steps: Steps, value: Any) -> bytes:
    """The text with `value` in place of what stands at `steps`, or after its neighbours where nothing does."""
    text, node = nodes(raw)
    plain = json.dumps(value, ensure_ascii=False)
    for step in steps:
        if isinstance(node, SequenceNode) and isinstance(step, int):
            node = node.value[step]
            continue
        assert isinstance(node, MappingNode)
        child = next((one for key, one in node.value if key.value == step), None)
        if child is None:
            return _inserted(text, node, f"{_written(str(step), node)}: {plain}")
        node = child
    start, end = node.start_mark.index, _end(node, text)
    if isinstance(node, SequenceNode) and text[:start].rstrip().endswith(":"):  # `-` may stand as far left as its key
        start = len(text[:start].rstrip())
    blank = "" if text[start - 1].isspace() or text[start - 1] in "[{" else " "
    return f"{text[:start]}{blank}{plain}{text[end:]}".encode()


def _written(key: str, mapping: MappingNode) -> str:
    """A new key, without quotes where its neighbours have none: in JSON they have."""
    plain = mapping.value and mapping.value[-1][0].style is None and _PLAIN_KEY.fullmatch(key)
    return key if plain else json.dumps(key, ensure_ascii=False)


def _inserted(text: str, mapping: MappingNode, line: str) -> bytes:
    """The text with `line` as the last entry of a mapping."""
    end = _end(mapping, text)
    if mapping.flow_style:
        comma = ", " if mapping.value else ""
        return f"{text[: end - 1].rstrip()}{comma}{line}{text[end - 1 :]}".encode()
    end = text.find("\n", end) if "\n" in text[end:] else len(text)  # behind a comment on the last line
    return f"{text[:end]}\n{' ' * mapping.start_mark.column}{line}{text[end:]}".encode()


def _end(node: Node, text: str) -> int:
    """Where the text of a node ends; a block's mark stands behind the blank lines and comments that follow it."""
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, MappingNode) else last, text)
    end: int = node.end_mark.index
    return len(text[:end].rstrip()) if isinstance(node, ScalarNode) and node.style in ("|", ">") else end
