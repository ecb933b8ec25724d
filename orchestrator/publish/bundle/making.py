"""Makes the bundle of a sweep: its tables from the very trials that it holds."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, Final

from orchestrator.publish import figures, formats, ledger, ledger_files, papers
from orchestrator.publish.bundle import contents
from orchestrator.publish.bundle.contents import (
    ArchiveWriter,
    BundleFacts,
    Head,
    PackedLedger,
    RecordedSums,
    Rendering,
    looks_file,
    verdict_files,
)
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.ledger import WITHIN, findings, published_tables
from orchestrator.publish.tables import build
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.tables.table_data import Numbers
from orchestrator.views import errors
from orchestrator.views.errors import ENDED, MetricsweepError, NotFoundError, timely
from orchestrator.views.pages import FIGURE_FORMATS
from orchestrator.views.runs import SweepLook, SweepOutcomes, TrialOutcome, TrialProvenance
from workers.catalog import Catalog

_COMPARED: Final[tuple[Numbers, ...]] = ("own", "both", "verdict")
"""Whose numbers are shown of a table that names a published one."""

_DRAWN: Final = tuple(one for one in FIGURE_FORMATS if one != "pdf")  # a PDF drawn twice is not the same to the byte


@dataclass(frozen=True, slots=True)
class Material:
    """What a bundle is made from."""

    head: Head
    text: str  # the spec as it was posted
    outcomes: SweepOutcomes  # its trials are not looked at: those of `evidence` are
    evidence: Iterable[TrialProvenance]
    catalog: Catalog
    sources: Sources  # of figures
    own_code: Callable[[int], bytes]  # the archive that the training of a trial kept; raises NotFoundError
    looks: Sequence[SweepLook] = ()


def make(material: Material, out: IO[bytes]) -> None:
    """Write the archive: the same content gives the same bytes. What cannot be drawn is named in the manifest."""
    facts, skipped = BundleFacts(), list[dict[str, str]]()
    with ArchiveWriter(out) as writer:
        queries = RecordedSums(material.outcomes.queries)
        outcomes = replace(material.outcomes, trials=_data(material, facts, writer), queries=queries)
        for name, content in _texts(material):
            writer.add(name, content)
        tables = [one.model_dump() for one in _tables(outcomes, material.catalog, writer, skipped)]
        kept = [one.model_dump() for one in _ledgers(outcomes, material.catalog, writer)]
        said_of_cells = list(_verdicts(outcomes, material, writer))
        drawn = list(_figures(outcomes, material, writer, skipped))
        if (sums := queries.file()) is not None:
            writer.add(contents.QUERIES, sums)
        for id_ in _papers(outcomes.spec):
            writer.add(f"published/{id_.lower()}.csv", papers.text(id_).encode())
        own = list(_code(facts, material, writer, skipped))
        said = {"sweep": material.head.model_dump(mode="json"), "made_with": contents.made_with(), **facts.said()}
        made = {"own_code": own} if own else {}
        made |= {"tables": tables, "ledgers": kept, "verdicts": said_of_cells, "figures": drawn}
        writer.finish({**said, **made, "skipped": skipped})


def _data(material: Material, facts: BundleFacts, writer: ArchiveWriter) -> tuple[TrialOutcome, ...]:
    """The Parquet files; of the trials only what tables need stays in memory."""
    kept: list[TrialOutcome] = []

    def some() -> Iterator[list[TrialProvenance]]:
        passing = facts.passing(material.evidence)
        while batch := list(islice(passing, contents.AT_ONCE)):
            first = len(kept)  # positions as they are read back: in the order of the plan
            kept.extend(replace(one.outcome, position=first + at, seconds=one.seconds) for at, one in enumerate(batch))
            yield batch

    with TemporaryFile() as trials, TemporaryFile() as metrics:
        contents.write_trials(some(), trials, metrics)
        for name, file in ((contents.TRIALS, trials), (contents.METRICS, metrics)):
            file.seek(0)
            writer.stream(name, file)
    writer.add(contents.CELLS, contents.cells(material.outcomes.cells))
    writer.add(contents.CANDIDATES, contents.candidates(material.outcomes.candidates))
    return tuple(kept)


def _code(
    facts: BundleFacts, material: Material, writer: ArchiveWriter, skipped: list[dict[str, str]]
) -> Iterator[dict[str, Any]]:
    """The source of own parts, once for all trials that were trained with it."""
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
    description = str(material.outcomes.spec.get("description") or "")
    paragraph = f"{description}\n\n" if description else ""
    yield contents.README, contents.WORDS.format(name=head.name, id=head.id, description=paragraph).encode()
    yield contents.POSTED, material.text.encode()
    yield contents.SPEC, _json(material.outcomes.spec)  # the order of its keys decides on a table's order
    yield contents.SWEEP, _json(head.model_dump(mode="json"))
    yield contents.CATALOG, _json(material.catalog.model_dump(mode="json"))


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _tables(
    outcomes: SweepOutcomes, catalog: Catalog, writer: ArchiveWriter, skipped: list[dict[str, str]]
) -> Iterator[Rendering]:
    for name in outcomes.spec.get("tables") or {}:
        for numbers in _COMPARED if parse(outcomes.spec, name).published else _COMPARED[:1]:
            try:
                built = build.build(outcomes, name, catalog, numbers=numbers)
            except ENDED:
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


def _ledgers(outcomes: SweepOutcomes, catalog: Catalog, writer: ArchiveWriter) -> Iterator[PackedLedger]:
    papers = dict.fromkeys(table.paper for table in published_tables(outcomes.spec).values())
    found = findings(outcomes, catalog, WITHIN) if papers else []
    for paper in papers:
        view = ledger.ledger(paper, found, WITHIN)
        for format_name in ledger_files.formats():
            made = ledger_files.render(view, format_name)
            file = f"ledger/{paper.lower()}.{made.filename.rpartition('.')[2]}"
            writer.add(file, made.content)
            yield PackedLedger(paper=paper, format=format_name, file=file)


def _verdicts(outcomes: SweepOutcomes, material: Material, writer: ArchiveWriter) -> Iterator[dict[str, Any]]:
    writer.add(contents.LOOKS, looks_file(material.looks))
    for packed, content in verdict_files(outcomes, material.catalog, material.looks):
        writer.add(packed.file, content)
        yield packed.model_dump()


def _figures(
    outcomes: SweepOutcomes, material: Material, writer: ArchiveWriter, skipped: list[dict[str, str]]
) -> Iterator[dict[str, str]]:
    for name in outcomes.spec.get("figures") or {}:
        for format_name in _DRAWN:
            errors.check()
            try:
                figure = figures.drawing.draw(outcomes, name, material.catalog, material.sources)
                made = figures.rendering.render(figure, format_name)
            except ENDED:
                raise
            except (MetricsweepError, ValueError, OSError) as error:
                skipped.append({"figure": name, "format": format_name, "reason": str(error)})
                continue
            file = f"figures/{name}.{format_name}"
            writer.add(file, made.content)
            yield {"figure": name, "format": format_name, "file": file}


def _papers(spec: Mapping[str, Any]) -> Iterator[str]:
    """The published tables that the spec's tables name, as far as they are known."""
    wanted = (parse(spec, name).published for name in spec.get("tables") or {})
    for id_ in dict.fromkeys(one for one in wanted if one):
        try:
            yield papers.load(id_).id
        except NotFoundError:
            continue
