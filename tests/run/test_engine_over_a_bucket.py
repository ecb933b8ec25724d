"""The conformance suite once more, with an object store for the storage: what needs no look into a folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.run import attempt
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Engine, Site
from orchestrator.run.engine_names import engine_named
from orchestrator.run.ray.engine import RayTune
from orchestrator.run.spool import read
from orchestrator.views.orders import AskedEvaluation
from tests.object_store import bucket_at, bucket_url, object_store  # noqa: F401 - fixtures
from tests.run.broker import MemoryBroker, order
from tests.run.test_engine import (  # noqa: F401 - collected here, with this module's engine
    broker_of,
    test_an_error_of_the_recipe_is_told_and_the_rest_goes_on,
    test_an_unwanted_order_is_stopped_while_it_trains,
    test_divergence_is_a_result,
    test_every_order_ends_exactly_once,
    test_messages_arrive_in_order_without_gaps,
)


@pytest.fixture
def engine(
    engine_name: str,
    request: pytest.FixtureRequest,
    bucket_url: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Engine:
    workplace = Workplace("tests.run.trainings:quick", bucket_url, tmp_path / "data")
    if engine_name == "ray_tune":
        request.getfixturevalue("local_ray")
        monkeypatch.setattr("orchestrator.run.ray.engine.LINGER_SECONDS", 0)
    else:
        monkeypatch.setattr(attempt, "scratch", lambda: tmp_path / "scratch")
    return engine_named(engine_name, Site(workplace, tmp_path / "tune"))


def test_kept_weights_are_fetched_and_evaluated(engine: Engine, bucket_url: str) -> None:  # noqa: F811
    bucket_at(bucket_url).write(b"0.25", "source/1", "best.pt")
    good, gone = (
        replace(order(), evaluation=AskedEvaluation(f"source/1/{name}.pt", ("nmi_sec",))) for name in ("best", "gone")
    )
    broker = broker_of(good, gone)
    engine.run(broker)
    assert broker.results[good.training].metrics == {"best/test/nmi_sec": 0.25}
    assert [failure.message for failure in broker.failures] == ["kept weights: source/1/gone.pt is gone"]


@pytest.mark.ray
def test_a_slot_that_dies_is_replaced_and_training_resumes_from_the_bucket(
    local_ray: None,
    bucket_url: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    workplace = Workplace("tests.run.trainings:dying", bucket_url, tmp_path)
    each = order(iterations=6)
    broker, bucket = broker_of(each), bucket_at(bucket_url)

    def once_stored(_: MemoryBroker) -> None:
        """The slot may die when the bucket has a message that names the second step's checkpoint, and so that too."""
        said = [message.body for message in read(bucket, f"{each.training}/1")]
        if any(body.get("step") == 2 and body.get("checkpoint") for body in said):
            (tmp_path / "stored").touch()

    broker.at_tick = once_stored
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    assert [failure.kind for failure in broker.failures] == ["infrastructure"]
    assert each.training in broker.results
    logs = ["".join(m.body.get("log", "") for m in read(bucket, f"{each.training}/{n}")) for n in (1, 2)]
    assert logs == ["step 1\nstep 2\n", "step 3\nstep 4\nstep 5\nstep 6\n"]
    assert [name for name in bucket.names(f"{each.training}/2") if name.endswith(".pt")] == []
