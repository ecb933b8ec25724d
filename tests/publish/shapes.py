"""Tables of every shape that formats have to lay out: one to four row axes, panels, uneven seeds, signs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.runs import SweepResults
from tests.publish import sweeps

_AXES: Final = {
    "dataset": ("digits", "omniglot"), "backbone": ("small_cnn", "resnet18"),
    "loss": ("triplet", "semihard", "normalized_npair"), "embedding": ("64", "128"),
}  # fmt: skip


def _grid(axes: tuple[str, ...], layout: Mapping[str, Any], seeds: int = 4) -> SweepResults:
    """A ragged grid over some axes: one combination is missing, so that groups of rows differ in length."""

    def keep(labels: Mapping[str, str]) -> bool:
        return (labels.get("loss"), labels.get("embedding")) != ("semihard", "128")

    def fate(labels: Mapping[str, str], candidate: int, repeat: int) -> str:
        running = labels.get("loss") == "normalized_npair" and labels.get("embedding", "64") == "64"
        return "running" if running and repeat == 3 else "ok"

    table = {"metrics": ["nmi", "recall@1", "norm_var"], "columns": [], **layout}
    return sweeps.grid(
        {axis: _AXES[axis] for axis in axes}, sweeps.spec(tables={"main": table}), keep=keep, fate=fate, seeds=seeds
    )


def _uneven() -> SweepResults:
    """Cells of 12, 11 and 10 runs that lead by little, so that numbers bear all signs at once."""
    layout = {
        "rows": ["loss", "embedding"], "columns": ["dataset"], "counts": "always", "against": {"embedding": "64"},
    }  # fmt: skip
    found = _grid(("dataset", "loss", "embedding"), layout, 12)
    few = {"triplet": 10, "semihard": 11}
    kept = (one for one in found.trials if one.repeat < few.get(found.cells[one.cell].labels["loss"], 12))
    return replace(found, trials=tuple(kept))


def _rows(*axes: str, columns: tuple[str, ...] = (), **layout: Any) -> SweepResults:
    return _grid((*axes, *columns), {"rows": list(axes), "columns": list(columns), **layout})


def tables() -> dict[str, Table]:
    """A table of each shape."""
    panels = [{"dataset": ["digits"]}, {"dataset": ["omniglot"]}]
    made = {
        "one": _rows("loss", columns=("dataset",)), "two": _rows("loss", "embedding", columns=("dataset",)),
        "three": _rows("backbone", "loss", "embedding"),
        "three over columns": _rows("backbone", "loss", "embedding", columns=("dataset",)),
        "four": _rows("dataset", "backbone", "loss", "embedding"),
        "panels": _rows("backbone", "loss", "embedding", columns=("dataset",), panels=panels), "uneven": _uneven(),
        "rich": sweeps.rich(), "svmax": sweeps.svmax(),
    }  # fmt: skip
    return {name: build(results, "main", sweeps.catalog(), doubts=True) for name, results in made.items()}
