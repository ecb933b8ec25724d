"""Reading a recipe file: YAML in which 1e-3 is a number and `no` a text, as in YAML 1.2, or JSON."""

import re
from pathlib import Path
from typing import Any

import yaml

from workers.catalog import Catalog, complete, problems
from workers.contract import Recipe


class RecipeError(ValueError):
    """A recipe file cannot be read, or its recipe has problems; the message names all of them."""


def read(path: Path, catalog: Catalog) -> Recipe:
    """The complete recipe in the file `path`; raises RecipeError."""
    try:
        raw = yaml.load(path.read_text("utf-8"), _Loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise RecipeError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise RecipeError(f"{path}: expected a mapping with dataset, backbone, loss, ...; found {type(raw).__name__}")
    if wrong := problems(raw, catalog):
        raise RecipeError("; ".join(f"{path}: {problem.path}: {problem.message}" for problem in wrong))
    return complete(Recipe.model_validate(raw), catalog)


def scalar(text: str) -> Any:
    """A value as it would be read in a recipe file; a text where it is nothing else."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return text


class _Loader(yaml.SafeLoader):
    """PyYAML reads YAML 1.1; this is 1.2 where recipes would notice, and duplicate keys are refused."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own form
        first: [pair for pair in pairs if pair[0].rpartition(":")[2] not in {"bool", "float", "int", "timestamp"}]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, unless a key stands in it twice."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)
