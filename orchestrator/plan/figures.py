"""Reads the figures of a spec."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from orchestrator.plan.layouts import Nameable, at_the_end, facts_of, missing, spelt_texts, tasks
from orchestrator.plan.points import limited
from orchestrator.plan.read import DocumentPlace, SpecDraft, form_problems, matched, readable, spec_document
from orchestrator.spec.fields import Reading, flow, number_of
from orchestrator.spec.layouts import DATA, FITTING, QUANTITIES, STAGED, FigureSpec
from orchestrator.spec.spec import Spec, applies, labels_of
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Catalog, Entry, Findings, Problem, listed, metric_problem, suggestion
from workers.contract import Select

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "line": ("x",), "bars": ("x",), "heatmap": ("x", "y"), "distribution": ("data",), "scatter": ("data",),
    "images": ("data",),
}  # fmt: skip
"""The fields that each kind needs; a kind that draws `data` needs no axes."""


def check_figures(
    figures: Mapping[str, FigureSpec], draft: SpecDraft, nameable: Nameable, problems: list[Problem]
) -> dict[str, FigureSpec]:
    """Checks the figures of a spec, appends to `problems`, and returns the figures with labels as their axes spell
    them.
    """
    return {
        name: _Figure(DocumentPlace(f"figures.{name}", problems), draft, nameable).checked(figure)
        for name, figure in readable(figures.items())
    }


def read_figure(body: bytes, spec: Spec, catalog: Catalog) -> FigureSpec:
    """The figure that `body` describes, checked as the figures of the spec are; raises InvalidSpecError."""
    problems = Findings()
    document = spec_document(body)
    with limited():
        try:
            figure = FigureSpec.model_validate(document.value, strict=True, context=Reading())
        except ValidationError as error:
            raise InvalidSpecError([*form_problems(error)]) from None
        nameable = Nameable(spec.named("dataset"), catalog)
        draft = SpecDraft(spec, {}, {}, {})
        figure = _Figure(DocumentPlace("figure", problems), draft, nameable).checked(figure)
    if problems:
        raise InvalidSpecError(problems.report())
    return figure


class _Figure:
    """Checks one figure, noting what is wrong with it."""

    def __init__(self, place: DocumentPlace, draft: SpecDraft, nameable: Nameable) -> None:
        self._place, self._note = place, place.note
        self._spec, self._unreadable = draft.spec, draft.unreadable
        self._datasets, self._catalog = nameable.datasets, nameable.catalog
        compare, tune = draft.spec.compare, draft.spec.tune
        self._labels = {axis: labels_of(groups) for axis, groups in (compare | tune).items()}

    def checked(self, figure: FigureSpec) -> FigureSpec:
        """The figure with its labels spelt as their axes spell them."""
        known = {axis: self._labels[axis] for axis in self._spec.compare}
        when = matched(figure.when, f"{self._place.path}.when", known, self._place.problems)
        labels = {axis: spelt_texts(axis, texts, self._spec, self._place) for axis, texts in figure.labels.items()}
        fitting = FITTING[figure.kind]
        unfit = [
            field for field in FigureSpec.model_fields if field in figure.model_fields_set and field not in fitting
        ]
        for field in unfit:
            self._note(field, f"means nothing for kind '{figure.kind}', which takes {listed(fitting[1:])}")
        left_out = {field: FigureSpec.model_fields[field].get_default(call_default_factory=True) for field in unfit}
        figure = figure.model_copy(update={"when": when, "labels": labels, **left_out})
        self._check(figure)
        return figure

    def _check(self, figure: FigureSpec) -> None:
        if figure.metric is not None and figure.data is not None:
            self._note("data", "stands next to `metric`; a figure draws one of them")
        elif figure.kind == "best_of":
            self._check_compared(figure)
        elif figure.metric is None and figure.data is None:
            expected = "`data`" if _NEEDED.get(figure.kind) == ("data",) else "`metric`"
            self._note("", f"names nothing to draw; give {expected}")
        elif figure.data is not None:
            self._check_data(figure, figure.data)
        else:
            self._check_metrics(figure)
            for field in _NEEDED.get(figure.kind, ()):
                if field != "data" and getattr(figure, field) is None:
                    self._note(field, f"is missing; name one of {listed(self._labels)}")
        self._check_axes(figure)
        for field, axes in (("labels", figure.labels), ("titles", figure.titles)):
            for axis in axes:
                if axis not in self._labels and not (field == "titles" and axis in figure.metrics):
                    self._note(f"{field}.{axis}", f"there is no axis '{axis}'; {suggestion(axis, self._labels)}")

    def _check_compared(self, figure: FigureSpec) -> None:
        """Notes tune axes, over which the best candidate is taken."""
        for axis in figure.axes:
            if axis in self._spec.tune:
                compared = listed(self._spec.compare) if self._spec.compare else "none"
                self._note("", f"'{axis}' is a tune axis, over which the best is taken; compare axes are {compared}")

    # What is drawn

    def _check_metrics(self, figure: FigureSpec) -> None:
        metrics = figure.metrics
        for at, metric in enumerate(metrics):
            field = "metric" if isinstance(figure.metric, str) else f"metric[{at}]"
            if metric in metrics[:at]:
                self._note(field, f"'{metric}' stands twice")
            elif figure.kind == "curves":
                named = tasks(self._spec, self._catalog)
                if wrong := trouble_of_curve(metric, self._spec.select, named, self._catalog):
                    self._note(field, wrong)
            else:
                self._check_metric(metric, field)
        if isinstance(figure.metric, list) and not metrics:
            self._note("metric", "expected at least one metric, found []")
        if figure.reference is not None:
            self._check_metric(figure.reference, "reference")

    def _check_metric(self, metric: str, field: str) -> None:
        if wrong := metric_problem(metric, self._catalog):
            self._note(field, wrong)
            return
        for dataset in self._datasets:
            if wrong := missing(metric, dataset, self._spec, self._catalog):
                self._note(field, wrong)

    def _check_data(self, figure: FigureSpec, data: str) -> None:
        kept = None if "figures" in self._unreadable else kept_data(self._spec)
        if wrong := _trouble_of_data(figure.kind, data, kept):
            self._note("data", wrong)
        held = QUANTITIES.get(data.partition("-")[0], ())
        quantities = held if len(held) > 1 else ()
        for at, quantity in enumerate(figure.show or ()):
            if quantity not in quantities:
                right = suggestion(quantity, quantities) if quantities else f"'{data}' holds one; leave `show` out"
                self._note(f"show[{at}]", f"'{data}' has no quantity '{quantity}'; {right}")
        if figure.windows and data != "direction_variation":
            self._note("windows", f"'{data}' has no windows; only 'direction_variation' looks again and again")
        if figure.stages is not None and data not in STAGED:
            self._note("stages", f"'{data}' has no stages; only {listed(STAGED)} look at some")
        for field in ("x", "y", "x_scale", "unit", "decimals"):
            if getattr(figure, field) is not None:
                self._note(field, f"means nothing where `data` is drawn: '{data}' brings its own")

    # The axes

    def _check_axes(self, figure: FigureSpec) -> None:
        facets = figure.facets
        if len(facets) > 2:
            self._note("facet", f"expected one axis, or two for columns and rows; found {len(facets)}")
        fields = {"x": figure.x, "y": figure.y, "colour": figure.colour}
        fields |= {"facet" if isinstance(figure.facet, str) else f"facet[{at}]": one for at, one in enumerate(facets)}
        named: dict[str, str] = {}
        known = len(self._place.problems)
        for field, axis in fields.items():
            if axis is None:
                continue
            if axis in self._spec.repeat:
                self._note(field, f"'{axis}' is a repeat axis, over which a figure averages; {self._expected(axis)}")
            elif axis not in self._labels and axis.partition(".")[0] not in self._unreadable:
                self._note(field, f"there is no axis '{axis}'; {self._expected(axis)}")
            elif axis in named and {field, named[axis]} != {"x", "colour"}:
                self._note(field, f"'{axis}' stands in `{named[axis]}` already")
            named[axis] = field
        self._check_scale(figure)
        if len(self._place.problems) == known:  # else what is left out may be what was meant
            self._check_left_out(figure, named)

    def _expected(self, axis: str) -> str:
        return suggestion(axis, self._labels) if self._labels else "the spec has no axes"

    def _check_scale(self, figure: FigureSpec) -> None:
        if figure.x is None or figure.x_scale not in ("linear", "log"):
            return
        numbers = {label: number_of(label) for label in self._drawn(figure.x, figure)}
        wrong = [label for label, number in numbers.items() if number is None]
        if wrong:
            self._note("x_scale", f"'{figure.x_scale}' needs numbers, but '{figure.x}' has {listed(wrong[:3])}")
        elif figure.x_scale == "log" and any(number is not None and number <= 0 for number in numbers.values()):
            self._note("x_scale", f"'log' needs numbers above 0; '{figure.x}' has {listed(numbers)}")

    def _check_left_out(self, figure: FigureSpec, named: Mapping[str, str]) -> None:
        """Notes axes without a place: their cells would hide each other."""
        left_out = {axis: drawn for axis in self._spec.compare if len(drawn := self._drawn(axis, figure)) > 1}
        left_out = {axis: drawn for axis, drawn in left_out.items() if axis not in named}
        if not left_out:
            return
        places = "`facet`" if figure.kind in ("scatter", "heatmap", "images") else "`colour` or `facet`"
        one = ", ".join(f"{axis}: {flow(drawn[:1])}" for axis, drawn in left_out.items())
        noun = "the compare axis" if len(left_out) == 1 else "the compare axes"
        have = "has" if len(left_out) == 1 else "have"
        right = f"name it in {places}, or draw one label: `when: {{{one}}}`"
        self._note("", f"{noun} {listed(left_out)} {have} no place; {right}")

    def _drawn(self, axis: str, figure: FigureSpec) -> list[str]:
        """The labels of an axis in the cells that the figure draws."""
        if axis in figure.when:
            return figure.when[axis]
        axes = self._spec.compare | self._spec.tune
        given = {other: labels[0] for other, labels in figure.when.items() if len(labels) == 1}
        return [
            choice.label
            for group in axes.get(axis, [])
            if applies({other: wanted for other, wanted in group.when.items() if other in given}, given)
            for choice in group.choices
        ]


def trouble_of_curve(key: str, select: Select, tasks: Sequence[Entry], catalog: Catalog) -> str | None:
    """Why no training records the curve `split/metric`, or `metric` on the watched split; None if a training does."""
    trained, watched_too = facts_of(tasks, "curves"), facts_of(tasks, "watched")
    watched = select.watched[0]
    split, slash, metric = key.rpartition("/")
    if split == "train":
        right = suggestion(key, [f"train/{one}" for one in trained])
        return None if metric in trained else f"no curve is named '{key}'; {right}"
    if slash and split not in select.watched:
        if split in ("validation", "test"):
            why = f"this sweep selects on '{select.split}', so that trainings are evaluated on the {watched} split"
            return f"there is no such curve: {why}; write '{watched}/{metric}', or just '{metric}'"
        return f"no curve is of '{split}'; expected 'train', '{watched}', or just the metric"
    if wrong := metric_problem(metric, catalog):
        return wrong
    evaluated = dict.fromkeys((*watched_too, *([] if at_the_end(select.metric, tasks, catalog) else [select.metric])))
    if metric in evaluated:
        return None
    return f"'{metric}' is not evaluated while a training runs; only {listed(evaluated)} and train/... are"


def kept_data(spec: Spec) -> set[str]:
    """The data files, without suffix, that recipes of the sweep keep for figures, such as `norms`."""
    files = {file for patch in spec.patches() for file in _files(patch.get("figures"))}
    validation = spec.recipe.get("validation")
    if not isinstance(validation, Mapping) or validation.get("name") != "cross_validation":
        return files
    folds = validation.get("folds", 4)
    return {f"{file}-fold{fold}" for file in files for fold in range(folds if isinstance(folds, int) else 0)}


def _files(figures: Any) -> Iterator[str]:
    """The names of the figures in a recipe's list, with the split unless it is `test`."""
    for figure in figures if isinstance(figures, list) else ():
        if isinstance(figure, str):
            yield figure
        elif isinstance(figure, Mapping):
            split = figure.get("split", "test")
            yield f"{figure.get('name')}" if split == "test" else f"{figure.get('name')}-{split}"


def _trouble_of_data(kind: str, data: str, kept: set[str] | None) -> str | None:
    """Why a figure of `kind` cannot draw `data`; `kept` are the data that trainings keep, None if unknown."""
    name = data.partition("-")[0]
    owners = {one: owner for owner, names in DATA.items() for one in names}
    if name not in owners:
        return f"there is no figure data '{data}'; {suggestion(name, owners)}"
    if owners[name] != kind:
        return f"'{data}' is drawn by kind '{owners[name]}', not by '{kind}'"
    if kept is not None and data not in kept:
        held = f"they keep {listed(sorted(kept))}" if kept else "they keep none"
        return f"the trainings keep no such data ({held}); add it to the recipe: `figures: [{name}]`"
    return None
