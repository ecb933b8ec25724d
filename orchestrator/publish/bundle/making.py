"""Makes the bundle of a sweep, with tables built from the trials that the bundle holds."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, Final

from orchestrator.publish.bundle import contents
from orchestrator.publish.bundle.contents import ArchiveWriter, BundleFacts, RecordedSums, json_file, looks_file
from orchestrator.publish.bundle.rebuilding import renderings
from orchestrator.publish.figures import drawing, rendering
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.reproduction import published_tables
from orchestrator.views import errors
from orchestrator.views.errors import BusyError, MetricsweepError, NotFoundError
from orchestrator.views.pages import FIGURE_FORMATS
from orchestrator.views.runs import SweepLook, SweepResults, TrialProvenance, TrialResult
from orchestrator.views.sweeps import SweepHead
from workers.catalog import Catalog

_DRAWN: Final = tuple(name for name in FIGURE_FORMATS if name != "pdf")  # a PDF drawn twice differs


@dataclass(frozen=True, slots=True)
class Material:
    """The data from which the bundle of a sweep is made."""

    head: SweepHead
    text: str  # the spec as it was posted
    results: SweepResults  # without trials, which come from `evidence`
    evidence: Iterable[TrialProvenance]
    catalog: Catalog
    sources: Sources  # of figures
    own_code: Callable[[int], bytes]  # the archive that the training of a trial kept; raises NotFoundError
    looks: Sequence[SweepLook] = ()


def make(material: Material, out: IO[bytes]) -> None:
    """Write the bundle of a sweep; equal content gives equal bytes. The manifest lists skipped files with reasons."""
    facts, skipped = BundleFacts(), list[dict[str, str]]()
    with ArchiveWriter(out) as writer:
        queries = RecordedSums(material.results.queries)
        results = replace(material.results, trials=_data(material, facts, writer), queries=queries)
        for name, content in _texts(material):
            writer.add(name, content)
        writer.add(contents.LOOKS, looks_file(material.looks))
        made = []
        for entry, content in renderings(results, material.catalog, material.looks, skipped):
            writer.add(entry.file, content)
            made.append(entry.model_dump())
        drawn = list(_figures(results, material, writer, skipped))
        if (sums := queries.file()) is not None:
            writer.add(contents.QUERIES, sums)
        printed = {table.id: table for table in published_tables(results.spec, material.catalog.published).values()}
        for id_, table in printed.items():
            writer.add(f"published/{id_.lower()}.csv", table.csv.encode())
        own = list(_code(facts, material, writer, skipped))
        head = {"sweep": material.head.model_dump(mode="json"), "made_with": contents.made_with(), **facts.manifest()}
        code = {"own_code": own} if own else {}
        writer.finish({**head, **code, "made": made, "figures": drawn, "skipped": skipped})


def _data(material: Material, facts: BundleFacts, writer: ArchiveWriter) -> tuple[TrialResult, ...]:
    """Write the Parquet files; only what tables need of the trials stays in memory."""
    kept: list[TrialResult] = []

    def batches() -> Iterator[list[TrialProvenance]]:
        trials = facts.counted(material.evidence)
        while batch := list(islice(trials, contents.AT_ONCE)):
            first = len(kept)  # the same positions as when the file is read: in the order of the plan
            kept.extend(replace(one.result, position=first + at, seconds=one.seconds) for at, one in enumerate(batch))
            yield batch

    with TemporaryFile() as trials, TemporaryFile() as metrics:
        contents.write_trials(batches(), trials, metrics)
        for name, file in ((contents.TRIALS, trials), (contents.METRICS, metrics)):
            file.seek(0)
            writer.stream(name, file)
    writer.add(contents.CELLS, contents.cells(material.results.cells))
    writer.add(contents.CANDIDATES, contents.candidates(material.results.candidates))
    return tuple(kept)


def _code(
    facts: BundleFacts, material: Material, writer: ArchiveWriter, skipped: list[dict[str, str]]
) -> Iterator[dict[str, Any]]:
    """Add the source of own parts, once for all trials that were trained with it."""
    for code, trial in sorted(facts.code.items()):
        file = f"code/{hashlib.sha256(code.encode()).hexdigest()[:16]}.zip"
        try:
            writer.add(file, material.own_code(trial))
        except NotFoundError as error:
            skipped.append({"own_code": code, "reason": str(error)})
            continue
        yield {"file": file, "code": json.loads(code)}


def _texts(material: Material) -> Iterator[tuple[str, bytes]]:
    head = material.head
    description = str(material.results.spec.get("description") or "")
    paragraph = f"{description}\n\n" if description else ""
    yield contents.README, contents.WORDS.format(name=head.name, id=head.id, description=paragraph).encode()
    yield contents.POSTED, material.text.encode()
    yield contents.SPEC, json_file(material.results.spec)  # the order of its keys decides the order of a table
    yield contents.SWEEP, json_file(head.model_dump(mode="json"))
    yield contents.CATALOG, json_file(material.catalog.model_dump(mode="json"))


def _figures(
    results: SweepResults, material: Material, writer: ArchiveWriter, skipped: list[dict[str, str]]
) -> Iterator[dict[str, str]]:
    for name in results.spec.get("figures") or {}:
        for format_name in _DRAWN:
            errors.check()
            try:
                figure = drawing.draw(results, name, material.catalog, material.sources)
                made = rendering.render(figure, format_name)
            except BusyError:
                raise
            except (MetricsweepError, ValueError, OSError) as error:
                skipped.append({"figure": name, "format": format_name, "reason": str(error)})
                continue
            file = f"figures/{name}.{format_name}"
            writer.add(file, made.content)
            yield {"figure": name, "format": format_name, "file": file}
