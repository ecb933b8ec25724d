"""Data and slots that no machine has, as the API, the commands and the pages show them."""

import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from api.client import Client
from api.commands import serve
from api.commands.serve import _begun, _Patience
from api.commands.watch import follow
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.operations import Inspected, Node
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import Counts, SweepView
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, YAML, Conductor, Into
from tests.api.test_cli import metricsweep
from workers.catalog import Finding, Need
from workers.contract import Part

CUB = SPEC.replace("dataset: digits", "dataset: {name: cub200, side: 64}")
SAID = "CUB_200_2011/images.txt is missing: looked in /srv/data"
ABSENT = f"no node has cub200: on lab: {SAID}; its trials wait until it is there"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A submit does not wait for the nodes to look."""
    return settings.model_copy(update={"inspect": ""})


def found(host: str, state: str = "missing", said: str = SAID, minutes: float = 0) -> Inspected:
    looked = datetime.now(UTC) - timedelta(minutes=minutes)
    need = Need(dataset=Part(name="cub200"))
    return Inspected(host, host, need, Finding.model_validate({"state": state, "message": said}), looked)


def warned(http: TestClient, spec: str = CUB) -> list[str]:
    answer = http.post("/v1/sweeps", params={"dry_run": True}, content=spec, headers=YAML)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["warnings"])


def test_a_submit_and_a_dry_run_warn(http: TestClient, conductor: Conductor) -> None:
    assert warned(http) == [], "nobody has looked"
    conductor.writer.data.note_findings([found("lab")], ["lab"])
    assert warned(http) == [ABSENT]
    assert http.post("/v1/sweeps", content=CUB, headers=YAML).json()["warnings"] == [ABSENT]
    assert warned(http, SPEC) == []
    assert warned(http, CUB.replace("side: 64", "official: false")) == [
        ABSENT.replace("cub200:", "cub200 official=false:")
    ]


def test_problems_of_data_are_reported_with_the_nodes_that_have_it(http: TestClient, conductor: Conductor) -> None:
    def warning(*ones: Inspected) -> str:
        conductor.writer.data.note_findings(ones, [one.host for one in ones])
        return "\n".join(warned(http))

    wrong = found("lab", "wrong", "train has 3 images, expected 5,864")
    assert warning(wrong).startswith("no node has cub200 as it must be: on lab: train has 3 images, expected 5,864; ")
    assert warned(http, CUB.replace("side: 64", "official: false")) == [], "a part of it may be right"
    assert warning(found("hall"), found("lab", "ok")) == (
        f"not every node has cub200: on hall: {SAID}; its trials run on the others"
    )
    assert warning(found("hall"), found("lab")).startswith(f"no node has cub200: on hall and lab: {SAID}; ")
    several = [found(f"n{number}", said=f"{number} is missing") for number in range(5)]
    assert re.fullmatch(r"no node has cub200: (on n\d: \d is missing; ){3}and so on 2 more; .*", warning(*several))
    assert warning(found("lab", "unknown")) == ""
    assert warning(found("lab", "ok", "")) == ""
    assert warning(found("lab", minutes=600)).endswith("until it is there (as of 10 hours ago)")


def test_skipped_files_are_reported_at_submit_and_in_the_catalog(http: TestClient, conductor: Conductor) -> None:
    passed = "passed over 2 images in formats that are not read (.heic 2): a/1.heic, a/2.heic"
    conductor.writer.data.note_findings([found("lab", "ok", passed), found("hall")], ["lab", "hall"])
    assert passed not in "".join(warned(http)), "that a node has nothing is more"
    conductor.writer.data.note_findings([found("lab", "ok", passed)], ["lab"])
    assert warned(http) == [f"cub200: on lab: {passed}"]
    assert passed in http.get("/catalog/dataset/cub200").text
    assert passed not in http.get("/catalog/dataset/sop").text


def test_the_commands_and_the_pages_tell_it(url: str, spec: Path, http: TestClient, conductor: Conductor) -> None:
    conductor.writer.data.note_findings([found("lab")], ["lab"])
    spec.write_text(CUB)
    told = metricsweep(url, "submit", spec)
    assert (told.exit_code, told.stderr) == (0, f"warning: {ABSENT}\n")
    assert json.loads(metricsweep(url, "submit", spec, "--json").stdout)["warnings"] == [ABSENT]
    conductor.writer.capacity.note_notices({1: ABSENT})
    assert f"notice    {ABSENT}" in metricsweep(url, "show", 1).stdout
    assert "queued (waits)" in metricsweep(url, "list").stdout
    page = http.get("/sweeps/1").text
    assert "Some trials wait" in page
    assert ABSENT[1:] in page
    assert "some trials wait: " in http.get("/").text


def test_the_data_of_the_nodes_are_listed(url: str, http: TestClient, conductor: Conductor) -> None:
    assert http.get("/v1/data").json() == []
    assert "no node has looked yet" in metricsweep(url, "data").stderr
    conductor.writer.data.note_findings([found("hall", "ok", ""), found("lab")], ["hall", "lab"])
    assert [(one["host"], one["data"], one["state"], one["message"]) for one in http.get("/v1/data").json()] == [
        ("hall", "cub200", "ok", ""), ("lab", "cub200", "missing", SAID),
    ]  # fmt: skip
    rows = metricsweep(url, "data").stdout
    assert [line.split() for line in rows.splitlines()] == [
        ["node", "data", "state"], ["hall", "cub200", "ok"], ["lab", "cub200", "missing"],
    ]  # fmt: skip
    assert f"on lab: {SAID}" in metricsweep(url, "data", "cub200").stdout
    assert [one["host"] for one in json.loads(metricsweep(url, "data", "--json").stdout)] == ["hall", "lab"]
    wrong = metricsweep(url, "data", "sop")
    assert (wrong.exit_code, "nodes looked for cub200" in wrong.stderr) == (2, True)


def test_run_begins_what_was_missing_when_somebody_looked_last(
    url: str, conductor: Conductor, settings: Settings
) -> None:
    conductor.writer.data.note_findings([found("lab", minutes=600)], ["lab"])
    waiting = Service.open(settings.model_copy(update={"inspect": None}))
    assert "as of 10 hours ago" in waiting.submissions.preview(CUB.encode()).warnings[0], "the look is not answered"
    waiting.close()
    with Client(url, TOKEN) as client:
        assert _begun(client, CUB.encode(), local_only=True) == 1


def test_run_gives_up_once_nothing_trains_and_the_rest_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(serve, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    patience = _Patience()

    def sweep(running: int, notice: str | None = ABSENT) -> SweepView:
        counts = Counts(waiting=4, running=running, finished=2)
        return SweepView(
            id=1, uid="", name="n", state=SweepState.RUNNING, created=datetime.now(UTC), counts=counts, total=6,
            notice=notice, spec={}, text="",
        )  # fmt: skip

    for one in (sweep(0), sweep(1), sweep(0), sweep(0, None), sweep(0)):
        patience.look(one)
    with pytest.raises(MetricsweepError, match="2 of 6 trials are done") as raised:
        patience.look(sweep(0))
    assert ABSENT in str(raised.value)
    assert "the same command continues" in str(raised.value)


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

        def play(_: object) -> None:
            """Act after the previous step was printed: `watch` may miss what is over by its next look."""
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
            _begun(client, BIG.encode(), local_only=True)
        assert list(client.sweeps()) == []
        assert _begun(client, BIG.encode(), local_only=False) == 1
