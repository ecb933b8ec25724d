"""What a new column of a finished sweep costs: its trainings' kept weights evaluated, against training it all again.

    python -m benchmarks.columns [--spec sweeps/digits.yaml] [--only loss=triplet] [--metric nmi_sec] [--metric ...]
                                 [--set repeat.seed=0]

In one process, by the inline engine: trains the sweep, extends it by the metrics, and trains a fresh sweep that has
them from the start. Prints CPU seconds, the import of torch left out, and whether both tables are the same.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from orchestrator.plan.reading.edit import edited
from orchestrator.plan.reading.further_columns import with_metrics
from orchestrator.run.attempt import resolve
from orchestrator.service.offline import subset_of
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct


def conducted(settings: Settings) -> float:
    """Conduct until idle; gives the CPU seconds of this process."""
    began = time.process_time()
    conduct(settings)
    return time.process_time() - began


def measured(spec: bytes, metrics: Sequence[str], home: Path) -> dict[str, object]:
    """The figures of one sweep."""
    settings = Settings(home=home, engine="inline")
    service = Service.open(settings)
    resolve(settings.train)  # and torch with it
    sweep = service.submissions.submit(spec).id
    trained = conducted(settings)
    view = service.sweeps.get(sweep)
    wider = with_metrics(view.text.encode(), view.spec, metrics)
    service.commands.extend(sweep, wider)
    evaluated = conducted(settings)
    fresh = service.submissions.submit(edited(wider, ["fresh=true"])).id
    again = conducted(settings)
    tables = [service.tables.render(one, view.tables[0], "csv").content for one in (sweep, fresh)]
    found: dict[str, object] = {
        "trials": view.total,
        "CPU seconds of training": round(trained, 1),
        "CPU seconds of the new columns": round(evaluated, 1),
        "CPU seconds of training with them": round(again, 1),
        "the same table": tables[0] == tables[1],
    }
    service.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, default=Path("sweeps/digits.yaml"))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--metric", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    chosen = parser.parse_args()
    spec = edited(chosen.spec.read_bytes(), chosen.set)
    spec = subset_of(spec, chosen.only, ()) if chosen.only else spec
    with tempfile.TemporaryDirectory() as home:
        print(json.dumps(measured(spec, chosen.metric or ["nmi_sec", "recall@16"], Path(home)), indent=2))


if __name__ == "__main__":
    main()
