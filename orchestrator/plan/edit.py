"""Edits the text of a posted spec, and keeps its comments and layout."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestrator.plan.read import SUBSET_KEYS, match, read, spec_document, taken
from orchestrator.spec.fields import label_of as spelt
from orchestrator.spec.spec import ROLES, Choice, Spec, labels_of, seed_axis, seed_of
from orchestrator.views.errors import ConflictError, InvalidSpecError
from orchestrator.views.runs import Labels
from orchestrator.views.sweeps import AxisGroup
from workers.catalog import Problem, nodes, shown, suggestion

Steps = Sequence[str | int]
"""The keys and positions that lead to a value; a key at the end may be new."""

MOST_ADDED: Final = 100
"""The alternatives that are added to an axis at once."""
_INDEX: Final = re.compile(r"\[(\d{1,6})\]")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*")


def edited(text: bytes, assignments: Sequence[str]) -> bytes:
    """Applies `--set` assignments `path=value` to the YAML text of a spec; paths are as in messages, values are YAML.

    Raises InvalidSpecError for a text that is no YAML and for an assignment that means nothing, TooLargeError.
    """
    for assignment in assignments:
        path, sign, given = assignment.partition("=")
        if not sign or not path.strip() or not given.strip():
            _refuse(assignment, "expected PATH=VALUE, such as select.split=test")
        try:
            value = spec_document(given.encode()).value
        except InvalidSpecError as error:
            _refuse(assignment, f"the value is no YAML: {error.problems[0].message}")
        try:
            steps, value = _steps(spec_document(text).value, path.strip(), value)
        except ValueError as error:
            _refuse(assignment, str(error))
        text = placed(text, steps, value)
    return text


def _refuse(assignment: str, message: str) -> NoReturn:
    raise InvalidSpecError([Problem(f"--set {assignment}", message)]) from None


def placed(text: bytes, steps: Steps, value: Any) -> bytes:
    """Sets the value at the path `steps` in the YAML text of a spec; all steps but the last must exist."""
    return _agreeing(_spliced(text, steps, value), _put(spec_document(text).value, steps, value))


def _agreeing(spliced: bytes, expected: Any) -> bytes:
    """The spliced text if it has the `expected` content, or else that content as JSON."""
    try:
        if spec_document(spliced).value == expected:
            return spliced
    except InvalidSpecError:  # an anchor was cut out, or the value stands behind an alias
        pass
    return json.dumps(expected, indent=2, ensure_ascii=False).encode() + b"\n"


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
                raise ValueError(f"{_spelled(steps)} is a list of {len(here)} items; expected a position in it")
            steps.append(int(match[1]))
            here, rest = here[int(match[1])], rest[match.end() :].removeprefix(".")
            continue
        if not isinstance(here, Mapping):
            raise ValueError(f"{_spelled(steps)} is {shown(here)}, which has no fields")
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
        raise ValueError(f"{shown(path)} is not a path into the spec; expected a path such as recipe.iterations")
    return found[0]


def _key(mapping: Mapping[str, Any], path: str) -> str:
    """The longest key of the mapping that `path` begins with; by default the whole path."""
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
    """A new key, quoted if its neighbours are quoted, as in JSON."""
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


def _appended(text: str, node: Node, steps: Steps, values: Sequence[Any]) -> tuple[int, str]:
    """The position and the text by which `values` become the last items of the list at `steps` below `node`."""
    for step in steps:
        if isinstance(node, SequenceNode) and isinstance(step, int):
            node = node.value[step]
        else:
            node = next(one for key, one in node.value if key.value == step)
    assert isinstance(node, SequenceNode)
    items = [json.dumps(value, ensure_ascii=False) for value in values]
    if node.flow_style:
        end = _end(node.value[-1], text) if node.value else node.start_mark.index + 1
        return end, f"{', ' if node.value else ''}{', '.join(items)}"
    end = text.find("\n", _end(node, text))  # behind a comment on the last line
    return end if end >= 0 else len(text), "".join(f"\n{' ' * node.start_mark.column}- {item}" for item in items)


def _end(node: Node, text: str) -> int:
    """Where the text of a node ends; a block's mark stands behind the blank lines and comments that follow it."""
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, MappingNode) else last, text)
    end: int = node.end_mark.index
    return len(text[:end].rstrip()) if isinstance(node, ScalarNode) and node.style in ("|", ">") else end


def excerpt(text: bytes, only: Sequence[str], without: Sequence[str]) -> bytes:
    """Narrows the YAML text of a spec to a subset, by `axis=label,label` for its `only` and `without`.

    Several of one axis add up, and take the place of an `only` of that axis that stands in the text. Raises
    InvalidSpecError for a text that is no YAML, and for axes and labels that the spec does not have; TooLargeError.
    """
    document = spec_document(text).value
    if not isinstance(document, Mapping):
        return text  # which the check refuses
    spec = read({key: value for key, value in document.items() if key not in SUBSET_KEYS}, []).spec
    for key, given in zip(SUBSET_KEYS, (only, without), strict=True):
        for axis, labels in _asked(key, given, spec).items():
            posted = document.get(key)
            block = posted if isinstance(posted, Mapping) else {}
            together = [*_listed(block[axis]), *labels] if key == "without" and axis in block else labels
            text = placed(text, [key, axis], together) if block else placed(text, [key], {axis: together})
            document = spec_document(text).value
    return text


