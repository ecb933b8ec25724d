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
from orchestrator.views.runs import AttemptStopped, Order
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


def outcomes(settings: Settings) -> dict[int, str | None]:
    """What became of every request."""
    store = Store.open(settings.database)
    with store.database.reading() as connection:
        found = {row.id: row.outcome for row in connection.execute(sa.select(schema.request))}
    store.close()
    return found


def test_owners_take_turns(service: Service, settings: Settings) -> None:
    """A second owner's trainings run beside the first one's, though these came earlier."""
    ann, bob = (
        service.submissions.submit(named("a"), actor="ann").id,
        service.submissions.submit(named("b"), actor="bob").id,
    )
    store = Store.open(settings.database)
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
    store.close()


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
    trials = service.trials.page(sweep, None, None, None, 100).items
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
    store = Store.open(settings.database)
    assert [(one.position, one.finished) for one in store.requests.looks(sweep)] == [(8, 8)]
    store.close()
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
    with pytest.raises(InvalidSpecError, match="lacks what the sweep has: loss=triplet"):
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


def being_stopped(store: Store, sweep: int) -> tuple[int, Order]:
    """A sweep that was cancelled while a training of it ran: the fence of a lease, and the order that still runs."""
    fence = lease(store)
    expand_queued(store, store.writer(fence))
    order = claimed(store, fence)
    store.writer(fence).trials.cancel(sweep)
    return fence, order


def test_a_request_that_cannot_be_carried_out_does_not_block_the_next(service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(named("a")).id
    store = Store.open(settings.database)
    odd = append(store, "extend", sweep, {"text": "", "spec": {"version": 1}}), append(store, "priority", sweep, {})
    store.close()
    service.commands.prioritize(sweep, 4)
    conduct(settings)
    found = outcomes(settings)
    assert [(found[one] or "").startswith("refused: ") for one in odd] == [True, True]
    assert (service.sweeps.get(sweep).priority, service.sweeps.get(sweep).state) == (4, "finished")


def test_a_request_behind_a_deletion_ends_nobody(service: Service, settings: Settings) -> None:
    kinds = ("cancel", "retry", "pause", "resume", "priority", "extend", "delete", "unheard-of")
    doomed, other = service.submissions.submit(named("a")).id, service.submissions.submit(named("b")).id
    conduct(settings)
    store = Store.open(settings.database)
    arguments = {"priority": 3, "text": "", "spec": service.sweeps.get(doomed).spec}
    deletion, *behind = [append(store, kind, doomed, arguments) for kind in ("delete", *kinds)]
    last = append(store, "priority", other, {"priority": 7})
    store.close()
    conduct(settings)
    found = outcomes(settings)
    assert found[deletion] == "deleted"
    said = f"refused: no sweep {doomed}: it was deleted at "
    assert {kinds[at]: found[one] for at, one in enumerate(behind) if not (found[one] or "").startswith(said)} == {}
    assert (found[last], service.sweeps.get(other).priority) == ("priority 7", 7)


def test_what_is_asked_of_a_sweep_whose_deletion_waits_is_refused(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, named("a"))
    service.commands.delete(sweep, "a", "ada")
    for ask in (
        lambda: service.commands.retry(sweep),
        lambda: service.commands.prioritize(sweep, 3),
        lambda: service.commands.extend(sweep, named("a")),
        lambda: service.commands.delete(sweep, "a"),
    ):
        with pytest.raises(ConflictError, match=rf"sweep {sweep} is about to be deleted, as ada asked \(request 1\)"):
            ask()
    conduct(settings)
    with pytest.raises(NotFoundError, match=rf"no sweep {sweep}: it was deleted at .* as ada asked \(request 1\)"):
        service.sweeps.get(sweep)
    with pytest.raises(NotFoundError, match="it was deleted"):
        service.commands.retry(sweep)
    assert list(outcomes(settings).values()) == ["deleted"]


def test_a_deletion_that_waits_keeps_its_sweep_as_it_is(service: Service, settings: Settings) -> None:
    """What comes behind it would else make the sweep go on, and the deletion would be refused."""
    sweep = service.submissions.submit(spec()).id
    store = Store.open(settings.database)
    fence, order = being_stopped(store, sweep)
    deletion, behind = append(store, "delete", sweep), append(store, "retry", sweep)
    last = settings.storage / order.training / "1" / "last.pt"
    last.parent.mkdir(parents=True)
    last.touch()
    writer = store.writer(fence)
    renewal = Renewal(store, writer, catalog.load())
    inbox = Requests(store, writer, catalog.load(), None, settings.storage, renewal)
    assert [inbox.apply(one) for one in store.requests.pending()] == [False, True]
    assert "about to be deleted" in (outcomes(settings)[behind] or "")
    assert (last.exists(), service.sweeps.get(sweep).state) == (True, "cancelled")
    store.writer(fence).events.write(AttemptStopped(order.attempt))
    assert inbox.apply(store.requests.pending()[0])
    assert (outcomes(settings)[deletion], last.exists()) == ("deleted", False)
    store.close()


def test_whatever_a_request_fails_in_is_its_own_trouble(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = service.submissions.submit(named("a")).id
    store = Store.open(settings.database)
    broken = append(store, "priority", sweep, {"priority": [4]})
    odd = append(store, "\x07", sweep)
    store.close()
    service.commands.prioritize(sweep, 4)

    def fail(*_: object) -> None:
        raise RecursionError("too deep \ud800")

    monkeypatch.setattr(SweepWriter, "pause", fail)
    service.commands.pause(sweep)
    conduct(settings)
    found = outcomes(settings)
    assert (found[broken] or "").startswith("refused: TypeError: ")
    assert (found[odd] or "").startswith("refused: this version knows no request of the kind")
    assert list(found.values())[2:] == ["priority 4", "refused: RecursionError: too deep ?"]
    assert service.sweeps.get(sweep).state == "finished"
