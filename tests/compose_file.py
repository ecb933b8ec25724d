"""Reads docker-compose.yml as Docker Compose would: variables put in, and services as plain mappings."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "docker-compose.yml"
GPU = ROOT / "docker-compose.gpu.yml"
S3 = ROOT / "docker-compose.s3.yml"
MONITORING = ROOT / "docker-compose.monitoring.yml"
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


def variables(text: str) -> dict[str, set[str]]:
    """Each variable that a compose file reads, with how: `-` has a default, `?` is demanded."""
    found: dict[str, set[str]] = {}
    for match in VARIABLE.finditer(text):
        found.setdefault(match["name"], set()).add(match["kind"] or "")
    return found


def example() -> dict[str, str]:
    """The variables of .env.example."""
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def load(path: Path, given: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables put in; KeyError for one that is demanded and not given."""

    def put_in(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: put_in(held) for key, held in value.items()}
        if isinstance(value, list):
            return [put_in(held) for held in value]
        return VARIABLE.sub(lambda match: _value(match, given), value) if isinstance(value, str) else value

    loaded: dict[str, Any] = put_in(yaml.safe_load(path.read_text(encoding="utf-8")))
    return loaded


def rendered(given: Mapping[str, str], *paths: Path) -> dict[str, Any]:
    """What `docker compose -f A -f B config` makes of several files: mappings are merged, all else is replaced."""
    merged: dict[str, Any] = {}
    for path in paths:
        merged = _merged(merged, load(path, given))
    return merged


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    return under | {
        key: _merged(under[key], value) if isinstance(value, dict) and isinstance(under.get(key), dict) else value
        for key, value in over.items()
    }


def _value(match: re.Match[str], given: Mapping[str, str]) -> str:
    value = given.get(match["name"], "")
    if value or match["kind"] == "-":
        return value or match["rest"]
    raise KeyError(match["name"])
