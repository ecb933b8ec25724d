"""What is left to train of a sweep: counted once in a while, and only where it is known."""

from orchestrator.service.forecast import MOST_TRIALS, SECONDS, Outlook
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.sweeps import SweepView
from tests.inline_conductor import conduct
from tests.test_conductor import spec
from workers import catalog


def test_it_is_what_is_not_trained_yet_and_is_kept_for_a_while(service: Service, settings: Settings) -> None:
    now = 0.0
    outlook = Outlook(service._store, catalog.load(), lambda: now)
    sweep = service.submissions.submit(spec(repeat={"seed": [0]})).id
    wider = service.submissions.submit(spec()).id

    def left(**changes: object) -> int | None:
        cost = outlook.left(service.sweeps.get(wider).model_copy(update={"state": SweepState.RUNNING} | changes))
        return cost.trainings if cost else None

    assert left() == 8
    conduct(settings)
    assert service.sweeps.get(sweep).state == "finished"
    assert left() == 8, "as it was counted"
    now = SECONDS + 1
    assert left() == 0
    assert left(state=SweepState.FINISHED) is None
    assert left(total=MOST_TRIALS + 1) is None


def test_of_what_cannot_be_known_it_says_nothing(service: Service) -> None:
    outlook = Outlook(service._store, catalog.load())
    fresh = service.sweeps.get(service.submissions.submit(spec(fresh=True)).id)
    assert outlook.left(fresh) is not None
    running = {"state": SweepState.RUNNING}

    def left(sweep: SweepView, **changes: object) -> object:
        return Outlook(service._store, catalog.load()).left(sweep.model_copy(update=running | changes))

    assert left(fresh) is None
    assert left(fresh, spec={"version": 1}) is None, "as of another release"
    strange = fresh.spec | {"fresh": False, "recipe": fresh.spec["recipe"] | {"dataset": {"name": "gone"}}}
    assert left(fresh, spec=strange) is None
