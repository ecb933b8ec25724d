"""The `metricsweep` command: its commands with an example each, and how their errors end."""

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, Protocol, runtime_checkable

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from api.commands import (
    audit,
    backups,
    bundles,
    catalog,
    check,
    comparisons,
    data,
    drift,
    figures,
    imports,
    ledgers,
    local,
    logins,
    mlflow,
    mlflow_env,
    optimism,
    published,
    remarks,
    requests,
    resolutions,
    retention,
    show,
    slots,
    specs,
    sweeps,
    tables,
    tokens,
    users,
    verdicts,
    watch,
    webhook,
    weights,
)
from api.commands.terminal import EXIT_CODES, FAILED, err, explain, out
from orchestrator.host.packages import brought_by
from orchestrator.host.printable import printable

COMMANDS: Final[tuple[tuple[str, Callable[..., None], str], ...]] = (
    ("serve", local.serve, "metricsweep serve --home .metricsweep"),
    ("run", local.run, "metricsweep run sweeps/digits.yaml --out tables"),
    ("slots", slots.slots, "metricsweep slots --slurm --partition gpu --gres gpu:1 --cpus 4 --time 4:00:00"),
    ("login-link", logins.login_link, "metricsweep login-link"),
    ("users", users.users, "metricsweep users add ada --role member --project faces"),
    ("projects", users.projects, "metricsweep projects add faces"),
    ("tokens", tokens.tokens, "metricsweep tokens add ada --name laptop --days 90"),
    ("backup", backups.backup, "metricsweep backup /backups/monday"),
    ("restore", backups.restore, "metricsweep restore /backups/monday --home restored"),
    ("audit", audit.audit, "metricsweep audit --after 1200"),
    ("mlflow-env", mlflow_env.mlflow_env, 'metricsweep mlflow-env      eval "$(metricsweep mlflow-env)"'),
    ("mlflow", mlflow.mlflow, "metricsweep mlflow sync 7"),
    ("webhook", webhook.webhook, "metricsweep webhook test"),
    ("submit", sweeps.submit, "metricsweep submit sweeps/digits.yaml --watch"),
    ("list", sweeps.list_sweeps, "metricsweep list --state running --tag paper"),
    ("show", show.show, "metricsweep show 7      metricsweep show 7/3      metricsweep show --trial 41"),
    ("note", remarks.note, 'metricsweep note 7 "eta 1 diverges on two seeds"      metricsweep note --trial 41'),
    ("tag", remarks.tag, "metricsweep tag 7 paper -wip      metricsweep tag --trial 41 odd"),
    ("watch", watch.watch, "metricsweep watch 7"),
    ("table", tables.table, "metricsweep table 7 main --out main.tex --tuned"),
    ("import", imports.import_, "metricsweep import theirs.csv 7 --unit percent --row method --axis dataset"),
    ("verdicts", verdicts.verdicts, "metricsweep verdicts 7 main --json"),
    ("resolve", resolutions.resolve, "metricsweep resolve 7 main --hours 40 --seeds 12"),
    ("resolution", resolutions.resolution, "metricsweep resolution 7      metricsweep resolution 7 --halt"),
    ("compare", comparisons.compare, "metricsweep compare 7 9 --view difference"),
    ("check", check.check, "metricsweep check paper.tex      metricsweep check paper.tex --bundle out.zip"),
    ("drift", drift.drift, "metricsweep drift 7@2026-11-20 7      metricsweep drift old.zip new.zip"),
    ("optimism", optimism.optimism, "metricsweep optimism 7"),
    ("ledger", ledgers.ledger, "metricsweep ledger SEC --out sec.tex      metricsweep ledger SEC --bundle out.zip"),
    ("rebuild", bundles.rebuild, "metricsweep rebuild out.zip --table main --format latex"),
    ("figure", figures.figure, "metricsweep figure 7 main --format pdf -o main.pdf"),
    ("cancel", requests.cancel, "metricsweep cancel 7 --cell 3"),
    ("retry", requests.retry, "metricsweep retry 7 --only failed"),
    ("pause", requests.pause, "metricsweep pause 7"),
    ("resume", requests.resume, "metricsweep resume 7"),
    ("priority", requests.priority, "metricsweep priority 7 10"),
    ("extend", requests.extend, "metricsweep extend 7 sweeps/digits.yaml --set 'repeat.seed=[0, 1, 2, 3, 4, 5]'"),
    ("delete", requests.delete, "metricsweep delete 7"),
    ("sizes", retention.sizes, "metricsweep sizes"),
    ("gc", retention.gc, "metricsweep gc --days 30 --keep 3      metricsweep gc --sweep 7 --yes"),
    ("requests", requests.requests, "metricsweep requests 7"),
    ("catalog", catalog.catalog, "metricsweep catalog loss triplet"),
    ("data", data.data, "metricsweep data cub200"),
    ("weights", weights.weights, "metricsweep weights fetch bn_inception --data ~/data"),
    ("published", published.published, "metricsweep published SEC-T3 --like sweeps/sec_t3.yaml --out sec-t3.tex"),
    ("expand", specs.expand, "metricsweep expand sweeps/digits.yaml"),
)
"""Name, function and example of each command, in the order of the help; the help is the function's docstring."""
_DASHED: Final = {"tag"}
"""Commands that take an argument which may begin with `-`, and therefore have no `-h`."""


@runtime_checkable
class Shown(Protocol):
    """An error of the command line that says where the help is."""

    def show(self) -> None:
        """Print it to stderr."""


class Commands(TyperGroup):
    """The commands, with one place where an error becomes a message and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, each with the whole first line of its help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (one.help or "").partition("\n")[0]) for name, one in self.commands.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was given."""
        try:
            with brought_by("server"):
                result = super().invoke(ctx)
            sys.stdout.flush()  # here, so that a full disk behind it is an error like any other
            return result
        except (typer.Exit, typer.Abort, TyperException, KeyboardInterrupt):
            raise
        except Exception as error:
            raise typer.Exit(explain(error)) from error

    def main(  # type: ignore[override]  # whatever typer's own takes
        self, args: Any = None, prog_name: Any = None, **more: Any
    ) -> Any:
        """Run, and end the process; what an option was given is quoted without its control characters."""
        if not more.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **more)
        try:
            code = super().main(args, prog_name, standalone_mode=False, **more)
        except TyperException as error:
            error.message = printable(error.message)
            if isinstance(error, Shown):
                error.show()
            else:
                err.print(f"Error: {error.message}")
            sys.exit(error.exit_code)
        except typer.Abort:
            err.print("Aborted!")
            sys.exit(FAILED)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=Commands,
    name="metricsweep",
    help="Runs the comparison sweeps of deep metric learning and turns them into the tables of a paper.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they would print local variables, the token among them
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        import importlib.metadata

        out.print(f"metricsweep {importlib.metadata.version('metricsweep')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


for _name, _function, _example in COMMANDS:
    _settings: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
    if _name in _DASHED:
        _settings = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
    app.command(_name, epilog=f"Example:  {_example}", context_settings=_settings)(_function)


def main() -> None:
    """Run the console script."""
    os.environ["PYTHONSAFEPATH"] = "1"  # what it starts runs no module that lies in the current folder
    app()


if __name__ == "__main__":
    main()
