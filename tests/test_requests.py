"""What clients ask of sweeps, over a real database and the inline engine: queue, extension, deletion."""

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from orchestrator.conduct.requests import Requests
from orchestrator.conduct.upkeep import Renewal
from orchestrator.record import schema
from orchestrator.record.queue import Exclusions
from orchestrator.record.store import Store
from orchestrator.record.sweeps import SweepWriter
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, InvalidSpecError, NotFoundError
from orchestrator.views.runs import AttemptStopped
from tests.expanding import expand_queued
from tests.inline_conductor import conduct, ran
from tests.record.sample import claimed, lease
from tests.test_conductor import spec, trained
from workers import catalog


def named(name: str) -> bytes:
    """A spec of four trainings that no other name has."""
    first = 10 * sum(name.encode())
    return spec(name=name, repeat={"seed": [first, first + 1]}, tune={})


def append(store: Store, kind: str, sweep: int, arguments: dict[str, Any] | None = None) -> int:
    """A request as one API appends it that has not seen what another one appended just before."""
    values = {"kind": kind, "sweep_id": sweep, "created": datetime.now(UTC), "arguments": arguments}
    with store.database.writing() as connection:
        made = sa.insert(schema.request).values(values).returning(schema.request.c.id)
        return int(connection.execute(made).scalar_one())


def results(service: Service) -> dict[int, str | None]:
    """What became of every request."""
    with service.store.database.reading() as connection:
        return {row.id: row.outcome for row in connection.execute(sa.select(schema.request))}


def test_owners_take_turns(service: Service) -> None:
    """A second owner's trainings run along with the first owner's, though these came earlier."""
    ann, bob = (
        service.submissions.submit(named("a"), actor="ann").id,
        service.submissions.submit(named("b"), actor="bob").id,
    )
    store = service.store
    fence = lease(store)
    expand_queued(store, store.writer(fence))
    seeds = {sweep: {int(one.labels["seed"]) for one in store.trials.page(sweep).items} for sweep in (ann, bob)}
    sweeps = []
    for _ in range(4):
        order = claimed(store, fence)
        sweeps.append(next(sweep for sweep, own in seeds.items() if order.recipe["seed"] in own))
    assert sweeps == [ann, bob, ann, bob]
    assert store.writer(fence).claims.next(Exclusions(quota=2)) is None, "both owners hold as many slots as they may"
    assert store.writer(fence).claims.next(Exclusions(quota=3)) is not None


