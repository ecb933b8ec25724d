"""What a killed conductor costs, against a killed driver of plain Ray Tune that is restored: in one run, on two slots.

    python -m benchmarks.adoption [--kills 3] [--trials 12] [--steps 60] [--seconds 0.1]

Both train the same trials, whose steps sleep, and keep a checkpoint every five steps. While they train, the process
that drives them gets SIGKILL so many times, evenly spread, and is started again at once: our conductor as a supervisor
would, Tune's driver with `Tuner.restore` (errored trials are restarted from their checkpoints). Ours over SQLite.

`lease`, `heard`: seconds from SIGKILL until the next conductor holds the lease, and until it has recorded a message of
a slot. `step`: until any training takes a step again. `repeated`: steps taken again. `utilisation`: steps that count,
times their length, over the time of two slots between the first step and the last.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import ray
from ray import tune

from api.local.command_lines import inherited_environment
from tests.faults import disturbing, evidence, sweeps
from tests.faults.installation import ROOT, Installation, RayCluster
from tests.faults.trainings import EVERY, LEDGER

PATIENCE: Final = 600.0
HOLDS: Final = "holding the lease"


class Stepping(tune.Trainable):  # type: ignore[misc]
    """Tune's trial: the same steps, and the same lines in a ledger."""

    def setup(self, config: dict[str, Any]) -> None:
        self._config = config

    def step(self) -> dict[str, Any]:
        time.sleep(self._config["seconds"])
        file = Path(self._config["ledger"]) / str(self._config["key"])
        with file.open("a") as ledger:
            ledger.write(f"1 {os.getpid()} {self.iteration + 1} {time.time():.3f}\n")
        return {"score": 0.0, "done": self.iteration + 1 >= self._config["steps"]}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        (Path(checkpoint_dir) / "state").write_text(str(self.iteration))

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Tune itself restores the iteration."""


def drive(folder: Path, address: str, chosen: argparse.Namespace) -> None:
    """Tune's driver: begins, or goes on where its folder says it was."""
    ray.init(address=address, include_dashboard=False, log_to_driver=False)
    runs = folder / "runs"
    trainable = tune.with_resources(Stepping, {"cpu": 1})
    if tune.Tuner.can_restore(str(runs / "peer")):
        tuner = tune.Tuner.restore(str(runs / "peer"), trainable, restart_errored=False, resume_errored=True)
    else:
        space = {"seconds": chosen.seconds, "steps": chosen.steps, "ledger": str(folder / LEDGER)}
        tuner = tune.Tuner(
            trainable,
            param_space={**space, "key": tune.grid_search([str(key) for key in range(chosen.trials)])},
            run_config=tune.RunConfig(
                name="peer",
                storage_path=str(runs),
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=EVERY),
                verbose=0,
            ),
        )
    tuner.fit()


def taken(folder: Path) -> list[tuple[float, str, int]]:
    """(moment, training, step) of every step so far, in order."""
    found = []
    for file in (folder / LEDGER).glob("*"):
        for line in file.read_text().splitlines():
            _, _, step, moment = line.split()
            found.append((float(moment), file.name, int(step)))
    return sorted(found)


def figures(folder: Path, kills: list[dict[str, float]], chosen: argparse.Namespace) -> dict[str, Any]:
    """What the ledger says of a whole run; the first step began one length before it was noted."""
    steps = taken(folder)
    useful = {(training, step) for _, training, step in steps}
    assert len(useful) == chosen.trials * chosen.steps, "every trial took every step"
    spent = steps[-1][0] - steps[0][0] + chosen.seconds
    medians = {key: round(median(one[key] for one in kills), 1) for key in (kills[0] if kills else {})}
    repeated = sum(Counter((training, step) for _, training, step in steps).values()) - len(useful)
    return {
        **medians,
        "repeated": repeated,
        "utilisation": round(len(useful) * chosen.seconds / 2 / spent, 3),
        "seconds": round(spent, 1),
    }


