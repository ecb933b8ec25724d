"""Put mutants into a copy of the product, one at a time, and say which tests notice them.

    python -m tests.mutants map               run the whole suite, and note the functions that each test reaches
    python -m tests.mutants draw --seed 1     draw 300 new mutants into drawn.json
    python -m tests.mutants run               run every mutant of drawn.json and written.json; results to results.json
    python -m tests.mutants run --half first  the first half of the drawn ones, and all written by hand
    python -m tests.mutants run --missing     only those without a result: go on after an interruption

A mutant is killed when a test that reaches its function fails, or does not end in time, and passes without the mutant.
Mutants that no test notices survive; results.json may say why (`survived: only a power cut shows it`). Ends with 1
where no test notices a mutant that results.json has as killed.

A mutant with a recorded test is first tried with that test alone, which needs no map.

`map` needs Python 3.12 or newer, and the packages of the whole suite there; the other commands run on any Python of the
project. Arguments of pytest in $PYTEST_ADDOPTS, such as a file of tests, restrict a map.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tqdm import tqdm

from tests.mutants import mutant as mutants
from tests.mutants import reached
from tests.mutants.mutant import LostError, Mutant

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
TIMES: Final = 5.0
"""A run that takes this many times as long as expected, plus a minute, has noticed its mutant."""
UNNOTICED: Final = ("survived", "lost", "unreached", "unsound")
"""How results begin in which no test has noticed a mutant; `unsound`: its tests fail without it, too."""
_ENDLESS: Final = " did not end"
COPIED: Final = ("api", "dashboards", "docs", "orchestrator", "sweeps", "tests", "workers", "benchmarks", "docker")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=["map", "draw", "run"])
    parser.add_argument("--map", type=Path, default=reached.ROOT / "build" / "reached", help="folder of the map")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--half", choices=["first", "second", "both"], default="both", help="of the drawn mutants")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=90.0, help="of tests a mutant; then one whole file")
    parser.add_argument("--only", default="", help="mutants whose function contains this text")
    parser.add_argument("--missing", action="store_true", help="only mutants that results.json lacks")
    given = parser.parse_args()
    if given.command == "map":
        if not hasattr(sys, "monitoring"):
            parser.error(f"`map` needs Python 3.12 or newer, for sys.monitoring; this is {sys.version.split()[0]}")
        return _map(given.map)
    if given.command == "draw":
        drawn = mutants.draw(reached.ROOT, given.count, given.seed)
        (HERE / "drawn.json").write_text(json.dumps([asdict(one) for one in drawn], indent=1) + "\n", encoding="utf-8")
        return 0
    chosen = _chosen(given.half, given.only)
    if given.missing:
        chosen = [one for one in chosen if _key(one) not in _results()]
    return _run(chosen, given.map, given.processes, given.seconds)


def _map(folder: Path) -> int:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [str(HERE / "startup"), str(reached.ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "MUTANTS_REACHED": str(folder),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    command = [Path(sys.executable).with_name("pytest"), "-q", "-n", "auto", "-p", "tests.mutants.reached"]
    return subprocess.run(command, cwd=reached.ROOT, env=environment, check=False).returncode


def _chosen(half: str, only: str) -> list[Mutant]:
    drawn = [Mutant(**one) for one in json.loads((HERE / "drawn.json").read_text(encoding="utf-8"))]
    written = [Mutant(**one) for one in json.loads((HERE / "written.json").read_text(encoding="utf-8"))]
    halves = {"first": drawn[::2], "second": drawn[1::2], "both": drawn}
    return [one for one in halves[half] + written if only in one.function]


def _run(chosen: list[Mutant], folder: Path, processes: int, most: float) -> int:
    tests, seconds = reached.read(folder) if folder.exists() else ({}, {})
    results = _results()
    escaped = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch, ThreadPoolExecutor(processes) as pool:
        Path(scratch, "shared").symlink_to(reached.ROOT.parent / "shared")  # where tests look for real data
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(processes):
            trees.put(_copied(Path(scratch, str(number))))

        def tried(one: Mutant) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                recorded = results.get(_key(one), "")
                return one, _still(tree, one, recorded) or _noticed(tree, one, tests, seconds, most)
            finally:
                trees.put(tree)

        waiting = [pool.submit(tried, one) for one in chosen]
        for done in tqdm(as_completed(waiting), total=len(chosen), unit="mutant"):
            one, result = done.result()
            key = _key(one)
            known = results.get(key, result)
            if result.startswith(UNNOTICED) and not known.startswith(UNNOTICED):
                escaped.append(f"{one.name}: {result}; was noticed by {results[key]}")
            elif result != "unreached" and not known.startswith(f"{result}: "):  # else a reason is noted
                results[key] = result
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for line in escaped:
        print(line)
    return 1 if escaped else 0


def _key(mutant: Mutant) -> str:
    return f"{mutant.function} | {mutant.old} | {mutant.new}"


def _results() -> dict[str, str]:
    results: dict[str, str] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return results


def _copied(tree: Path) -> Path:
    for name in COPIED:
        shutil.copytree(reached.ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in reached.ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, tree / path.name)
    (tree / ".venv").symlink_to(reached.ROOT / ".venv")
    return tree


def _still(tree: Path, one: Mutant, recorded: str) -> str | None:
    """The recorded test, if it still notices the mutant; no map of the suite is needed for it."""
    if not (tree / recorded.partition("::")[0]).is_file():
        return None
    try:
        path, before = mutants.apply(tree, one)
    except LostError:
        return "lost"
    try:
        return recorded if _failure(tree, [recorded.removesuffix(_ENDLESS)], 60.0) else None
    finally:
        path.write_text(before, encoding="utf-8")


def _noticed(tree: Path, one: Mutant, tests: Mapping[str, set[str]], seconds: Mapping[str, float], most: float) -> str:
    """The first test that fails with a mutant in `tree` and not without it; one of UNNOTICED where none does."""
    try:
        function = mutants.locate(tree, one)
    except LostError:
        return "lost"
    shortest = sorted(tests.get(function.name, ()), key=lambda test: (seconds.get(test, 0.0), test))
    if not shortest:
        return "unreached"
    taken, total = [], 0.0
    for test in shortest:
        total += seconds.get(test, 0.0)
        if taken and total > most:
            break
        taken.append(test)
    path, before = mutants.apply(tree, one)
    try:
        failure = _failure(tree, taken, total) or _failure(tree, [_fullest(shortest)], most)
    finally:
        path.write_text(before, encoding="utf-8")
    if failure is None:
        return "survived"
    return f"unsound: {failure.message}" if _failure(tree, failure.tests, most) else failure.message


def _fullest(tests: list[str]) -> str:
    """The file that has the most of these tests: what its shared fixtures build is asserted by any of them."""
    files = [test.partition("::")[0] for test in tests]
    return max(sorted(set(files)), key=files.count)


class Failure(NamedTuple):
    """A run of tests that failed: what a report says of it, and the tests that show it."""

    message: str
    tests: list[str]


def _failure(tree: Path, tests: list[str], expected: float) -> Failure | None:
    """The first of these tests that fails; None where all pass."""
    listed = tree / "mutant-tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'api' / 'package'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", f"@{listed}"]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(TIMES * expected + 60.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return Failure(f"{tests[0]}{_ENDLESS}", tests)
        output.seek(0)
        lines = output.read().splitlines()
    if code == 0:
        return None
    for line in lines:
        if line.startswith(("FAILED tests/", "ERROR tests/")):  # not a log line of the product
            failed = line.partition(" ")[2].partition(" - ")[0]
            return Failure(failed, [failed])
    return Failure(f"pytest ended with {code}", tests)


if __name__ == "__main__":
    sys.exit(main())
