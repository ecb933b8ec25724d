"""Whether the recipes of a spec's combinations are sound: what is wrong, and which line of the document is to blame."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from orchestrator.plan.checking.blame import Setter, Setters, Setting, base_setters, named_part, setter_of, with_rank
from orchestrator.plan.checking.cover import MOST_CHECKED, Combination, cover
from orchestrator.plan.checking.misplaced import Misplaced
from orchestrator.plan.problems import effort
from orchestrator.plan.reading.patch import clash
from orchestrator.plan.reading.points import cells_of, points, recipe_of, rules_of
from orchestrator.plan.reading.reader import SpecDraft
from orchestrator.spec.axis import ROLES
from orchestrator.spec.patch import apply
from orchestrator.spec.when import applies
from orchestrator.views.planned import Labels
from workers.catalog import Catalog, Problem, RecipeValidation, holds, listed, unknown
from workers.contract import PART_FIELDS

MOST_PROBLEMS: Final = 200
"""Different problems after which no more recipes are looked at."""

_MOST_NOTED: Final = 5_000
"""Problems, of which most are the same in many recipes, after which no more recipes are looked at."""
_JUDGEMENT: Final = 50  # steps: what a recipe costs beside what it has in common with others
_TOLD: Final = 3  # labels that a problem is said to come with; more say nothing

Rank = Sequence[tuple[str | None, Setting]]


class Soundness:
    """Looks at the combinations of a spec one by one, and puts what is alike together."""

    def __init__(self, draft: SpecDraft, catalog: Catalog, most: int = MOST_CHECKED) -> None:
        """`most` combinations are looked at, and as many again so that each alternative is among them."""
        self._spec = draft.spec
        self._catalog = catalog
        self._most = most
        self._judge = RecipeValidation(catalog)
        self._noted = 0
        self._possible: dict[tuple[str | None, str | None], Mapping[str, Mapping[str, None]]] = {}
        self._unreadable = draft.unreadable
        self._base = base_setters(draft.recipe_sources)
        self._misplaced = Misplaced(draft.spec, catalog)
        self._found: dict[Problem, tuple[Setter, list[Labels]]] = {}
        self._seen: list[Labels] = []
        self.datasets: dict[str, None] = {}
        """The names of all data sets that were seen, in order; an empty one where a task takes none."""

    def problems(self) -> list[Problem]:
        """Everything that is wrong with the recipes, each problem once."""
        for combination in cover(self._spec, self._most):
            self._look_at(combination)
            if len(self._found) >= MOST_PROBLEMS or self._noted >= _MOST_NOTED:
                break
        if not self._found and not self._misplaced.found:  # else a repeat would tell the same once more
            self._look_at_repeats()
        told = [Problem(one.path, one.message + self._where(*found)) for one, found in self._found.items()]
        return [*told, *self._misplaced.problems(), *self._unknown_parts({one.path for one in told})]

    def _unknown_parts(self, told: Collection[str]) -> Iterator[Problem]:
        """Parts that do not exist and that no combination trains, since something else always replaces them."""
        settings: list[Setting] = [*self._spec.rules]
        for groups in (self._spec.compare | self._spec.tune).values():
            settings += (choice for group in groups for choice in group.choices)
        base = {path: setter.source for path, setter in self._base.items()}
        patches = [(self._spec.recipe, base, ""), *((one.patch, one.sources, one.source) for one in settings)]
        for patch, sources, source in patches:
            for kind in PART_FIELDS:
                name, path = named_part(kind, patch), sources.get(kind, source or f"recipe.{kind}")
                if name and path not in told and self._catalog.get(kind, name) is None:
                    yield Problem(path, unknown(kind, name, self._catalog.names(kind)))

    def _look_at(self, combination: Combination) -> None:
        labels = {**combination.cell.labels, **combination.candidate.labels}
        self._seen.append(labels)
        ranks: list[Rank] = [
            list(zip(combination.cell.labels, combination.cell.choices, strict=True)),
            [(None, rule) for rule in rules_of(self._spec, combination.cell)],
            list(zip(combination.candidate.labels, combination.candidate.choices, strict=True)),
        ]
        if self._clashes(ranks[:2], combination.cell.labels) or self._clashes(ranks[2:], labels):
            return
        recipe = recipe_of(self._spec, combination.cell, combination.candidate)
        if dataset := named_part("dataset", recipe):
            self.datasets[dataset] = None
        elif self._takes_no_data(recipe):
            self.datasets[""] = None
        self._note_problems(recipe, ranks, labels)

    def _takes_no_data(self, recipe: Mapping[str, Any]) -> bool:
        task = self._catalog.get("task", named_part("task", dict(recipe)) or "")
        return task is not None and "dataset" not in holds(task).must

    def _look_at_repeats(self) -> None:
        """Each alternative of the repeat axes in the first cell where it applies."""
        cells = list(islice(cells_of(self._spec), MOST_CHECKED))
        for axis, groups in self._spec.repeat.items():
            for group in groups:
                cell = next((one for one in cells if applies(group.when, one.labels)), None)
                if cell is None:
                    continue
                recipe = recipe_of(self._spec, cell, next(points(self._spec.tune, cell.labels)))
                for choice in group.choices:
                    if not _is_seed(choice.patch):
                        self._note_problems(apply(recipe, [choice.patch]), [[(axis, choice)]], {axis: choice.label})
        for cell in cells[:1]:
            repeat = next(points(self._spec.repeat, cell.labels))
            self._clashes([list(zip(repeat.labels, repeat.choices, strict=True))], cell.labels)

    def _clashes(self, ranks: Sequence[Rank], labels: Labels) -> bool:
        """Whether two settings of one rank set the same path here, which is noted."""
        for rank in ranks:
            if found := clash([setting.patch for _, setting in rank]):
                path, first, second = found
                # An axis named after the path has every right to it: then the other one is to blame.
                blamed, other = (first, second) if rank[second][0] == path else (second, first)
                axis, setting = rank[blamed]
                source = setting.sources.get(path, setting.source)
                message = f"sets '{path}', as {self._named(*rank[other])} does; only one of them may in one cell"
                self._note(source, message, Setter(source, axis, setting), labels)
                return True
        return False

    def _named(self, axis: str | None, setting: Setting) -> str:
        """A rule by its place, a choice by its axis."""
        role = next((role for role in ROLES if axis in self._spec.axes(role)), None)
        return f"{role}.{axis}" if role else setting.source

    def _note_problems(self, recipe: Mapping[str, Any], ranks: Sequence[Rank], labels: Labels) -> None:
        setters: Setters | None = None
        effort.spend(_JUDGEMENT)
        for problem in self._judge.problems(recipe):
            self._noted += 1
            field = problem.path.partition(".")[0]
            if setters is None:  # most recipes are sound
                setters = self._base
                for rank in ranks:
                    setters = with_rank(setters, rank)
            setter = Setter(problem.path) if field == "select" else setter_of(problem.path, setters)
            if field in self._unreadable and setter_of(field, setters).axis is None:
                continue  # what could not be read may be what is missed; where an axis gives the whole field it is not
            name = named_part(field, dict(recipe))
            if name and self._misplaced.is_one(problem.path, name):
                self._misplaced.note(problem.path, name, setter, setter_of(field, setters))
            else:
                self._note(setter.source, problem.message, setter, labels)

    def _note(self, source: str, message: str, setter: Setter, labels: Labels) -> None:
        self._found.setdefault(Problem(source, message), (setter, []))[1].append(labels)

    def _where(self, setter: Setter, found: Sequence[Labels]) -> str:
        """The labels that a problem comes with, where its setter has it only beside some."""
        own = setter.setting.label if setter.axis and setter.setting and hasattr(setter.setting, "label") else None
        possible, present = self._around(setter.axis if own is not None else None, own), _by_axis(found)
        told = [
            f"{axis} {listed(labels)}"
            for axis, labels in present.items()
            if axis != setter.axis and len(labels) < len(possible.get(axis, ())) and len(labels) <= _TOLD
        ]
        return f" (with {', '.join(told)})" if told else ""

    def _around(self, axis: str | None, label: str | None) -> Mapping[str, Mapping[str, None]]:
        """The labels by axis of all combinations that were looked at, or of those with one label."""
        if (axis, label) not in self._possible:
            around = [labels for labels in self._seen if axis is None or labels.get(axis) == label]
            self._possible[axis, label] = _by_axis(around)
        return self._possible[axis, label]


def _by_axis(points: Sequence[Labels]) -> Mapping[str, Mapping[str, None]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for labels in points:
        for axis, label in labels.items():
            found[axis][label] = None
    return found


def _is_seed(patch: Mapping[str, Any]) -> bool:
    """Whether a patch is a seed that the contract takes, which need not be looked at."""
    seed = patch.get("seed")
    return len(patch) == 1 and type(seed) is int and 0 <= seed < 2**31
