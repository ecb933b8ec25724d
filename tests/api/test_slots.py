"""A slot that no node can hold, as the API, the commands and the pages tell it."""

import io

import pytest
from fastapi.testclient import TestClient

from api.client import Client
from api.commands.local import _begun
from api.commands.watch import follow
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.nodes import Node
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, YAML, Conductor, Into

WARNING = (
    "no node of the cluster can hold a slot of 64 CPUs and 0 GPUs; the most that one has is 4 CPUs and 0 GPUs; "
    "trials of loss=triplet wait until such a node joins"
)
BIG = SPEC + "slots: [{when: {loss: triplet}, cpus: 64}]\n"


def seen(settings: Settings, conductor: Conductor) -> Store:
    """The store, once a small node was seen."""
    store = Store.open(settings.database)
    conductor.writer.capacity.note_nodes([Node("small", "lab", {"CPU": 4.0})])
    return store


def test_a_submit_and_a_dry_run_warn(http: TestClient, settings: Settings, conductor: Conductor) -> None:
    assert http.post("/v1/sweeps", content=BIG, headers=YAML).json()["warnings"] == [], "no cluster was seen"
    seen(settings, conductor).close()
    answer = http.post("/v1/sweeps", content=BIG, headers=YAML)
    assert (answer.status_code, answer.json()["warnings"]) == (201, [WARNING])
    dry = http.post("/v1/sweeps", params={"dry_run": True}, content=BIG, headers=YAML)
    assert (dry.status_code, dry.json()["warnings"]) == (200, [WARNING])
    assert http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["warnings"] == []


def test_watching_says_once_why_trials_wait_and_when_that_is_over(
    url: str, settings: Settings, conductor: Conductor
) -> None:
    store = seen(settings, conductor)
    text = io.StringIO()
    with Client(url, TOKEN) as client:
        sweep = client.submit(BIG.encode()).id
        conductor.begin()
        conductor.writer.capacity.note_notices({sweep: WARNING})

        def end() -> None:
            conductor.finish(times=4)
            conductor.settle()

        acts = iter([lambda: conductor.writer.capacity.note_notices({}), end])
        awaited = [WARNING, "what its trials waited for is there"]

        def play() -> None:
            """Act once what was done before has been said: who watches need not see what is over at the next look."""
            if awaited and awaited[0] in text.getvalue():
                del awaited[0]
                next(acts)()

        follow(client, sweep, Into(text), 0.01, play)
    store.close()
    assert text.getvalue().count(WARNING) == 1
    assert text.getvalue().count("what its trials waited for is there") == 1


def test_run_refuses_what_its_one_machine_cannot_hold(url: str, settings: Settings, conductor: Conductor) -> None:
    seen(settings, conductor).close()
    with Client(url, TOKEN) as client:
        with pytest.raises(MetricsweepError, match="no other will join"):
            _begun(client, BIG.encode(), alone=True)
        assert list(client.sweeps()) == []
        assert _begun(client, BIG.encode(), alone=False) == 1
