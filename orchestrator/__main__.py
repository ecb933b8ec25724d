"""`python -m orchestrator`: the conductor's process, and what is asked of it beside the service (see EXAMPLES)."""

import argparse
import logging
import sys
from pathlib import Path

from pydantic import ValidationError

from orchestrator.host.checks import brought_by, refuse_hidden
from orchestrator.host.files import write_for_us_alone
from orchestrator.host.logs import begin_logging
from orchestrator.settings import Secrets, Settings, problems
from orchestrator.views.errors import FencedError, MetricsweepError
from workers import catalog as catalogs

FENCED = 3
EXAMPLES = """examples:
  python -m orchestrator conduct                     serve the queue until SIGTERM
  python -m orchestrator healthy                     0 where the database answers and a conductor holds the lease
  python -m orchestrator run sweeps/digits.yaml      train a sweep in this process, without Ray, and print its tables
  python -m orchestrator webhook                     send the webhook one message of the type `test`
  python -m orchestrator study 1 --cell 0 --out s.log write the search of a cell for optuna-dashboard"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 on success, 1 on an error that is explained on stderr, 3 when another conductor took over."""
    options = _parser().parse_args(arguments)
    begin_logging()
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses, and the webhook's is a secret
    try:
        refuse_hidden()
        settings = Settings()
        begin_logging(settings.log_format, Secrets(settings).hidden)
        with brought_by("server"):
            return _done(settings, options)
    except FencedError as error:
        print(error, file=sys.stderr)
        return FENCED
    except ValidationError as error:
        if error.title != "Settings":
            raise
        print(*problems(error), sep="\n", file=sys.stderr)
        return 1
    except (MetricsweepError, catalogs.PartSourceError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _done(settings: Settings, options: argparse.Namespace) -> int:
    if options.command == "conduct":
        return _conduct(settings, until_idle=False, when_told=options.when_told)
    if options.command == "run":
        return _run(settings.model_copy(update={"engine": "inline"}), options.spec.read_bytes())
    if options.command == "study":
        return _study(settings, options.sweep, options.cell, options.out)
    if options.command == "webhook":
        return _webhook(settings)
    return _healthy(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m orchestrator",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    conduct = commands.add_parser("conduct", help="serve the queue until SIGTERM")
    conduct.add_argument(
        "--when-told", action="store_true", help="load all that it needs, and begin at a line on standard input"
    )
    commands.add_parser("healthy", help="0 where the database answers and a conductor holds the lease, else 1")
    commands.add_parser("webhook", help="send the webhook one message of the type `test`: 0 where it is taken, else 1")
    run = commands.add_parser("run", help="train a sweep in this process, where a debugger can follow it")
    run.add_argument("spec", type=Path, help="a spec in YAML or JSON")
    study = commands.add_parser("study", help="write the adaptive search of a cell as an Optuna journal")
    study.add_argument("sweep", type=int)
    study.add_argument("--cell", type=int, default=0, help="which cell, from 0 on (default 0)")
    study.add_argument("--out", type=Path, required=True, help="the file, replaced where it exists")
    return parser


def _conduct(settings: Settings, *, until_idle: bool, when_told: bool = False) -> int:
    from orchestrator.conduct.conductor import conduct

    return conduct(settings, until_idle=until_idle, when_told=when_told)


def _healthy(settings: Settings) -> int:
    """For a supervisor: a conductor that stands by is as healthy as the one that holds the lease."""
    from orchestrator.record.store import Store

    store = Store.of(settings, migrate=False)
    try:
        conducted = store.lease.conducted()
    finally:
        store.close()
    print("a conductor holds the lease" if conducted else "no conductor holds the lease")
    return 0 if conducted else 1


def _webhook(settings: Settings) -> int:
    """By the settings of this environment, as the conductor would have them if it were started here."""
    from orchestrator.conduct.webhook import Webhook

    webhook = Webhook.named_by(settings)
    if webhook is None:
        print("METRICSWEEP_WEBHOOK_URL  names nobody to tell", file=sys.stderr)
        return 1
    reply = webhook.try_out(settings.address)
    print(f"the webhook at {webhook.host} {reply.said}", file=sys.stdout if reply.taken else sys.stderr)
    return 0 if reply.taken else 1


def _run(settings: Settings, body: bytes) -> int:
    """Train a sweep in this very process: what `metricsweep run`, whose conductor is a child, cannot be."""
    from orchestrator.service.service import Service

    service = Service.open(settings)
    try:
        submitted = service.submissions.submit(body)
        print(f"sweep {submitted.id}", file=sys.stderr)
        _conduct(settings, until_idle=True)
        ended = service.sweeps.get(submitted.id)
        for name in ended.tables:
            sys.stdout.buffer.write(service.tables.render(submitted.id, name, "markdown").content)
        if ended.reuse:
            print(ended.reuse.said, file=sys.stderr)
        if ended.notice:
            print(ended.notice, file=sys.stderr)
        return 0 if ended.state == "finished" else 1
    finally:
        service.close()


def _study(settings: Settings, sweep: int, cell: int, file: Path) -> int:
    from orchestrator.conduct import search
    from orchestrator.record.store import Store

    store = Store.of(settings)
    try:
        found = search.export(store, catalogs.load(settings.parts), sweep, cell, file)
    finally:
        store.close()
    print(f"{file}: {found} trials; optuna-dashboard {file}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    write_for_us_alone()
    sys.exit(main())
