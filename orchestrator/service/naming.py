"""Whether a stored spec names a part: in its recipe, on an axis, by a rule, or as a metric that it shows."""

from collections.abc import Iterator, Mapping
from typing import Any


def named(spec: Mapping[str, Any], kind: str, name: str) -> bool:
    """Of a spec as JSON, of whatever release: what is not understood names nothing."""
    if kind == "metric":
        shown = (spec.get("tables"), spec.get("figures"), spec.get("select"), (spec.get("recipe") or {}).get("metrics"))
        return any(text.partition("@")[0] == name for block in shown for text in _texts(block))
    return any(_name(patch.get(kind)) == name for patch in _patches(spec))


def _patches(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield spec.get("recipe") or {}
    for role in ("compare", "tune", "repeat"):
        for groups in (spec.get(role) or {}).values():
            for group in groups:
                yield from (choice.get("patch") or {} for choice in group.get("choices") or ())
    yield from (rule.get("patch") or {} for rule in spec.get("rules") or ())


def _name(part: Any) -> Any:
    return part.get("name") if isinstance(part, Mapping) else part


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for one in node.values():
            yield from _texts(one)
    elif isinstance(node, list):
        for one in node:
            yield from _texts(one)
