"""What it costs to check specs that mean harm, beside the limits of the check: CPU seconds and memory of each.

    python -m benchmarks.hostile_specs [words of a body's name] [--preview]

Every body of `benchmarks.hostile_bodies` is checked and expanded in a process of its own, forked from one that has read
the catalog; the memory is the peak above what that held. With `--preview` what is sound is forecast too, as `dry_run`
does it: every trial gets its recipe and its fingerprint.
"""

import argparse
import json
import os
import signal
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.hostile_bodies import BODIES
from benchmarks.memory import peak, resident
from orchestrator.plan.validated import read
from orchestrator.service.forecast import forecast
from orchestrator.views.errors import InvalidSpecError, MetricsweepError
from workers import catalog as catalogs
from workers.catalog import Catalog


def check(body: bytes, catalog: Catalog, preview: bool) -> str:
    """What became of a body, in a line."""
    try:
        checked = read(body, catalog, ())
        if preview:
            forecast(checked, None, catalog)
    except InvalidSpecError as error:
        return f"{len(error.problems)} problems, {len(str(error)):,} characters: {error.problems[0]}"[:160]
    except MetricsweepError as error:
        return f"{type(error).__name__}: {error}"[:160]
    return f"{checked.plan.trial_count:,} trials"


def measured(body: bytes, catalog: Catalog, preview: bool) -> dict[str, Any]:
    """CPU seconds, megabytes and outcome, from a process of its own."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(theirs, "w") as out:
            signal.alarm(60)  # ends what hangs
            try:
                Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
                before, began = resident(), time.process_time()
                outcome = check(body, catalog, preview)
                seconds, memory = time.process_time() - began, peak() - before
            except BaseException:
                outcome, seconds, memory = traceback.format_exc(limit=-1), 999.0, 999.0
            json.dump({"seconds": round(seconds, 2), "megabytes": round(memory, 1), "outcome": outcome}, out)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        hung = {"seconds": 60.0, "megabytes": 0.0, "outcome": "hangs"}
        found: dict[str, Any] = json.loads(answer.read() or json.dumps(hung))
    os.waitpid(child, 0)
    return found


def main() -> None:
    """Print a line for each body, and the largest figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--preview", action="store_true")
    chosen = parser.parse_args()
    names = [name for name in BODIES if all(word in name for word in chosen.words)]
    if not names:
        parser.error(f"no body's name has {' and '.join(chosen.words)}; there are: {'; '.join(BODIES)}")
    catalog = catalogs.load()
    check(BODIES["ninety thousand trials"]()[:-1], catalog, False)  # what is made once is made
    found = {}
    for name in names:
        found[name] = one = measured(BODIES[name](), catalog, chosen.preview)
        print(f"{one['seconds']:7.2f} s {one['megabytes']:7.1f} MB  {name:44} {one['outcome']}", flush=True)
    slowest, largest = (max(found, key=lambda name: found[name][key]) for key in ("seconds", "megabytes"))
    print(f"slowest: {slowest}, {found[slowest]['seconds']} s; largest: {largest}, {found[largest]['megabytes']} MB")


if __name__ == "__main__":
    main()
