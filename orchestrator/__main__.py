"""Run the conductor, or a command that needs no running service."""

import argparse
import logging
import sys
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from orchestrator.host.checks import refuse_hidden, requires_extra
from orchestrator.host.files import restrict_new_files
from orchestrator.host.logs import begin_logging
from orchestrator.settings import Secrets, Settings, problems
from orchestrator.views.errors import FencedError, MetricsweepError
from workers import catalog as catalogs

FENCED = 3
EXAMPLES = """examples:
  python -m orchestrator conduct                     run the conductor until SIGTERM
  python -m orchestrator healthy                     exit with 0 if the database answers and a conductor runs
  python -m orchestrator run sweeps/digits.yaml      train a sweep in this process and print its tables
  python -m orchestrator webhook                     send a test message to the webhook
  python -m orchestrator study 1 --cell 0 --out s.log write the search of a cell for optuna-dashboard"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns 0 on success, 1 after an error, 3 if another conductor holds the lease."""
    options = _parser().parse_args(arguments)
    begin_logging()
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses, and that of the webhook is a secret
    try:
        refuse_hidden()
        settings = Settings()
        begin_logging(settings.log_format, Secrets(settings).hidden)
        with requires_extra("server"):
            return _run_command(settings, options)
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


def _run_command(settings: Settings, options: argparse.Namespace) -> int:
    if options.command == "conduct":
        from orchestrator.conduct.conductor import conduct

        return conduct(settings, until_idle=False)
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
    commands.add_parser("conduct", help="run the conductor until SIGTERM")
    commands.add_parser("healthy", help="exit with 0 if the database answers and a conductor holds the lease, else 1")
    commands.add_parser("webhook", help="send a test message to the webhook; exit with 0 if it is accepted, else 1")
    run = commands.add_parser("run", help="train a sweep in this process, where a debugger can follow it")
    run.add_argument("spec", type=Path, help="a spec in YAML or JSON")
    study = commands.add_parser("study", help="write the adaptive search of a cell as an Optuna journal")
    study.add_argument("sweep", type=int, help="the number of the sweep")
    study.add_argument("--cell", type=int, default=0, help="the cell, from 0 (default 0)")
    study.add_argument("--out", type=Path, required=True, help="the file; an existing file is replaced")
    return parser


def _healthy(settings: Settings) -> int:
    """Also 0 in the container of a conductor that stands by while another one holds the lease."""
    from orchestrator.record.store import Store

    with closing(Store.of(settings, migrate=False)) as store:
        conducted = store.lease.conducted()
    print("a conductor holds the lease" if conducted else "no conductor holds the lease")
    return 0 if conducted else 1


def _webhook(settings: Settings) -> int:
    from orchestrator.conduct.webhook import Webhook

    webhook = Webhook.named_by(settings)
    if webhook is None:
        print("METRICSWEEP_WEBHOOK_URL  is not set", file=sys.stderr)
        return 1
    reply = webhook.try_out(settings.address)
    print(f"the webhook at {webhook.host} {reply.message}", file=sys.stdout if reply.taken else sys.stderr)
    return 0 if reply.taken else 1


def _run(settings: Settings, body: bytes) -> int:
    """Train a sweep in this process; the conductor of `metricsweep run` is a child process."""
    from orchestrator.conduct.conductor import conduct
    from orchestrator.service.service import Service

    with closing(Service.open(settings)) as service:
        submitted = service.submissions.submit(body)
        print(f"sweep {submitted.id}", file=sys.stderr)
        conduct(settings, until_idle=True)
        ended = service.sweeps.get(submitted.id)
        for name in ended.tables:
            sys.stdout.buffer.write(service.tables.render(submitted.id, name, "markdown").content)
        for message in (ended.reuse and ended.reuse.summary, ended.notice):
            if message:
                print(message, file=sys.stderr)
        return 0 if ended.state == "finished" else 1


def _study(settings: Settings, sweep: int, cell: int, file: Path) -> int:
    from orchestrator.conduct import search
    from orchestrator.record.store import Store

    with closing(Store.of(settings)) as store:
        count = search.export(store, catalogs.load(settings.parts), sweep, cell, file)
    print(f"{file}: {count} trials; optuna-dashboard {file}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    restrict_new_files()
    sys.exit(main())
