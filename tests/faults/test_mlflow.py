"""MLflow is away for a whole sweep, and hears of everything once it is back."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import begin, whole
from tests.faults.evidence import rows
from tests.faults.installation import Installation, RayCluster
from tests.faults.sweeps import spec
from tests.ports import free_port

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.soak]


def test_mlflow_is_away_for_a_whole_sweep(
    empty: Callable[..., Installation], ray_head: RayCluster, note: Note, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port, socket = free_port(), tmp_path_factory.mktemp("mlflow") / "s"
    told = {"port": port, "mlflow_url": f"http://127.0.0.1:{port}/mlflow", "mlflow_socket": socket}
    installation = empty(ray_head, **told)
    installation.start_api()
    installation.start_conductor()
    body = spec()
    sweep = begin(installation, body)
    found = whole(installation, sweep, body)
    assert found.attempts == found.repeated == 0
    assert rows(installation.settings.database, "SELECT count(*) FROM outbox")[0][0] > 0, "MLflow knows nothing"
    installation.start_mlflow(socket)
    seconds = installation.until(
        lambda: rows(installation.settings.database, "SELECT count(*) FROM outbox")[0][0] == 0, "MLflow knows all"
    )

    behind = httpx.Client(
        transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://localhost/api/2.0/mlflow", timeout=60
    )

    def ask(path: str, **query: Any) -> Any:
        return behind.post(path, json=query).raise_for_status().json()

    named = [one for one in ask("experiments/search", max_results=100)["experiments"] if "disturbed" in one["name"]]
    (experiment,) = named
    runs = ask("runs/search", experiment_ids=[experiment["experiment_id"]], max_results=1000)["runs"]
    tags = [{tag["key"]: tag["value"] for tag in run["data"]["tags"]} for run in runs]
    kinds = Counter(tag["metricsweep.kind"] for tag in tags)
    assert kinds == {"sweep": 1, "cell": 2, "trial": 6}, kinds
    assert len({tuple(sorted(tag.items())) for tag in tags}) == len(runs), "each run once"
    ends = Counter(run["info"]["status"] for run in runs)
    assert ends == {"FINISHED": len(runs)}, ends
    trials = [run["info"]["run_id"] for run, tag in zip(runs, tags, strict=True) if tag["metricsweep.kind"] == "trial"]
    steps = [ask_history(behind, trial) for trial in trials]
    assert steps == [list(range(1, 25))] * 6, "every point once"
    note("MLflow away for the whole sweep", found, seconds=seconds)


def ask_history(behind: httpx.Client, run: str) -> list[int]:
    """The steps of a run's curve."""
    answer = behind.get("metrics/get-history", params={"run_id": run, "metric_key": "train/loss"}).raise_for_status()
    return sorted(int(point.get("step", 0)) for point in answer.json()["metrics"])
