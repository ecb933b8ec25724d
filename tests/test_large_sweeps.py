"""A large sweep that goes on: what is expensive may be old, counts are not; nothing is once it has ended."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.host import cache
from orchestrator.record import progress
from orchestrator.service import tables
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.two_worlds import SECRET, two_worlds
from tests.dashboards.stage import Stage

SPEC = """\
version: 1
name: large
recipe:
  dataset: digits
  backbone: {name: small_cnn, width: 16}
  sampler: {name: balanced, classes: 4, per_class: 8}
  iterations: 300
  validation: {name: class_holdout, folds: 3, fold: 0}
compare: {loss: [triplet, semihard]}
repeat: {seed: [0, 1]}
tables: {main: {rows: [loss], metrics: [nmi]}}
"""
TRIALS = 4


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what took any time at all is kept for hours."""
    monkeypatch.setattr(progress, "LARGE", 1)
    monkeypatch.setattr(tables, "LARGE", 1)
    monkeypatch.setattr(cache, "SHARE", 1e9)


def latex(service: Service, sweep: int) -> str:
    return service.tables.render(sweep, "main", "latex").content.decode()


def test_what_is_expensive_is_old_until_the_sweep_has_ended(service: Service) -> None:
    stage = Stage(service, service.store)
    sweep = stage.submit(SPEC)
    stage.finish()
    one, table = service.sweeps.get(sweep), latex(service, sweep)
    page = service.tables.html(sweep, "main")
    stage.finish()
    two = service.sweeps.get(sweep)
    assert (one.counts.finished, two.counts.finished) == (1, 2)
    assert two.steps == service.sweeps.page(None, None, None, 9).items[0].steps == one.steps
    assert two.eta_seconds == one.eta_seconds
    assert (latex(service, sweep), service.tables.html(sweep, "main")) == (table, page)
    for _ in range(2, TRIALS):
        stage.finish()
    stage.settle()
    ended = service.sweeps.get(sweep)
    assert (ended.state, ended.counts.finished, ended.steps.percent, ended.eta_seconds) == ("finished", 4, 100, None)
    assert latex(service, sweep) != table
    assert service.tables.html(sweep, "main") != page


def test_what_is_kept_is_shown_to_nobody_else(
    tmp_path: Path, settings: Settings, migrated: Callable[[Path], Path]
) -> None:
    with two_worlds(tmp_path, settings, migrated) as (_, world):
        for path in ("/v1/sweeps/2/tables/main", "/v1/sweeps/2", "/sweeps/2"):
            for who, status in (("ben", 200), ("ada", 404)):
                answer = world.client(who).get(path)
                assert answer.status_code == status, (who, path)
                assert (SECRET in answer.text) == (who == "ben"), (who, path)
