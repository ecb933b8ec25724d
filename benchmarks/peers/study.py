"""Optuna with processes that share a study on SQLite: a grid over the recipes."""

import multiprocessing
from pathlib import Path

import optuna

from benchmarks.peers.training import SLOTS, asked, trained

METRIC = "best/validation/map@r"


def work(address: str, recipes: list[str], folder: Path) -> None:
    """Train what the grid has left until nothing is."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    grid = optuna.samplers.GridSampler({"number": [*range(len(recipes))]}, seed=0)

    def objective(trial: optuna.Trial) -> float:
        number = trial.suggest_int("number", 0, len(recipes) - 1)
        place = folder / str(number)
        if place.exists():  # processes may draw the same at the end of a grid
            raise optuna.TrialPruned
        return trained(recipes[number], place)[METRIC]

    optuna.load_study(study_name="peers", storage=address, sampler=grid).optimize(objective)


def main() -> None:
    """Train them all."""
    recipes, folder = asked()
    folder.mkdir(parents=True)
    address = f"sqlite:///{folder}/optuna.db"
    optuna.create_study(study_name="peers", storage=address)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(address, recipes, folder)) for _ in range(SLOTS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
