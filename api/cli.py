"""The `metricsweep` command: what it is made of, and how its errors end."""

import gc
import importlib
import sys
from collections.abc import Iterator, MutableMapping
from typing import Annotated, Any, Final, NamedTuple, NoReturn, Protocol, runtime_checkable

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from api.commands.terminal import EXIT_CODES, FAILED, err, explain, out
from orchestrator.host.printable import printable


class Command(NamedTuple):
    """Where a command lives, as `module:function` below `api.commands`, its line of help and its example."""

    where: str
    help: str
    example: str


COMMANDS: Final[dict[str, Command]] = {
    "serve": Command(
        "local:serve",
        "Serve API, pages, conductor, Ray and MLflow until Ctrl-C; started again, it goes on where it was.",
        "metricsweep serve --home .metricsweep",
    ),
    "run": Command(
        "local:run",
        "Run one sweep here from spec to tables: starts what it needs, shows progress, leaves no server behind.",
        "metricsweep run sweeps/digits.yaml --out tables",
    ),
    "login-link": Command(
        "logins:login_link",
        "Print a link that logs a browser in: it works once, within the hour.",
        "metricsweep login-link",
    ),
    "mlflow-env": Command(
        "mlflow_env:mlflow_env",
        "Print the variables for an `mlflow` client of your own, for the shell to set.",
        'metricsweep mlflow-env      eval "$(metricsweep mlflow-env)"',
    ),
    "mlflow": Command(
        "mlflow:mlflow",
        "Tell MLflow anew of a sweep, or of all: one that was wiped, restored, or filled by a former release.",
        "metricsweep mlflow sync 7",
    ),
    "submit": Command(
        "sweeps:submit",
        "Submit a spec; every problem of a wrong one is told at once.",
        "metricsweep submit sweeps/digits.yaml --watch",
    ),
    "list": Command("sweeps:list_sweeps", "List sweeps, newest first.", "metricsweep list --state running --json"),
    "show": Command(
        "sweeps:show",
        "Show a sweep with its counts and problems, or one trial.",
        "metricsweep show 7      metricsweep show --trial 41",
    ),
    "watch": Command(
        "watch:watch",
        "Watch a sweep until it ends; exits with 1 when it failed, lost trials or was cancelled.",
        "metricsweep watch 7",
    ),
    "table": Command(
        "tables:table",
        "Print or write a table; a sweep that still runs gives one that says what is missing.",
        "metricsweep table 7 main --out main.tex --tuned",
    ),
    "compare": Command(
        "comparisons:compare",
        "Print or write one table of several sweeps; where several have a cell, the first named one's numbers stand.",
        "metricsweep compare 7 9 --view difference",
    ),
    "rebuild": Command(
        "bundles:rebuild",
        "Check a bundle, make its tables again from its data, and compare: 0 where every byte is the same, else 1.",
        "metricsweep rebuild out.zip --table main --format latex",
    ),
    "figure": Command(
        "figures:figure",
        "Print or write a figure; a sweep that still runs gives one that says what is missing.",
        "metricsweep figure 7 main --format pdf -o main.pdf",
    ),
    "cancel": Command(
        "requests:cancel",
        "Ask that a sweep be stopped; trials that have ended keep their results.",
        "metricsweep cancel 7 --cell 3",
    ),
    "retry": Command(
        "requests:retry",
        "Ask that a sweep's failed and cancelled trials be trained again; finished ones are kept.",
        "metricsweep retry 7 --only failed",
    ),
    "pause": Command(
        "requests:pause",
        "Ask that nothing more of a sweep be started; what trains goes on to its end.",
        "metricsweep pause 7",
    ),
    "resume": Command("requests:resume", "Ask that a paused sweep go on.", "metricsweep resume 7"),
    "priority": Command(
        "requests:priority",
        "Set a sweep's priority; nothing that trains is stopped for it.",
        "metricsweep priority 7 10",
    ),
    "extend": Command(
        "requests:extend",
        "Extend a sweep to a wider spec (more seeds, a new loss); only what is new is trained.",
        "metricsweep extend 7 sweeps/digits.yaml --set 'repeat.seed=[0, 1, 2, 3, 4, 5]'",
    ),
    "delete": Command(
        "requests:delete",
        "Delete an ended sweep, with checkpoints, logs and results that no other sweep uses.",
        "metricsweep delete 7",
    ),
    "sizes": Command(
        "retention:sizes",
        "Say what lies on disk: the database, and what the trainings of each sweep keep.",
        "metricsweep sizes",
    ),
    "gc": Command(
        "retention:gc",
        "Let weights and checkpoints of ended sweeps go; results, curves, logs, figures and each cell's best stay.",
        "metricsweep gc --days 30 --keep 3      metricsweep gc --sweep 7 --yes",
    ),
    "requests": Command(
        "requests:requests",
        "List what was asked of a sweep, newest first, and what became of it; also of a sweep that was deleted.",
        "metricsweep requests 7",
    ),
    "catalog": Command(
        "catalog:catalog",
        "List the parts that a recipe may name, or show one with its hyper-parameters.",
        "metricsweep catalog loss triplet",
    ),
    "data": Command(
        "data:data",
        "List which data sets and weights the nodes have, or say what each of them has of one.",
        "metricsweep data cub200",
    ),
    "weights": Command(
        "weights:weights",
        "List, verify or fetch the pretrained weights of backbones, in this machine's data folder.",
        "metricsweep weights fetch bn_inception --data ~/data",
    ),
    "published": Command(
        "published:published",
        "List the papers' tables, or print one, by itself or as a spec lays it out.",
        "metricsweep published SEC-T3 --like sweeps/sec_t3.yaml --out sec-t3.tex",
    ),
    "expand": Command(
        "specs:expand",
        "Check a spec here, without a server, and count its cells, candidates and trials.",
        "metricsweep expand sweeps/digits.yaml",
    ),
}
"""Every command; a test runs the help of each and compares the lines with what the functions say."""


@runtime_checkable
class Shown(Protocol):
    """An error of the command line that says where the help is."""

    def show(self) -> None:
        """Print it to stderr."""


class _Loaded(MutableMapping[str, Any]):
    """The commands by name, each imported when it is looked up: nobody waits for the others."""

    def __getitem__(self, name: str) -> Any:
        given = COMMANDS[name]
        module, _, function = given.where.partition(":")
        one = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=_CONTEXT)
        found = getattr(importlib.import_module(f"api.commands.{module}"), function)
        one.command(name, cls=TyperCommand, epilog=f"Example:  {given.example}")(found)
        return typer.main.get_command(one)

    def __setitem__(self, name: str, command: Any) -> NoReturn:
        raise TypeError("commands stand in COMMANDS")

    def __delitem__(self, name: str) -> NoReturn:
        raise TypeError("commands stand in COMMANDS")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """The commands, with one place where an error becomes a message and an exit code."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Loaded()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list in the help, for which no command is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was given."""
        try:
            return super().invoke(ctx)
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


_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    cls=Commands,
    name="metricsweep",
    help="Runs the comparison sweeps of deep metric learning and turns them into the tables of a paper.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,  # boxes and colours are no reason to wait for rich
    pretty_exceptions_enable=False,  # they would print local variables, the token among them
    context_settings=_CONTEXT,
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


def main() -> None:
    """The console script."""
    # What is imported stays: looking through it for garbage at every 700 objects takes a tenth of a short command.
    gc.set_threshold(50_000)
    # httpx brings a command line of its own, with rich, click and pygments: a quarter of what our commands wait for.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: Python's word for "not there"
    app()


if __name__ == "__main__":
    main()
