"""Checks this folder: its parts, printed tables and specs."""

from pathlib import Path

import pytest
import torch

from orchestrator.plan.check import read_spec
from orchestrator.publish import papers
from workers import catalog, registry
from workers.contract import Part

HERE = Path(__file__).parent
CATALOG = catalog.load(HERE)
SPECS = sorted((HERE / "sweeps").rglob("*.yaml"))


def test_the_printed_table_can_be_read() -> None:
    """The file has two metrics for each of six rows."""
    table = papers.load("MINE-T1", CATALOG.published)
    assert len(table.numbers) == 2 * 6


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.stem)
def test_a_spec_is_sound_and_finds_its_printed_numbers(spec: Path) -> None:
    """A number that no cell finds would stay without a comparison."""
    checked = read_spec(spec.read_bytes(), CATALOG, papers.printed_lines(CATALOG.published))
    for table in checked.spec.tables.values():
        printed = papers.load(table.published, CATALOG.published)
        posted = checked.spec.model_dump(mode="json")
        for cell in checked.plan.cells:
            labels = papers.completed_labels(posted, cell.labels, printed, CATALOG)
            assert printed.find(labels, printed.metrics[0]), f"{printed.id} prints no number for {labels}"


def test_the_loss_is_that_of_a_naive_loop() -> None:
    """The formula, term by term."""
    loss = registry.build("loss", Part(name="soft_neighbours", temperature=0.5), HERE)
    embeddings, labels = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 3
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    terms = []
    for i in range(8):
        near = {k: torch.exp(-(unit[i] - unit[k]).pow(2).sum() / 0.5) for k in range(8) if k != i}
        own = [value for k, value in near.items() if labels[k] == labels[i]]
        terms.append(-torch.log(sum(own) / sum(near.values())))
    assert loss(embeddings, labels).item() == pytest.approx(torch.stack(terms).mean().item(), abs=1e-5)
