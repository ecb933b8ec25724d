"""The verdicts of a bundle's tables, and the looks that they rest on, as files."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from orchestrator.publish.bundle.contents import PackedVerdicts
from orchestrator.publish.tables import build
from orchestrator.publish.tables.evidence import judged
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.extension import SweepLook
from orchestrator.views.outcomes import SweepOutcomes
from workers.catalog import Catalog


def looks_file(looks: Sequence[SweepLook]) -> bytes:
    """When a sweep was extended, from which trial on, and how many had finished by then."""
    rows = [{"at": one.at.isoformat(), "position": one.position, "finished": one.finished} for one in looks]
    return (json.dumps(rows, indent=2) + "\n").encode()


def read_looks(content: bytes) -> tuple[SweepLook, ...]:
    """The same again."""
    rows = json.loads(content)
    return tuple(SweepLook(datetime.fromisoformat(row["at"]), row["position"], row["finished"]) for row in rows)


def verdict_files(
    outcomes: SweepOutcomes, catalog: Catalog, looks: Sequence[SweepLook]
) -> Iterator[tuple[PackedVerdicts, bytes]]:
    """The verdicts of every table that compares something, each as a file."""
    labels = {cell.index: cell.labels for cell in outcomes.cells}
    for name in outcomes.spec.get("tables") or {}:
        try:
            found = judged(build.build(outcomes, name, catalog), outcomes, looks)
        except MetricsweepError:  # a table that cannot be built is named in the manifest already
            continue
        if found.pairs:
            content = json.dumps(found.view(labels).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
            yield PackedVerdicts(table=name, file=f"verdicts/{name}.json"), content.encode()