def _asked(key: str, given: Sequence[str], spec: Spec) -> dict[str, list[Any]]:
    """The labels of each axis that options name; numbers are numbers."""
    known = {name: labels_of(axis) for role in ROLES for name, axis in spec.axes(role).items()}
    by_axis: dict[str, list[Any]] = {}
    for option in given:
        axis, sign, labels = (part.strip() for part in option.partition("="))
        place = f"--{key} {option}"
        if not sign or not axis:
            raise InvalidSpecError([Problem(place, "expected AXIS=LABEL,LABEL, such as dataset=cub200,cars196")])
        problems: list[Problem] = []
        right = taken({axis: list(_split(labels, known.get(axis, ())))}, key, known, spec.recipe, problems)
        if problems:
            raise InvalidSpecError([Problem(place, one.message) for one in problems])
        by_axis[axis] = list(dict.fromkeys([*by_axis.get(axis, []), *map(_plain, right[axis])]))
    return by_axis


def _split(given: str, labels: Collection[str]) -> Iterator[str]:
    """What stands between commas, the longest label first, since labels may hold commas."""
    parts = given.split(",")
    while parts:
        taken, label = next(
            ((end, one) for end in range(len(parts), 0, -1) if (one := ",".join(parts[:end]).strip()) in labels),
            (1, parts[0].strip()),
        )
        yield match(label, labels) or label
        parts = parts[taken:]


def _plain(label: str) -> Any:
    """A label as it is written in YAML: a number without quotes."""
    try:
        value = json.loads(label)
    except ValueError:
        return label
    return value if isinstance(value, int | float) and spelt(value) == label else label


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def with_metrics(text: bytes, spec: Mapping[str, Any], names: Sequence[str]) -> bytes:
    """Adds metrics to the recipe and tables of a spec's YAML text; `spec` is the normalized spec with its defaults.

    Raises InvalidSpecError for a spec without tables, or whose base recipe is none, TooLargeError.
    """
    document = spec_document(text).value
    tables = spec.get("tables") or {}
    if not tables or not isinstance(document.get("recipe"), Mapping):
        raise InvalidSpecError([Problem("tables", "the sweep has no table to which a column could be added")])
    recipe = document["recipe"]
    text = placed(text, ["recipe", "metrics"], _joined(recipe.get("metrics") or [], names))
    if not isinstance(document.get("tables"), Mapping):  # without tables the spec has the default table
        text = placed(text, ["tables"], {name: {} for name in tables})
    for name in tables:
        posted = (spec_document(text).value["tables"] or {}).get(name)
        if not isinstance(posted, Mapping):
            text = placed(text, ["tables", name], {})
            posted = {}
        shown = posted.get("metrics") or tables[name]["metrics"]
        text = placed(text, ["tables", name, "metrics"], _joined(shown, names))
    return text


def with_figures(text: bytes, names: Sequence[str]) -> bytes:
    """`text` with these figures of the recipe, each once; raises InvalidSpecError if its base recipe is none."""
    recipe = spec_document(text).value.get("recipe")
    if not isinstance(recipe, Mapping):
        raise InvalidSpecError([Problem("recipe", "the sweep has no recipe to which a figure could be added")])
    known = recipe.get("figures") or []
    there = {figure if isinstance(figure, str) else figure.get("name") for figure in known}
    added = [name for name in dict.fromkeys(names) if name not in there]
    return placed(text, ["recipe", "figures"], [*known, *added])


def _joined(known: Sequence[Any], names: Sequence[str]) -> list[Any]:
    there = {name for one in known if (name := one if isinstance(one, str) else _tested(one))}
    return [*known, *(name for name in dict.fromkeys(names) if name not in there)]


def _tested(column: Mapping[str, Any]) -> str | None:
    """The metric of a column that shows its value on `test`; None for a difference or another split."""
    own = column.get("split", "test") == "test" and column.get("delta") is None
    return column.get("metric") if own else None


