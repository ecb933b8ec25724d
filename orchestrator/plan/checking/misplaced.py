"""Hyper-parameters at parts that do not have them, and the `when` that would keep them away."""

from collections.abc import Iterator

from orchestrator.plan.checking.blame import Setter, group_of, named_part
from orchestrator.spec.axis import Group
from orchestrator.spec.label import flow
from orchestrator.spec.patch import Rule
from orchestrator.spec.spec import Spec
from workers.catalog import BATCH, Catalog, Problem, listed, meant


class Misplaced:
    """Collects them over all combinations, so that one problem names every part that lacks the hyper-parameter."""

    def __init__(self, spec: Spec, catalog: Catalog) -> None:
        self._spec = spec
        self._catalog = catalog
        self._found: dict[tuple[str, str], tuple[Setter, Setter, dict[str, None]]] = {}

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return bool(self._found)

    def is_one(self, path: str, name: str | None) -> bool:
        """Whether `path` is a hyper-parameter that the part named `name` does not have."""
        kind, dot, option = path.partition(".")
        entry = self._catalog.get(kind, name) if name else None
        # One within a part within it is told by its own part.
        return bool(dot and "." not in option and entry and entry.parameter(option) is None)

    def note(self, path: str, name: str, setter: Setter, part_setter: Setter) -> None:
        """Take note that `setter` gave `path` to the part that `part_setter` chose."""
        source = setter.source
        if setter.axis == path and setter.setting is not None:  # all values of the axis, or of its group, are alike
            group = group_of(setter, self._spec)
            source = group.source if group else source
        _, _, names = self._found.setdefault((source, path), (setter, part_setter, {}))
        names[name] = None

    def problems(self) -> Iterator[Problem]:
        """One problem a hyper-parameter and a place."""
        for (source, path), (setter, part_setter, names) in self._found.items():
            kind, _, option = path.partition(".")
            lacking = f"{kind}s {listed(names)} have" if len(names) > 1 else f"{kind} {listed(names)} has"
            right = self._right(path, setter, part_setter, list(names))
            yield Problem(source, f"{lacking} no hyper-parameter '{option}'; {right}")

    def _right(self, path: str, setter: Setter, part_setter: Setter, names: list[str]) -> str:
        group = group_of(setter, self._spec) if setter.axis == path else None
        if (group or isinstance(setter.setting, Rule)) and part_setter.axis and part_setter.axis != setter.axis:
            when = group.when if group else setter.setting.when if isinstance(setter.setting, Rule) else {}
            labels = self._having(path, part_setter.axis, when.get(part_setter.axis))
            if labels:
                add = "narrow `when` to" if part_setter.axis in when else "add"
                limit = f"{{{part_setter.axis}: {flow(labels)}}}"
                return f"{add} `{limit}`" if part_setter.axis in when else f"{add} `when: {limit}`"
        kind, _, option = path.partition(".")
        entries = [self._catalog.get(kind, name) for name in names]
        known = dict.fromkeys(one.name for entry in entries if entry for one in entry.parameters)
        if kind == "sampler" and option in BATCH and "per_class" in known:
            return "the batch is `classes` x `per_class`"
        return meant(option, known) if known else "it has none"

    def _having(self, path: str, axis: str, among: list[str] | None) -> list[str]:
        """The alternatives of an axis whose part has the hyper-parameter."""
        kind, _, option = path.partition(".")
        groups: list[Group] = (self._spec.compare | self._spec.tune).get(axis, [])
        found: dict[str, None] = {}
        for choice in (choice for group in groups for choice in group.choices):
            entry = self._catalog.get(kind, named_part(kind, choice.patch) or "")
            if entry and entry.parameter(option) and (among is None or choice.label in among):
                found[choice.label] = None
        return list(found)
