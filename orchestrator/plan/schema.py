"""The JSON schema of a spec as it is posted, for completion and checks in an editor."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestrator.spec.posted import FROM_CATALOG, PostedSpec
from orchestrator.spec.spec import FIELDS, ROLES
from workers.catalog import LONGEST_LIST, LONGEST_TEXT, Bounds, Catalog, Entry, Parameter, load
from workers.contract import PART_FIELDS, ClassHoldout, Recipe

Schema = dict[str, Any]

_WITHIN_A_PART: Final = r"^[a-z_]+\.[a-z_]+\.\w+$"
"""The paths of options of a part within a part, such as `loss.of.margin`."""
_DIALECT: Final = "http://json-schema.org/draft-07/schema#"


def json_schema(catalog: Catalog | None = None) -> Schema:
    """The JSON schema of posted specs; names of parts are completed from `catalog` (by default the built-in parts)."""
    catalog = catalog or load()
    values = _values(catalog)
    schema = PostedSpec.model_json_schema(ref_template="#/definitions/{model}")
    definitions: Schema = schema.pop("$defs")
    group, span = definitions.pop("PostedGroup"), definitions.pop("PostedRange")
    alternatives = group["properties"]["values"]
    groups = {"anyOf": [alternatives, group, {"type": "array", "minItems": 1, "items": group}]}
    ranges = {"anyOf": [span, {"type": "array", "minItems": 1, "items": {"anyOf": [span, group]}}]}
    recipe = _object({path: _ref(f"value-{path}") for path in values}, patternProperties={_WITHIN_A_PART: {}})
    patches: Schema = {"recipe": recipe, "patch": _ref("patch")}
    schema, definitions = _filled(schema, patches), _filled(definitions, patches)
    definitions |= {f"value-{path}": value for path, value in values.items()}
    definitions |= {f"axis-{path}": _filled(groups, patches | {"value": _ref(f"value-{path}")}) for path in values}
    definitions |= {
        "patch": recipe | {"minProperties": 1},
        "axis-of-labels": _filled(groups, patches | {"value": False}),
        "axis-of-ranges": _filled(ranges, patches | {"value": {}}),
        "axis-within": _filled({"anyOf": [*groups["anyOf"], *ranges["anyOf"]]}, patches | {"value": {}}),
        **{_within(kind): _part_within(catalog.of(kind)) for kind in _held_kinds(catalog)},
    }
    for role in ROLES:
        axes: Schema = {path: _ref(f"axis-{path}") for path in values}
        if role == "tune":
            axes = {path: {"anyOf": [axis, _ref("axis-of-ranges")]} for path, axis in axes.items()}
        # An axis of any other name has alternatives with labels.
        schema["properties"][role] |= {
            "properties": axes,
            "patternProperties": {_WITHIN_A_PART: _ref("axis-within")},
            "additionalProperties": _ref("axis-of-labels"),
        }
    metrics = sorted({metric for entry in catalog.of("dataset") for metric in catalog.metrics(entry.name)})
    definitions["Selection"]["properties"]["metric"]["examples"] = metrics
    return {"$schema": _DIALECT, **schema, "title": "metricsweep spec", "definitions": definitions}


def _filled(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A copy of a schema of the posted models, with what the catalog knows at the places that are marked for it."""
    if isinstance(schema, list):
        return [_filled(inner, parts) for inner in schema]
    if isinstance(schema, str):
        return schema.replace("`None`", "`null`")  # as JSON and YAML write it
    if not isinstance(schema, dict):
        return schema
    kind = schema.get(FROM_CATALOG)
    if kind is not None and kind in parts:
        described = {key: schema[key] for key in ("description",) if key in schema}
        return {"allOf": [parts[kind]], **described} if described else parts[kind]
    return {key: _filled(inner, parts) for key, inner in schema.items()}


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


def _held_kinds(catalog: Catalog) -> list[str]:
    """The kinds of parts that are hyper-parameters of parts."""
    kinds = (parameter.kind for entry in catalog.entries for parameter in entry.parameters)
    return sorted({kind for kind in kinds if kind})


def _part_within(entries: list[Entry]) -> Schema:
    """A part within another part: complete, and without parts in it."""
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
    schema: Schema
    if parameter.type == "part":
        schema = _ref(_within(parameter.kind))
    else:
        schema = {"enum": parameter.choices} if parameter.type == "literal" else dict(_TYPES[parameter.type])
    if ends := _ends(parameter.limits):
        schema |= {"items": schema["items"] | ends} if "items" in schema else ends
    if parameter.type == "strs" and parameter.choices:
        schema = {"type": "array", "items": {"enum": parameter.choices}, "uniqueItems": True}
    if parameter.type == "int" and parameter.choices:
        schema = {"anyOf": [schema, {"enum": parameter.choices}]}
    if parameter.optional:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema if parameter.required else {**schema, "default": parameter.default}


_ENDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def _ends(bounds: Bounds) -> Schema:
    """The ends of a range as keywords of the schema."""
    return {_ENDS[name]: int(end) if end == int(end) else end for name, end in bounds.model_dump().items()}