def moments(chosen: argparse.Namespace) -> Iterator[int]:
    """The counts of useful steps at which a kill is due."""
    every = chosen.trials * chosen.steps
    for number in range(chosen.kills):
        yield every * (number + 1) // (chosen.kills + 1)


def useful(folder: Path) -> int:
    """Steps that count so far."""
    return len({(training, step) for _, training, step in taken(folder)})


def ours(folder: Path, cluster: RayCluster, chosen: argparse.Namespace) -> dict[str, Any]:
    """A sweep whose conductor is killed."""
    installation = Installation(folder, cluster)
    kills: list[dict[str, float]] = []
    try:
        installation.start_api()
        installation.start_conductor()
        body = sweeps.spec(steps=chosen.steps, seeds=chosen.trials // 2)
        sweep = disturbing.begin(installation, body, seconds=chosen.seconds)
        kills.extend(strike(installation, due) for due in moments(chosen))
        installation.until(lambda: installation.client.sweep(sweep).ended is not None, "the sweep ends", PATIENCE)
        evidence.inspect(installation, sweep)
        return figures(installation.home, kills, chosen)
    finally:
        installation.end_all()


def strike(installation: Installation, due: int) -> dict[str, float]:
    """Kill the conductor once so many steps are taken, and take the times of the next one."""
    installation.until(lambda: useful(installation.home) >= due, "steps are taken", PATIENCE)
    held = installation.log("conductor").count(HOLDS)
    installation.kill("conductor")
    began, wall = time.monotonic(), time.time()
    before = evidence.heard(installation)
    installation.until(lambda: installation.log("conductor").count(HOLDS) > held, "another conductor has the lease")
    lease = time.monotonic() - began
    installation.until(lambda: evidence.heard(installation) != before, "a message is recorded")
    return {"lease": lease, "heard": time.monotonic() - began, "step": first_after(installation.home, wall)}


def first_after(folder: Path, moment: float) -> float:
    """Seconds from a moment to the next step of any training."""
    return next(at for at, _, _ in taken(folder) if at > moment) - moment


def peer(folder: Path, cluster: RayCluster, chosen: argparse.Namespace) -> dict[str, Any]:
    """Ray Tune alone, whose driver is killed and restored."""
    (folder / LEDGER).mkdir(parents=True)
    command = [sys.executable, "-m", "benchmarks.adoption", *sys.argv[1:], "--drive", str(folder), cluster.address]
    environment = {**inherited_environment(), **cluster.environment, "PYTHONPATH": str(ROOT)}
    kills: list[dict[str, float]] = []

    def start() -> "subprocess.Popen[bytes]":
        with (folder / "driver.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=ROOT)

    driver = start()
    try:
        for due in moments(chosen):
            while useful(folder) < due and driver.poll() is None:
                time.sleep(0.05)
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            wall = time.time()
            driver = start()
            while taken(folder)[-1][0] <= wall + chosen.seconds and driver.poll() is None:
                time.sleep(0.05)
            kills.append({"step": first_after(folder, wall + chosen.seconds) + chosen.seconds})
        if driver.wait(PATIENCE):
            raise RuntimeError((folder / "driver.log").read_text()[-3000:])
        return figures(folder, kills, chosen)
    finally:
        driver.kill()


def main() -> None:
    """Print the figures of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--drive", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.drive:
        drive(Path(chosen.drive[0]), chosen.drive[1], chosen)
        return
    found: dict[str, Any] = {"cores": os.cpu_count(), "kills": chosen.kills, "load": round(os.getloadavg()[0], 1)}
    for name, run in (("metricsweep", ours), ("ray tune, restored", peer)):
        with tempfile.TemporaryDirectory(prefix="ms-") as folder:
            cluster = RayCluster(Path(folder) / "ray", cpus=2)
            try:
                cluster.up()
                found[name] = run(Path(folder) / "run", cluster, chosen)
            finally:
                cluster.end_all()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
