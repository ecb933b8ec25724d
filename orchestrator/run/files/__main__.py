"""Join as a slot over the storage, from a job of any scheduler."""

import argparse
import logging
import os
import signal
import sys
import uuid

from orchestrator.host.files import restrict_new_files
from orchestrator.host.logs import begin_logging
from orchestrator.run.files.slot import (
    JOINED_FOLDER,
    FileSlot,
    Mailbox,
    allocation,
    slots_folder,
    state_of,
)
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from workers import catalog as catalogs

log = logging.getLogger("orchestrator.run.files")

IDLE_SECONDS = 300.0


def main(arguments: list[str] | None = None) -> int:
    """Serve as a slot until it is idle for long, or a signal announces the end of the job."""
    options = _parser().parse_args(arguments)
    begin_logging()
    try:
        settings = Settings()
        job, offer = allocation(os.environ)
        offer |= dict(options.resource)
        offer |= {key: value for key, value in {"CPU": options.cpus, "GPU": options.gpus}.items() if value is not None}
        there = slots_folder(settings.storage)
        name = f"{job or os.getpid()}-{uuid.uuid4().hex[:8]}".replace("/", "_")
        edition = catalogs.edition(catalogs.load(settings.parts))
        state = state_of({key: value for key, value in offer.items() if value}, edition, job)
    except (MetricsweepError, catalogs.PartSourceError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    slot = FileSlot(Mailbox(there / JOINED_FOLDER / name), there.parent, state, idle=options.idle)
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: slot.leave(f"it was sent {signal.Signals(number).name}"))
    log.info("slot %s joins %s and offers %s", name, there, state.resources)
    renewed = slot.run()
    log.info("slot %s leaves: %s", name, slot.why)
    if renewed:
        again = [sys.executable, "-P", "-m", "orchestrator.run.files", *(arguments or sys.argv[1:])]
        os.execv(sys.executable, again)  # noqa: S606  for the scheduler the same process
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.run.files", description=__doc__)
    parser.add_argument(
        "--idle",
        type=float,
        default=IDLE_SECONDS,
        help="seconds without a training after which the slot ends (default 300)",
    )
    parser.add_argument("--cpus", type=float, help="CPUs of the slot (default: of its job, else of this machine)")
    parser.add_argument("--gpus", type=float, help="GPUs of the slot (default: all that its job sees)")
    parser.add_argument(
        "--resource",
        action="append",
        default=[],
        type=_resource,
        metavar="NAME=AMOUNT",
        help="a custom resource, such as a100=1",
    )
    return parser


def _resource(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    return name, float(amount or 1)


if __name__ == "__main__":
    restrict_new_files()
    sys.exit(main())
