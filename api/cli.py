"""The `metricsweep` command: its commands with an example each, and how their errors end."""

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, Protocol, runtime_checkable

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from api.commands import accounts, admin, evidence, serve, sweeps, tables, watch
from api.commands.terminal import EXIT_CODES, FAILED, err, explain, out
from orchestrator.host.checks import brought_by
from orchestrator.host.logs import printable

COMMANDS: Final[tuple[tuple[str, Callable[..., None], str], ...]] = (
    ("serve", serve.serve, "metricsweep serve --home .metricsweep"),
    ("run", serve.run, "metricsweep run sweeps/digits.yaml --out tables"),
    ("slots", admin.slots, "metricsweep slots --slurm --partition gpu --gres gpu:1 --cpus 4 --time 4:00:00"),
    ("login-link", admin.login_link, "metricsweep login-link"),
    ("users", accounts.users, "metricsweep users add ada --role member --project faces"),
    ("projects", accounts.projects, "metricsweep projects add faces"),
    ("tokens", accounts.tokens, "metricsweep tokens add ada --name laptop --days 90"),
    ("backup", admin.backup, "metricsweep backup /backups/monday"),
    ("restore", admin.restore, "metricsweep restore /backups/monday --home restored"),
    ("audit", accounts.audit, "metricsweep audit --after 1200"),
    ("mlflow-env", admin.mlflow_env, 'metricsweep mlflow-env      eval "$(metricsweep mlflow-env)"'),
    ("mlflow", admin.mlflow, "metricsweep mlflow sync 7"),
    ("webhook", admin.webhook, "metricsweep webhook test"),
    ("submit", sweeps.submit, "metricsweep submit sweeps/digits.yaml --watch"),
    ("list", sweeps.list_sweeps, "metricsweep list --state running --tag paper"),
    ("show", sweeps.show, "metricsweep show 7      metricsweep show 7/3      metricsweep show --trial 41"),
    ("note", sweeps.note, 'metricsweep note 7 "eta 1 diverges on two seeds"      metricsweep note --trial 41'),
    ("tag", sweeps.tag, "metricsweep tag 7 paper -wip      metricsweep tag --trial 41 odd"),
    ("watch", watch.watch, "metricsweep watch 7"),
    ("table", tables.table, "metricsweep table 7 main --out main.tex --tuned"),
    ("import", tables.import_, "metricsweep import theirs.csv 7 --unit percent --row method --axis dataset"),
    ("verdicts", evidence.verdicts, "metricsweep verdicts 7 main --json"),
    ("resolve", evidence.resolve, "metricsweep resolve 7 main --hours 40 --seeds 12"),
    ("resolution", evidence.resolution, "metricsweep resolution 7      metricsweep resolution 7 --halt"),
    ("compare", tables.compare, "metricsweep compare 7 9 --view difference"),
    ("check", evidence.check, "metricsweep check paper.tex      metricsweep check paper.tex --bundle out.zip"),
    ("drift", evidence.drift, "metricsweep drift 7@2026-11-20 7      metricsweep drift old.zip new.zip"),
    ("optimism", evidence.optimism, "metricsweep optimism 7"),
    ("ledger", evidence.ledger, "metricsweep ledger SEC --out sec.tex      metricsweep ledger SEC --bundle out.zip"),
    ("rebuild", tables.rebuild, "metricsweep rebuild out.zip --table main --format latex"),
    ("figure", tables.figure, "metricsweep figure 7 main --format pdf -o main.pdf"),
    ("cancel", sweeps.cancel, "metricsweep cancel 7 --cell 3"),
    ("retry", sweeps.retry, "metricsweep retry 7 --only failed"),
    ("pause", sweeps.pause, "metricsweep pause 7"),
    ("resume", sweeps.resume, "metricsweep resume 7"),
    ("priority", sweeps.priority, "metricsweep priority 7 10"),
    ("extend", sweeps.extend, "metricsweep extend 7 sweeps/digits.yaml --set 'repeat.seed=[0, 1, 2, 3, 4, 5]'"),
    ("delete", sweeps.delete, "metricsweep delete 7"),
    ("sizes", admin.sizes, "metricsweep sizes"),
    ("gc", admin.gc, "metricsweep gc --days 30 --keep 3      metricsweep gc --sweep 7 --yes"),
    ("requests", sweeps.requests, "metricsweep requests 7"),
    ("catalog", tables.catalog, "metricsweep catalog loss triplet"),
    ("data", admin.data, "metricsweep data cub200"),
    ("weights", admin.weights, "metricsweep weights fetch bn_inception --data ~/data"),
    ("published", evidence.published, "metricsweep published SEC-T3 --like sweeps/sec_t3.yaml --out sec-t3.tex"),
    ("expand", sweeps.expand, "metricsweep expand sweeps/digits.yaml"),
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