def test_a_paused_sweep_waits_and_a_resumed_one_goes_on(service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(named("a")).id
    service.commands.pause(sweep)
    conduct(settings)
    assert (service.sweeps.get(sweep).state, trained(settings)) == ("paused", [])
    service.commands.resume(sweep)
    conduct(settings)
    assert (service.sweeps.get(sweep).state, len(trained(settings))) == ("finished", 4)
    with pytest.raises(ConflictError, match="finished"):
        service.commands.pause(sweep)


def test_a_cell_or_a_trial_is_cancelled_and_retried(service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(named("a")).id
    service.commands.pause(sweep)
    conduct(settings)
    trials = service.store.trials.page(sweep, None, None, None, 100).items
    service.commands.cancel(sweep, cell=1)
    service.commands.cancel(sweep, trial=trials[0].id)
    service.commands.resume(sweep)
    conduct(settings)
    counts = service.sweeps.get(sweep).counts
    assert (counts.finished, counts.cancelled) == (1, 3)
    service.commands.retry(sweep, what="failed")
    conduct(settings)
    assert service.sweeps.get(sweep).counts.cancelled == 3
    service.commands.retry(sweep, cell=1)
    conduct(settings)
    assert service.sweeps.get(sweep).counts.cancelled == 1
    with pytest.raises(NotFoundError, match="no cell 7"):
        service.commands.retry(sweep, cell=7)


def test_an_extension_trains_only_what_is_new(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, spec())
    assert len(trained(settings)) == 8
    wider = {"compare": {"loss": ["triplet", "semihard", "npair"]}, "repeat": {"seed": [0, 1, 2]}}
    service.commands.extend(sweep, spec(**wider))
    conduct(settings)
    found = service.sweeps.get(sweep)
    assert (found.state, found.total, found.counts.finished) == ("finished", 18, 18)
    assert len(trained(settings)) == len(set(trained(settings))) == 18
    assert yaml.safe_load(found.text)["repeat"] == {"seed": [0, 1, 2]}
    assert list(results(service).values()) == ["10 trials added"]
    assert [(one.position, one.finished) for one in service.store.requests.looks(sweep)] == [(8, 8)]
    whole = ran(service, settings, spec(**wider))
    assert len(trained(settings)) == 18
    tables = [service.tables.render(one, "main", "markdown").content for one in (sweep, whole)]
    assert tables[0] == tables[1]


def test_a_subset_shares_its_trainings_with_the_whole_and_grows_to_it(service: Service, settings: Settings) -> None:
    only = spec(only={"loss": "triplet", "seed": [0]})
    sweep = service.submissions.submit(only, "key").id
    conduct(settings)
    assert (service.sweeps.get(sweep).total, len(trained(settings))) == (2, 2)
    assert yaml.safe_load(service.sweeps.get(sweep).text)["only"] == {"loss": "triplet", "seed": [0]}
    assert not service.submissions.submit(only, "key").created
    with pytest.raises(ConflictError):
        service.submissions.submit(spec(only={"loss": "triplet"}), "key")
    again = service.submissions.submit(service.sweeps.get(sweep).text.encode()).id
    with pytest.raises(InvalidSpecError, match="lacks trials of the sweep: loss=triplet"):
        service.commands.extend(sweep, spec(without={"loss": "triplet"}))
    service.commands.extend(sweep, spec(without={"seed": 1}))
    conduct(settings)
    assert (service.sweeps.get(sweep).counts.finished, len(trained(settings))) == (4, 4)
    assert service.sweeps.get(again).counts.reused == 2
    service.commands.extend(sweep, spec())
    whole = ran(service, settings, spec())
    assert len(trained(settings)) == len(set(trained(settings))) == 8
    tables = [service.tables.render(one, "main", "markdown").content for one in (sweep, whole)]
    assert tables[0] == tables[1]


def test_a_deleted_sweep_leaves_what_others_share(service: Service, settings: Settings) -> None:
    first = ran(service, settings, spec())
    second = ran(service, settings, spec(name="wider", repeat={"seed": [0, 1, 2]}))
    assert len(trained(settings)) == 12
    folders = {path.name for path in settings.storage.iterdir() if path.is_dir()}
    with pytest.raises(ConflictError, match="by its name, 'wider'"):
        service.commands.delete(second, "rates")
    service.commands.delete(second, "wider")
    conduct(settings)
    with pytest.raises(NotFoundError):
        service.sweeps.get(second)
    assert len(folders - {path.name for path in settings.storage.iterdir() if path.is_dir()}) == 4
    assert service.sweeps.get(first).counts.finished == 8
    again = ran(service, settings, spec(name="again"))
    assert (service.sweeps.get(again).counts.reused, len(trained(settings))) == (8, 12)


def test_a_request_that_cannot_be_carried_out_does_not_block_the_next(service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(named("a")).id
    asked = [("extend", {"text": "", "spec": {"version": 1}}), ("priority", {})]
    odd = [append(service.store, kind, sweep, arguments) for kind, arguments in asked]
    service.commands.prioritize(sweep, 4)
    conduct(settings)
    found = results(service)
    assert [(found[one] or "").startswith("refused: ") for one in odd] == [True, True]
    assert (service.sweeps.get(sweep).priority, service.sweeps.get(sweep).state) == (4, "finished")


def test_a_request_behind_a_deletion_ends_nobody(service: Service, settings: Settings) -> None:
    kinds = ("cancel", "retry", "pause", "resume", "priority", "extend", "delete", "unheard-of")
    doomed, other = service.submissions.submit(named("a")).id, service.submissions.submit(named("b")).id
    conduct(settings)
    arguments = {"priority": 3, "text": "", "spec": service.sweeps.get(doomed).spec}
    deletion, *behind = [append(service.store, kind, doomed, arguments) for kind in ("delete", *kinds)]
    last = append(service.store, "priority", other, {"priority": 7})
    conduct(settings)
    found = results(service)
    assert found[deletion] == "deleted"
    message = f"refused: no sweep {doomed}: it was deleted at "
    assert {kinds[at]: found[one] for at, one in enumerate(behind) if not (found[one] or "").startswith(message)} == {}
    assert (found[last], service.sweeps.get(other).priority) == ("priority 7", 7)


def test_a_deletion_that_waits_keeps_its_sweep_as_it_is(service: Service, settings: Settings) -> None:
    """What comes behind it would else make the sweep go on, and the deletion would be refused."""
    sweep = service.submissions.submit(spec()).id
    store = service.store
    fence = lease(store)
    expand_queued(store, store.writer(fence))
    order = claimed(store, fence)
    store.writer(fence).trials.cancel(sweep)  # while the order still runs
    deletion, behind = append(store, "delete", sweep), append(store, "retry", sweep)
    last = settings.storage / order.training / "1" / "last.pt"
    last.parent.mkdir(parents=True)
    last.touch()
    writer = store.writer(fence)
    renewal = Renewal(store, writer, catalog.load())
    inbox = Requests(store, writer, catalog.load(), None, settings.storage, renewal)
    assert [inbox.apply(one) for one in store.requests.pending()] == [False, True]
    assert "about to be deleted" in (results(service)[behind] or "")
    assert (last.exists(), service.sweeps.get(sweep).state) == (True, "cancelled")
    store.writer(fence).events.write(AttemptStopped(order.attempt))
    assert inbox.apply(store.requests.pending()[0])
    assert (results(service)[deletion], last.exists()) == ("deleted", False)


def test_whatever_a_request_fails_in_is_its_own_trouble(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = service.submissions.submit(named("a")).id
    broken = append(service.store, "priority", sweep, {"priority": [4]})
    odd = append(service.store, "\x07", sweep)
    service.commands.prioritize(sweep, 4)

    def fail(*_: object) -> None:
        raise RecursionError("too deep \ud800")

    monkeypatch.setattr(SweepWriter, "pause", fail)
    service.commands.pause(sweep)
    conduct(settings)
    found = results(service)
    assert (found[broken] or "").startswith("refused: TypeError: ")
    assert (found[odd] or "").startswith("refused: this release does not know requests of the kind")
    assert list(found.values())[2:] == ["priority 4", "refused: RecursionError: too deep ?"]
    assert service.sweeps.get(sweep).state == "finished"
