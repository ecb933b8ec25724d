"""The presets of the papers' tables, filled with what the papers print: no sweep has run."""

from functools import cache
from pathlib import Path

import yaml

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.read import spec_document
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.runs import SweepResults
from workers.catalog import Catalog, load

SWEEPS = Path(__file__).parents[2] / "sweeps"


@cache
def catalog() -> Catalog:
    return load()


@cache
def printed_tables() -> dict[str, tuple[str, str]]:
    """The file and the name of the layout of every printed table that a preset has, by its id; its own one comes first.

    Another preset, such as mlrc, may be compared with some rows of it.
    """
    found = {}
    for path in sorted(SWEEPS.glob("*.yaml")):
        tables = yaml.safe_load(path.read_text(encoding="utf-8")).get("tables") or {}
        found = {one["published"]: (path.stem, name) for name, one in tables.items() if one.get("published")} | found
    return found


@cache
def results(stem: str) -> SweepResults:
    """A sweep of `sweeps/<stem>.yaml` before anything ran."""
    spec = check(spec_document((SWEEPS / f"{stem}.yaml").read_bytes()).value, catalog())
    plan = expand(spec, catalog())
    dumped = spec.model_dump(mode="json")
    return SweepResults(1, spec.name, "queued", dumped, tuple(plan.cells), tuple(plan.candidates), ())


@cache
def replica(id_: str) -> Table:
    """The layout of a printed table, filled with its own numbers."""
    stem, name = printed_tables()[id_]
    return build(results(stem), name, catalog(), numbers="published")


@cache
def recipes(stem: str) -> list[dict[str, object]]:
    """The recipe of the first trial of each cell, as JSON."""
    plan = expand(check(spec_document((SWEEPS / f"{stem}.yaml").read_bytes()).value, catalog()), catalog())
    found: dict[int, dict[str, object]] = {}
    for trial in plan.trials():
        if trial.cell not in found:
            found[trial.cell] = trial.recipe.model_dump(mode="json")
    return list(found.values())
