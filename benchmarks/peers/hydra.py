"""Hydra's multirun with its joblib launcher: `pip install hydra-core==1.3.8 hydra-joblib-launcher==1.2.0`."""

import importlib
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.training import SLOTS, asked, trained


def job(config: Any) -> None:
    """One job of the multirun."""
    recipe = Path(config.recipes).read_text(encoding="utf-8").splitlines()[config.number]
    trained(recipe, Path(config.folder) / str(config.number))


def main() -> None:
    """Train them all."""
    hydra: Any = importlib.import_module("hydra")
    store = importlib.import_module("hydra.core.config_store").ConfigStore.instance()
    recipes, folder = asked()
    stored = {"number": 0, "recipes": str(Path(sys.argv[1]).resolve()), "folder": str(folder.resolve())}
    store.store(name="peers", node=stored)
    numbers = ",".join(str(number) for number in range(len(recipes)))
    sys.argv[1:] = [
        "--multirun", f"number={numbers}", "hydra/launcher=joblib", f"hydra.launcher.n_jobs={SLOTS}",
        f"hydra.sweep.dir={folder.resolve()}/hydra",
    ]  # fmt: skip
    hydra.main(version_base="1.3", config_path=None, config_name="peers")(job)()


if __name__ == "__main__":
    main()
