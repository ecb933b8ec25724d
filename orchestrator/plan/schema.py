"""The JSON schema of a spec as it is posted, so that an editor completes and checks it while one writes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from orchestrator.plan.nameable import NAME
from orchestrator.plan.parse import LONGEST_DESCRIPTION, LONGEST_NAME, SEARCHES
from orchestrator.spec.axes import FIELDS, PRUNES, Search, Selection, Slot
from orchestrator.spec.layouts import FigureSpec, TableSpec
from workers.catalog import LONGEST_LIST, LONGEST_TEXT, Bounds, Catalog, Entry, Parameter, load
from workers.contract import PART_FIELDS, ClassHoldout, Recipe

Schema = dict[str, Any]

_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "recipe": "What all trainings share; axes and rules change it.",
    "compare": "Axes of the table: one cell per combination.",
    "tune": "Axes that compete within a cell: the best candidate is shown.",
    "repeat": "Axes that are averaged, such as the seed.",
    "rules": "What depends on several compare axes; applied after compare and before tune.",
    "only": "Take a subset: the trials that have one of these labels on every axis named here.",
    "without": "Take a subset: the trials that have none of these labels.",
    "select": "By what the best checkpoint and the best candidate are chosen.",
    "slot": "The resources of one trial.",
    "slots": "What the slot has otherwise for values of some axes; later entries apply over earlier ones.",
    "search": "What proposes candidates: the whole grid, or a study of Optuna's in each cell.",
    "prune": "What stops the hopeless candidates of a cell early.",
    "tables": "How cells are laid out; without it there is one table, main.",
    "figures": "What is drawn of the cells, of curves and of the recipe's figure data.",
    "fresh": "Train everything anew, even what a finished training gave already.",
}


def json_schema(catalog: Catalog | None = None) -> Schema:
    """The schema, with the parts of `catalog` (the built-in ones without it) and their hyper-parameters."""
    catalog = catalog or load()
    values = _values(catalog)
    inner = {kind: _part_within(catalog.of(kind)) for kind in PART_FIELDS}
    definitions: Schema = {_within(kind): schema for kind, schema in inner.items() if _is_held(kind, catalog)}
    definitions |= {f"value-{path}": schema for path, schema in values.items()}
    definitions |= {f"axis-{path}": _axis(_ref(f"value-{path}")) for path in values}
    definitions |= {
        "when": _when(),
        "patch": _object({path: _ref(f"value-{path}") for path in values}, minProperties=1),
        "labelled": _object({"label": {}, "patch": _ref("patch")}, required=["label", "patch"]),
        "labelled-axis": _axis(_ref("labelled")),
        "span-axis": _span_axis(),
        "rule": _object({"when": _ref("when"), "patch": _ref("patch")}, required=["when", "patch"]),
    }
    axes = {
        "type": "object",
        "properties": {path: _ref(f"axis-{path}") for path in values},
        "additionalProperties": _ref("labelled-axis"),  # an axis of any other name
    }
    metrics = sorted({metric for entry in catalog.of("dataset") for metric in catalog.metrics(entry.name)})
    slot = _model(Slot, definitions)
    blocks: Schema = {
        "version": {"const": 1},
        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        "description": {"type": "string", "maxLength": LONGEST_DESCRIPTION},
        "recipe": _object({path: _ref(f"value-{path}") for path in values}),
        "compare": axes,
        "tune": {
            "type": "object",
            "properties": {path: {"anyOf": [_ref(f"axis-{path}"), _ref("span-axis")]} for path in values},
            "additionalProperties": _ref("labelled-axis"),
        },
        "repeat": axes,
        "rules": {"type": "array", "items": _ref("rule")},
        "only": _ref("when"),
        "without": _ref("when"),
        "select": _with_examples(_model(Selection, definitions), "metric", metrics),
        "slot": slot,
        "slots": {"type": "array", "items": _object({"when": _ref("when"), **slot["properties"]}, required=["when"])},
        "search": {"anyOf": [{"enum": [*SEARCHES]}, _model(Search, definitions)]},
        "prune": {"anyOf": [{"enum": [*PRUNES]}, *(_model(rule, definitions) for rule in PRUNES.values())]},
        "tables": _tables(definitions),
        "figures": _figures(definitions),
        "fresh": {"type": "boolean"},
    }
    described = {key: {**schema, "description": _DESCRIPTIONS.get(key, key)} for key, schema in blocks.items()}
    whole = _object(described, required=["version", "name", "recipe"])
    return {"$schema": _DIALECT, "title": "metricsweep spec", **whole, "definitions": definitions}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


# Values of the recipe


def _values(catalog: Catalog) -> Schema:
    """What may stand at each path of a recipe."""
    contract = Recipe.model_json_schema()["properties"]
    holdout = ClassHoldout.model_json_schema()["properties"]
    schemas: Schema = {}
    for field in FIELDS:
        if field in PART_FIELDS:
            schemas[field] = _part(catalog.of(field))
            schemas |= {f"{field}.{option}": schema for option, schema in _options(catalog.of(field)).items()}
        elif field == "validation":
            names = {"enum": ["none", "class_holdout", "cross_validation", "image_holdout"]}
            schemas[field] = {"anyOf": [names, _object(holdout | {"name": names}, minProperties=1)]}
            schemas |= {f"{field}.{option}": schema for option, schema in holdout.items() if option != "name"}
        else:
            schemas[field] = contract[field]
    return schemas


def _part(entries: list[Entry]) -> Schema:
    """A part's name, the part with hyper-parameters, or hyper-parameters that merge into the part that is there."""
    names = [entry.name for entry in entries]
    merged = _object({"name": False, **_options(entries)}, minProperties=1)
    return {"anyOf": [{"enum": names}, *(_whole_part(entry) for entry in entries), merged]}


