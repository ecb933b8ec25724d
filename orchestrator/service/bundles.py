"""A sweep as one archive, and the archive as tables again."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, cast

from orchestrator.publish.bundle import making, rebuilding
from orchestrator.publish.bundle.contents import Head
from orchestrator.publish.bundle.making import Material
from orchestrator.publish.bundle.rebuilding import RebuildReport
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.verdicts import judgement
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.store import Store
from workers.catalog import OWN_CODE, Catalog


class BundleQueries:
    """Packs sweeps."""

    def __init__(self, store: Store, catalog: Catalog, sources: Sources, files: FigureFiles) -> None:
        self._store, self._catalog, self._sources, self._files = store, catalog, sources, files

    def make(self, sweep: int) -> IO[bytes]:
        """A sweep's archive as an open file at its beginning, which is gone once it is closed; NotFoundError."""
        view = self._store.sweeps.get(sweep)
        material = Material(
            head=Head.model_validate(view.model_dump(include=set(Head.model_fields))),
            text=view.text,
            outcomes=replace(
                self._store.outcomes.of(sweep, trials=False), queries=judgement.source(self._sources.arrays)
            ),
            evidence=self._store.outcomes.provenance(sweep),
            catalog=self._catalog,
            sources=self._sources,
            own_code=lambda trial: self._files.read(trial, OWN_CODE).content,
            looks=self._store.requests.looks(sweep),
        )
        file = cast(IO[bytes], TemporaryFile())  # noqa: SIM115 - the caller reads and closes it
        try:
            making.make(material, file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file


def rebuild(file: Path, table: str | None = None, file_format: str | None = None) -> RebuildReport:
    """The tables of a bundle made again, asking no server and no database.

    Raises DamagedError, naming every file that was changed, and NotFoundError where no such table is in it.
    """
    with file.open("rb") as source:
        return rebuilding.rebuild(source, table, file_format)
