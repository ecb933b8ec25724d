"""With which versions of parts and metrics a training was planned, and what of that has changed since."""

import json
from collections.abc import Mapping
from typing import Any

from workers.catalog.defaults import code_of, versions_of
from workers.catalog.inner_parts import entry_at, named_in
from workers.catalog.inventory import Catalog
from workers.contract import PART_FIELDS, Frozen, canonical_json, fingerprint_of


class Change(Frozen):
    """One thing whose numbers are others today than when a training was planned."""

    what: str
    """Such as `loss 'normface'`, `metric 'map'`, `content of dataset 'omniglot'`."""
    then: str
    """The version that the training was planned with."""
    now: str
    own_code: bool = False
    """Whether it is the source of an own part, which may change at any time."""

    def __str__(self) -> str:
        return f"{self.what} ({self.then}, now {self.now})"


def stamp(recipe: Mapping[str, Any]) -> str:
    """What of a completed recipe has versions, as JSON: trainings with one stamp are outdated together.

    Empty for a recipe that nobody completed, which stands for whatever versions there are.
    """
    pins = recipe.get("pins") or {}
    if not pins.get("versions"):
        return ""
    parts = named_in(recipe, pins["versions"])
    metric = (recipe.get("select") or {}).get("metric")
    said = {"parts": parts, "metric": metric, "precision": recipe.get("precision")}
    said |= {"metrics": recipe["metrics"]} if recipe.get("metrics") else {}
    said |= {held: pins[held] for held in ("manifests", "code") if pins.get(held)}
    return canonical_json(said | {"versions": pins["versions"], "manifest": pins.get("manifest")})


def changes(stamped: str, catalog: Catalog) -> tuple[Change, ...]:
    """What has other numbers today than by a stamp; a part that is gone has none, and fails where it is trained."""
    if not stamped:
        return ()
    said = json.loads(stamped)
    parts = {kind: name for kind, name in said["parts"].items() if name is not None}
    if any(entry_at(path, parts, catalog) is None for path in parts):
        return ()
    computed = [*said.get("metrics", ()), said["metric"]]
    today = versions_of(parts, computed, said["precision"], catalog)
    then, named = said["versions"], {**parts, "precision": said["precision"]}
    changed = [
        Change(what=_named(key, named), then=f"version {then.get(key, 1)}", now=str(today.get(key, 1)))
        for key in {**then, **today}
        # A kind that is not pinned was unknown then; a metric is pinned from its second version on.
        if (key in then or key not in PART_FIELDS) and then.get(key, 1) != today.get(key, 1)
    ]
    code, source = code_of(parts, computed, catalog), said.get("code", {})
    changed += [
        Change(what=f"code of {_named(key, named)}", then=source[key][7:15], now=code[key][7:15], own_code=True)
        for key in source
        if key in code and code[key] != source[key]
    ]
    dataset = catalog.get("dataset", parts.get("dataset", ""))
    manifest = dataset.facts.get("manifest") if dataset else None
    if said["manifest"] is not None and isinstance(manifest, str) and manifest != said["manifest"]:
        what = f"content of dataset {parts['dataset']!r}"
        changed.append(Change(what=what, then=said["manifest"][:19], now=manifest[:19]))
    here = dataset.facts.get("manifests") if dataset else None
    for name, content in said.get("manifests", {}).items():
        if isinstance(here, dict) and (now := str(here.get(name))) != content:
            what = f"content of test set {name!r} of dataset {parts['dataset']!r}"
            changed.append(Change(what=what, then=content[:19], now=now[:19]))
    return tuple(changed)


def edition(catalog: Catalog) -> str:
    """What tells apart the code of releases of which a part has another version."""
    return fingerprint_of({f"{one.kind}.{one.name}": one.version for one in catalog.entries})[:16]


def _named(key: str, parts: Mapping[str, str]) -> str:
    kind, _, name = key.partition(".")
    return f"{kind} {(parts.get(key) or name or parts.get(kind, ''))!r}"