def with_seeds(text: bytes, spec: Spec, cells: Mapping[int, Labels], seeds: Mapping[int, Sequence[int]]) -> bytes:
    """Adds seeds to the repeat axis of a spec's YAML text, by cell; cells with equal labels share their seeds.

    Raises ConflictError where its trainings are not repeated by a seed, or a subset of them was taken by it.
    """
    axis = seed_axis(spec)
    if axis is None:
        raise ConflictError(
            "seeds cannot be added: no repeat axis sets the seed; expected `repeat: {seed: [0, 1, 2]}`, in a new sweep"
        )
    for key, labels in (("only", spec.only), ("without", spec.without)):
        if axis.name in labels:
            raise ConflictError(
                f"seeds cannot be added: the sweep is a subset by {axis.name} (`{key}`); list the seeds in `repeat` "
                "of a new sweep instead, which reuses what is trained"
            )
    groups = [_posted([_value(one) for one in group.choices], group.when) for group in spec.repeat[axis.name]]
    for cell, added in seeds.items():
        when = {name: [label] for name, label in cells[cell].items()}
        same = next((one for one in groups if one.get("when", {}) == when), None)
        if same is None:
            groups.append(same := _posted([], when))
        same["values"] += [seed for seed in added if seed not in same["values"]]
    return placed(text, ("repeat", axis.name), [_short(one) for one in groups])


def with_alternatives(text: bytes, added: Mapping[AxisGroup, str]) -> bytes:
    """`text` with further alternatives of its axes; they are YAML with commas between them, such as `sec, l2`.

    Raises InvalidSpecError for no YAML, and for axes that the text does not have or is a subset by; TooLargeError.
    """
    document = expected = spec_document(text).value
    written, root = nodes(text)
    additions, problems = [], []
    for group, given in added.items():
        try:
            steps, posted, values = _addition(document, group, given)
        except ValueError as error:
            problems.append(Problem(f"{group.role}.{group.axis}", str(error)))
            continue
        if values:
            expected = _put(expected, steps, [*posted, *values])
            additions.append(_appended(written, root, steps, values))
    if problems:
        raise InvalidSpecError(problems)
    if not additions:
        return text
    for at, more in sorted(additions, reverse=True):  # from the end, so that the positions before stay valid
        written = f"{written[:at]}{more}{written[at:]}"
    return _agreeing(written.encode(), expected)


def _addition(document: Any, group: AxisGroup, given: str) -> tuple[Steps, list[Any], list[Any]]:
    """The way to the list of a group's alternatives, the list, and the given values; raises ValueError."""
    try:
        values = spec_document(f"[{given}]".encode()).value
    except InvalidSpecError as error:
        raise ValueError(f"the values are no YAML: {error.problems[0].message}") from None
    if group.axis in (document.get("only") or {}):
        raise ValueError(f"the sweep is a subset by {group.axis} (`only`); extend it by a spec whose `only` is wider")
    if len(values) > MOST_ADDED:
        raise ValueError(f"adds {len(values)} alternatives; at most {MOST_ADDED} at once")
    steps, posted = _alternatives(document, group)
    if posted is None:
        raise ValueError("the spec lists no alternatives here that could be added to")
    return steps, posted, values


def _alternatives(document: Any, group: AxisGroup) -> tuple[list[str | int], list[Any] | None]:
    """The way to the list of a group's alternatives, and the list; `None` means that the text has no such list."""
    block = document.get(group.role)
    posted = block.get(group.axis) if isinstance(block, Mapping) else None
    steps: list[str | int] = [group.role, group.axis]
    if isinstance(posted, list) and any(isinstance(one, Mapping) and "values" in one for one in posted):
        posted = posted[group.at] if group.at < len(posted) else None
        steps.append(group.at)
    elif group.at:
        posted = None
    if isinstance(posted, Mapping):
        posted = posted.get("values")
        steps.append("values")
    return steps, posted if isinstance(posted, list) else None


def _posted(values: list[Any], when: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {"values": values, "when": {axis: list(labels) for axis, labels in when.items()}}


def _value(choice: Choice) -> Any:
    seed = seed_of(choice)
    return seed if choice.label == str(seed) else {"label": choice.label, "patch": choice.patch}


def _short(group: Mapping[str, Any]) -> dict[str, Any]:
    when = {axis: labels[0] if len(labels) == 1 else labels for axis, labels in group["when"].items()}
    return {"values": group["values"]} | ({"when": when} if when else {})


def with_rows(text: bytes, table: str | None, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Adds imported rows to a table (default: the first) of a spec's YAML; they replace rows of equal label and source.

    Raises InvalidSpecError where there is no such table, TooLargeError.
    """
    document = spec_document(text).value
    tables = document.get("tables") if isinstance(document, Mapping) else None
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidSpecError([Problem("tables", "the spec has no `tables` to import rows into; add a table")])
    name = table if table is not None else next(iter(tables))
    if not isinstance(posted := tables.get(name), Mapping):
        raise InvalidSpecError([Problem(f"tables.{name}", f"there is no such table; {suggestion(str(name), tables)}")])
    known = posted.get("imported")
    new = {(one["label"], one["source"]) for one in rows}
    kept = [
        one
        for one in (known if isinstance(known, list) else ())
        if not isinstance(one, Mapping) or (one.get("label"), one.get("source")) not in new
    ]
    return placed(text, ["tables", name, "imported"], [*kept, *rows])
