"""Exhibits: what of a sweep the tracker shows beside its runs, made from what is known now."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from orchestrator.publish import figures, formats
from orchestrator.publish.aggregate import direction, selection
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.tables import build
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.verdicts import judge
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.mlflow.tracker import Exhibit
from orchestrator.record.store import Store
from orchestrator.views.errors import ConflictError, MetricsweepError
from orchestrator.views.runs import SweepOutcomes
from workers.catalog import Catalog

log = logging.getLogger(__name__)

TABLE_FORMATS: Final = ("latex", "markdown", "html", "csv", "json")
FIGURE_FORMATS: Final = ("svg", "png", "csv")
SPEC_FILE: Final = "spec.yaml"


class Exhibits:
    """Makes them."""

    def __init__(self, store: Store, catalog: Catalog, storage: Path | str) -> None:
        self._store, self._catalog, self._storage = store, catalog, storage

    def of(self, sweep: int, ended: bool) -> Exhibit:
        """What a sweep shows; with captions and files where it has ended."""
        view = self._store.sweeps.get(sweep)
        spec: Mapping[str, Any] = view.spec
        chosen = selection(view.spec)
        files, captions = dict[str, bytes](), list[str]()
        if ended:
            files[SPEC_FILE] = view.text.encode()
            kept = FigureFiles(self._store, self._storage)
            outcomes = replace(self._store.outcomes.of(sweep), queries=judge.source(kept.arrays_of))
            captions = list(self._tables(outcomes, files))
            self._figures(outcomes, spec.get("figures") or {}, files)
        return Exhibit(
            axes=(*(spec.get("compare") or {}), *(spec.get("tune") or {})),
            columns=list(_printed(spec, chosen.checkpoint)),
            selected_by=chosen.key,
            better=self._better(chosen.metric),
            captions=captions,
            files=files,
        )

    def _better(self, metric: str) -> str:
        try:
            return direction(metric, self._catalog)
        except ConflictError:  # a metric that is gone from the catalog
            return "higher"

    def _tables(self, outcomes: SweepOutcomes, files: dict[str, bytes]) -> Iterator[str]:
        """Their captions; into `files` their files."""
        for name in outcomes.spec["tables"]:
            built = build.build(outcomes, name, self._catalog)
            for format_name in TABLE_FORMATS:
                rendered = formats.render(built, format_name)
                files[f"tables/{name}/{rendered.filename}"] = rendered.content
            yield built.caption

    def _figures(self, outcomes: SweepOutcomes, names: Mapping[str, Any], files: dict[str, bytes]) -> None:
        kept = FigureFiles(self._store, self._storage)
        sources = Sources(self._store.curves.of_trials, kept.arrays_of, kept.pictures_of)
        for name in names:
            try:
                figure = figures.drawing.draw(outcomes, name, self._catalog, sources)
                for format_name in FIGURE_FORMATS:
                    rendered = figures.rendering.render(figure, format_name)
                    files[f"figures/{name}/{rendered.filename}"] = rendered.content
            except MetricsweepError as error:  # as the bundle does: what cannot be drawn is left out
                log.warning("figure %s of sweep %d is not shown in MLflow: %s", name, outcomes.sweep, error)


def _printed(spec: Mapping[str, Any], checkpoint: str) -> Iterator[str]:
    """The result keys that the tables print, each once."""
    layouts = (parse(spec, name) for name in spec.get("tables") or {})
    every = (column for layout in layouts for column in layout.metric_columns if column.delta is None)
    yield from dict.fromkeys(column.key(checkpoint) for column in every)