def _within(kind: str) -> str:
    return f"part-within-{kind}"


def _is_held(kind: str, catalog: Catalog) -> bool:
    """Whether some part holds one of a kind."""
    return any(parameter.kind == kind for entry in catalog.entries for parameter in entry.parameters)


def _part_within(entries: list[Entry]) -> Schema:
    """A part as another one holds it: whole, and holding none itself."""
    plain = [entry for entry in entries if not any(parameter.type == "part" for parameter in entry.parameters)]
    return {"anyOf": [{"enum": [entry.name for entry in plain]}, *(_whole_part(entry) for entry in plain)]}


def _whole_part(entry: Entry) -> Schema:
    options = {parameter.name: _parameter(parameter) for parameter in entry.parameters}
    required = ["name", *(parameter.name for parameter in entry.parameters if parameter.required)]
    return _object({"name": {"const": entry.name, "description": entry.label}, **options}, required=required)


def _options(entries: Iterable[Entry]) -> Schema:
    """Each hyper-parameter that some part of a kind has, in every form that it takes."""
    forms: dict[str, list[Schema]] = {}
    for entry in entries:
        for parameter in entry.parameters:
            known = forms.setdefault(parameter.name, [])
            schema = {key: value for key, value in _parameter(parameter).items() if key != "default"}
            if schema not in known:
                known.append(schema)
    return {name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in forms.items()}


_TYPES: Final[Mapping[str, Schema]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "str": {"type": "string", "maxLength": LONGEST_TEXT},
    "ints": {"type": "array", "items": {"type": "integer"}, "maxItems": LONGEST_LIST},
    "floats": {"type": "array", "items": {"type": "number"}, "maxItems": LONGEST_LIST},
    "strs": {"type": "array", "items": {"type": "string", "maxLength": LONGEST_TEXT}, "maxItems": LONGEST_LIST},
}


def _parameter(parameter: Parameter) -> Schema:
    if parameter.type == "part":
        return _ref(_within(parameter.kind))
    schema: Schema = {"enum": parameter.choices} if parameter.type == "literal" else dict(_TYPES[parameter.type])
    if ends := _ends(parameter.limits):
        schema |= {"items": schema["items"] | ends} if "items" in schema else ends
    if parameter.type == "strs" and parameter.choices:
        schema = {"type": "array", "items": {"enum": parameter.choices}, "uniqueItems": True}
    if parameter.optional:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema if parameter.required else {**schema, "default": parameter.default}


_ENDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def _ends(bounds: Bounds) -> Schema:
    """The ends of a range as keywords of the schema."""
    return {_ENDS[name]: int(end) if end == int(end) else end for name, end in bounds.model_dump().items()}


# Axes, tables and the flat blocks


def _axis(value: Schema) -> Schema:
    """A list of alternatives, several groups of them, or one group."""
    alternatives = {"type": "array", "minItems": 1, "items": {"anyOf": [value, _ref("labelled")]}}
    group = _object({"values": alternatives, "when": _ref("when")}, required=["values"])
    return {"anyOf": [alternatives, {"type": "array", "minItems": 1, "items": group}, group]}


def _span_axis() -> Schema:
    """A range of numbers, or several that `when` tells apart, beside groups of values."""
    number = {"type": "number"}
    ends: Schema = {"low": number, "high": number, "log": {"type": "boolean"}, "step": number}
    span = _object({**ends, "when": _ref("when")}, required=["low", "high"])
    group = _object({"values": {"type": "array", "minItems": 1}, "when": _ref("when")}, required=["values"])
    return {"anyOf": [span, {"type": "array", "minItems": 1, "items": {"anyOf": [span, group]}}]}


def _when() -> Schema:
    label = {"type": ["string", "number", "boolean"]}
    labels = {"anyOf": [label, {"type": "array", "minItems": 1, "items": label}]}
    return {"type": "object", "minProperties": 1, "additionalProperties": labels}


def _tables(definitions: Schema) -> Schema:
    table = _model(TableSpec, definitions)
    table.pop("required", None)  # a table without metrics shows those that its data sets declare
    label = {"type": ["string", "number", "boolean"]}
    definitions["MetricColumn"]["properties"] |= {
        "when": _when(),
        "delta": {"type": "object", "minProperties": 1, "additionalProperties": label},
    }
    by_label = {"type": "object", "additionalProperties": label}
    one_cell = {"type": "object", "minProperties": 1, "additionalProperties": label}
    definitions["VerdictSpec"]["properties"] |= {"against": one_cell, "of": one_cell}
    table["properties"]["against"] = one_cell
    table["properties"]["labels"] = {"type": "object", "additionalProperties": by_label}
    return {"type": "object", "additionalProperties": False, "patternProperties": {f"^{NAME.pattern}$": table}}


def _figures(definitions: Schema) -> Schema:
    figure = _model(FigureSpec, definitions)
    label = {"type": ["string", "number", "boolean"]}
    by_label = {"type": "object", "additionalProperties": label}
    figure["properties"] |= {"when": _when(), "labels": {"type": "object", "additionalProperties": by_label}}
    return {"type": "object", "additionalProperties": False, "patternProperties": {f"^{NAME.pattern}$": figure}}


def _model(model: type[BaseModel], definitions: Schema) -> Schema:
    """The schema of one of our models; those that it refers to become definitions."""
    schema = model.model_json_schema(ref_template="#/definitions/{model}")
    definitions.update(schema.pop("$defs", {}))
    return schema


def _with_examples(schema: Schema, field: str, examples: list[str]) -> Schema:
    properties = {**schema["properties"], field: {**schema["properties"][field], "examples": examples}}
    return {**schema, "properties": properties}
