"""Ray Tune as its documentation shows it, with its callback for MLflow; a third argument `reuse` keeps its actors."""

import sys
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.air.integrations.mlflow import MLflowLoggerCallback

from benchmarks.peers.training import SLOTS, asked, trained


class Training(tune.Trainable):  # type: ignore[misc]
    """A trial that trains one recipe and ends at its first step."""

    def setup(self, config: dict[str, Any]) -> None:
        self._number, self._file, self._folder = int(config["number"]), config["recipes"], Path(config["folder"])

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        recipe = Path(self._file).read_text(encoding="utf-8").splitlines()[self._number]
        metrics = trained(recipe, self._folder / str(self._number))
        return {name.replace("@", "_at_"): value for name, value in metrics.items()} | {"done": True}  # as MLflow asks


def main() -> None:
    """Train them all."""
    recipes, folder = asked()
    folder.mkdir(parents=True)
    ray.init(address="local", num_cpus=SLOTS, include_dashboard=False, log_to_driver=False)
    tracking = MLflowLoggerCallback(tracking_uri=f"sqlite:///{folder}/mlflow.db", experiment_name="peers")
    every = tune.grid_search([*range(len(recipes))])
    tuner = tune.Tuner(
        tune.with_resources(Training, {"cpu": 1}),
        param_space={"number": every, "recipes": str(Path(sys.argv[1]).resolve()), "folder": str(folder.resolve())},
        tune_config=tune.TuneConfig(reuse_actors="reuse" in sys.argv[3:]),
        run_config=tune.RunConfig(
            storage_path=str(folder.resolve() / "tune"),
            verbose=0,
            callbacks=[tracking],
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )
    if tuner.fit().errors:
        raise SystemExit("a trial failed")
    ray.shutdown()


if __name__ == "__main__":
    main()
