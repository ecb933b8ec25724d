"""`python -m benchmarks.claims`: train what the quick twins claim to show, and say whether they do.

    python -m benchmarks.claims                        every twin, seeds 5 to 14
    python -m benchmarks.claims sec_t9 --seeds 1       one twin, one seed
    python -m benchmarks.claims --write                also put the figures into docs/claims.md: of these twins; the
                                                       rows of others stay
    python -m benchmarks.claims --paper FOLDER         the specs with claims in FOLDER/sweeps of a paper of your own;
                                                       --write puts them into FOLDER/claims.md (docs/your-paper.md)

A training is kept in build/claims by its fingerprint, so that a second run goes on where the first one ended, and what
computes other numbers since is trained anew. Ends with 1 where a claim does not hold.
"""

import argparse
import sys
from pathlib import Path

import torch
from tqdm import tqdm  # type: ignore[import-untyped]

from benchmarks.claims import page
from benchmarks.claims.assertion import Assertion, asserted
from benchmarks.claims.claim import TWINS, Claim, claiming
from benchmarks.claims.trainings import Trainings
from benchmarks.claims.twin import Twin
from workers.catalog import unknown
from workers.contract import DataMissingError


def main() -> int:
    """Train, print, and write a file on request."""
    options = _options()
    folder, target = (options.paper / "sweeps", options.paper / "claims.md") if options.paper else (TWINS, page.PAGE)
    every = claiming(folder)
    if wrong := sorted(set(options.twins) - every.keys()):
        sys.exit(f"{folder}: {unknown('spec with claims', wrong[0], every)}")
    if not every:
        sys.exit(f"{folder}: expected specs with `# Claims:` in their first comment, found none")
    names = options.twins or list(every)
    seeds = range(options.first, options.first + options.seeds)
    twins = [Twin(every[name], seeds, options.paper) for name in names]
    trainings = Trainings(options.kept, options.paper)
    left_out = _train(twins, trainings)
    for name, why in left_out.items():
        print(f"{name} is left out: {why}")
    twins = [twin for twin in twins if twin.name not in left_out]
    found = {twin.name: findings(twin, trainings) for twin in twins}
    for line in page.lines(found):
        print(line)
    claims = [one for ones in found.values() for one in ones if isinstance(one, Assertion)]
    count = len({trial.fingerprint for twin in twins for trial in twin.trials()})
    held = sum(one.held for one in claims)
    print(
        f"{held} of {len(claims)} claims hold, by {count} trainings over {options.seeds} seeds from {options.first} on"
    )
    if options.write:
        before = page.NEW if options.paper and not target.exists() else target.read_text(encoding="utf-8")
        specs = (Twin(file, seeds, options.paper) for file in every.values())
        prints = {trial.fingerprint for spec in specs for trial in spec.trials()}
        trained = f"{len(prints)} trainings with the seeds {seeds[0]} to {seeds[-1]}"
        if not page.has_seeds(before, seeds) and len(twins) < len(every):
            print("nothing is written: the rows of the other twins are of other seeds")
            return 1
        names = ", ".join(f"`{twin.name}`" for twin in twins)
        last = "All twins" if len(twins) == len(every) else names
        measured = f"{trained}, on a CPU. Trained in the last run, with torch {torch.__version__}: {last}."
        content = page.put(before, f"{page.table(found, before, page.unseen(every, target))}\n\n{measured}")
        target.write_text(content, encoding="utf-8")
    return 0 if held == len(claims) else 1


def findings(twin: Twin, trainings: Trainings) -> page.Found:
    """Each claim with what was found, in the order of the file; what digits do not show as it stands there."""
    return [asserted(one, twin.pairs(one, trainings)) if isinstance(one, Claim) else one for one in twin.claims]


def _train(twins: list[Twin], trainings: Trainings) -> dict[str, str]:
    """Train what is missing; gives the twins whose data set is not here, and what it says of that."""
    missing = {trial.fingerprint: (twin, trial) for twin in twins for trial in twin.trials()}
    missing = {key: pair for key, pair in missing.items() if not trainings.kept(pair[1])}
    left_out: dict[str, str] = {}
    for twin, trial in tqdm(missing.values(), "trainings", disable=not missing, mininterval=2):
        if twin.name not in left_out:
            try:
                trainings.result(trial)
            except DataMissingError as error:
                left_out[twin.name] = str(error)
    return left_out


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("twins", nargs="*", metavar="TWIN", help="such as sec_t9; default: all of sweeps/quick")
    parser.add_argument("--seeds", type=int, default=10, help="how many (default 10)")
    parser.add_argument("--first", type=int, default=5, help="the first; bounds were set by 0 to 4 (default 5)")
    parser.add_argument("--kept", type=Path, default=Path("build/claims"), help="folder of results")
    parser.add_argument("--write", action="store_true", help=f"put the table into {page.PAGE.name}")
    parser.add_argument("--paper", type=Path, metavar="FOLDER", help="the folder of a paper of your own")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
