"""Makes the bundle of a sweep, with tables built from the trials that the bundle holds."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, Final

from orchestrator.publish import formats, reproduction, reproduction_files
from orchestrator.publish.bundle import contents
from orchestrator.publish.bundle.contents import (
    ArchiveWriter,
    BundleFacts,
    PackedReproduction,
    RecordedSums,
    Rendering,
    looks_file,
    verdict_files,
)
from orchestrator.publish.figures import drawing, rendering
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.reproduction import WITHIN, findings, published_tables
from orchestrator.publish.tables import build
from orchestrator.publish.tables.select import layout_of
from orchestrator.publish.tables.table_data import Numbers
from orchestrator.views import errors
from orchestrator.views.errors import BusyError, MetricsweepError, NotFoundError, timely
from orchestrator.views.pages import FIGURE_FORMATS
from orchestrator.views.runs import SweepLook, SweepResults, TrialProvenance, TrialResult
from orchestrator.views.sweeps import SweepHead
from workers.catalog import Catalog

_COMPARED: Final[tuple[Numbers, ...]] = ("own", "both", "verdict")
"""The views of a table that names a published table."""

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
        tables = [table.model_dump() for table in _tables(results, material.catalog, writer, skipped)]
        reproductions = [report.model_dump() for report in _reproductions(results, material.catalog, writer)]
        writer.add(contents.LOOKS, looks_file(material.looks))
        verdicts = []
        for packed, content in verdict_files(results, material.catalog, material.looks):
            writer.add(packed.file, content)
            verdicts.append(packed.model_dump())
        drawn = list(_figures(results, material, writer, skipped))
        if (sums := queries.file()) is not None:
            writer.add(contents.QUERIES, sums)
        printed = {table.id: table for table in published_tables(results.spec, material.catalog.published).values()}
        for id_, table in printed.items():
            writer.add(f"published/{id_.lower()}.csv", table.csv.encode())
        own = list(_code(facts, material, writer, skipped))
        head = {"sweep": material.head.model_dump(mode="json"), "made_with": contents.made_with(), **facts.manifest()}
        made = {"own_code": own} if own else {}
        made |= {"tables": tables, "reproductions": reproductions, "verdicts": verdicts, "figures": drawn}
        writer.finish({**head, **made, "skipped": skipped})


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
    yield contents.SPEC, _json(material.results.spec)  # the order of its keys decides the order of a table
    yield contents.SWEEP, _json(head.model_dump(mode="json"))
    yield contents.CATALOG, _json(material.catalog.model_dump(mode="json"))


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _tables(
    results: SweepResults, catalog: Catalog, writer: ArchiveWriter, skipped: list[dict[str, str]]
) -> Iterator[Rendering]:
    for name in results.spec.get("tables") or {}:
        for numbers in _COMPARED if layout_of(results.spec, name).published else _COMPARED[:1]:
            try:
                built = build.build(results, name, catalog, numbers=numbers)
            except BusyError:
                raise
            except MetricsweepError as error:
                skipped.append({"table": name, "numbers": numbers, "reason": str(error)})
                continue
            for format_name in timely(formats.names()):
                made = formats.render(built, format_name)
                suffix = made.filename.rpartition(".")[2]
                file = f"tables/{name}/{numbers}/{format_name}.{suffix}"
                writer.add(file, made.content)
                yield Rendering(table=name, numbers=numbers, format=format_name, file=file)


def _reproductions(results: SweepResults, catalog: Catalog, writer: ArchiveWriter) -> Iterator[PackedReproduction]:
    published = dict.fromkeys(table.paper for table in published_tables(results.spec, catalog.published).values())
    found = findings(results, catalog, WITHIN) if published else []
    for paper in published:
        view = reproduction.reproduction(paper, found, WITHIN, catalog.published)
        for format_name in reproduction_files.formats():
            made = reproduction_files.render(view, format_name)
            file = f"reproduction/{paper.lower()}.{made.filename.rpartition('.')[2]}"
            writer.add(file, made.content)
            yield PackedReproduction(paper=paper, format=format_name, file=file)


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
