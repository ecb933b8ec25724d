"""The `metricsweep` command: its commands with examples, and the handling of errors."""

import os
import sys
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from api.commands import accounts, admin, evidence, serve, sweeps, tables, watch
from api.commands.terminal import EXIT_CODES, FAILED, err, explain, out, with_server_options
from orchestrator.host.checks import requires_extra
from orchestrator.host.logs import printable

GROUPS: Final[Mapping[str, tuple[tuple[str, Callable[..., None], str], ...]]] = {
    "Start and stop": (
        ("serve", serve.serve, "metricsweep serve --home .metricsweep"),
        ("run", serve.run, "metricsweep run sweeps/digits.yaml --out tables"),
        ("slots", admin.slots, "metricsweep slots --slurm --partition gpu --gres gpu:1 --cpus 4 --time 4:00:00"),
        ("login-link", admin.login_link, "metricsweep login-link"),
    ),
    "Submit and steer": (
        ("expand", sweeps.expand, "metricsweep expand sweeps/digits.yaml"),
        ("submit", sweeps.submit, "metricsweep submit sweeps/digits.yaml --watch"),
        ("watch", watch.watch, "metricsweep watch 7"),
        ("pause", sweeps.pause, "metricsweep pause 7"),
        ("resume", sweeps.resume, "metricsweep resume 7"),
        ("priority", sweeps.priority, "metricsweep priority 7 10"),
        ("extend", sweeps.extend, "metricsweep extend 7 sweeps/digits.yaml --set 'repeat.seed=[0, 1, 2, 3, 4, 5]'"),
        ("cancel", sweeps.cancel, "metricsweep cancel 7/3"),
        ("retry", sweeps.retry, "metricsweep retry 7 --only failed"),
        ("delete", sweeps.delete, "metricsweep delete 7"),
    ),
    "Inspect": (
        ("list", sweeps.list_sweeps, "metricsweep list --state running --tag paper"),
        ("show", sweeps.show, "metricsweep show 7\nmetricsweep show 7/3\nmetricsweep show trial:41"),
        ("trials", sweeps.trials, "metricsweep trials 7 --filter 'map@r>.6' --sort -map@r"),
        ("why", sweeps.why, "metricsweep why"),
        ("requests", sweeps.requests, "metricsweep requests 7"),
        ("note", sweeps.note, 'metricsweep note 7 "eta 1 diverges on two seeds"\nmetricsweep note trial:41'),
        ("tag", sweeps.tag, "metricsweep tag 7 paper -wip\nmetricsweep tag trial:41 odd"),
    ),
    "Results": (
        ("table", tables.table, "metricsweep table 7 main --out main.tex --tuned"),
        ("figure", tables.figure, "metricsweep figure 7 main --format pdf -o main.pdf"),
        ("compare", tables.compare, "metricsweep compare 7 9 --view difference"),
        ("model", sweeps.model, "metricsweep model 7/3 --out best\nmetricsweep model trial:41"),
        ("share", accounts.share, "metricsweep share 7 --days 14\nmetricsweep share 7 --revoke 3"),
        ("import", tables.import_, "metricsweep import theirs.csv 7 --unit percent --row method --axis dataset"),
    ),
    "Statistics and papers": (
        ("verdicts", evidence.verdicts, "metricsweep verdicts 7 main --json"),
        ("resolve", evidence.resolve, "metricsweep resolve 7 main --hours 40 --seeds 12"),
        ("resolution", evidence.resolution, "metricsweep resolution 7\nmetricsweep resolution 7 --halt"),
        ("optimism", evidence.optimism, "metricsweep optimism 7"),
        ("published", evidence.published, "metricsweep published SEC-T3 --like sweeps/sec_t3.yaml --out sec-t3.tex"),
        (
            "reproduction",
            evidence.reproduction,
            "metricsweep reproduction SEC --out sec.tex\nmetricsweep reproduction SEC --bundle out.zip",
        ),
        ("check", evidence.check, "metricsweep check paper.tex\nmetricsweep check paper.tex --bundle out.zip"),
        ("diff", evidence.diff, "metricsweep diff 7@2026-11-20 7\nmetricsweep diff old.zip new.zip"),
        ("rebuild", tables.rebuild, "metricsweep rebuild out.zip --table main --format latex"),
    ),
    "Parts and data": (
        ("catalog", tables.catalog, "metricsweep catalog loss triplet"),
        ("data", admin.data, "metricsweep data cub200"),
        ("weights", admin.weights, "metricsweep weights fetch bn_inception --data ~/data"),
    ),
    "Administer": (
        ("users", accounts.users, "metricsweep users add ada --role member --project faces"),
        ("projects", accounts.projects, "metricsweep projects add faces"),
        ("tokens", accounts.tokens, "metricsweep tokens add ada --name laptop --days 90"),
        ("audit", accounts.audit, "metricsweep audit --after 1200"),
        ("backup", admin.backup, "metricsweep backup /backups/monday"),
        ("restore", admin.restore, "metricsweep restore /backups/monday --home restored"),
        ("sizes", admin.sizes, "metricsweep sizes"),
        ("gc", admin.gc, "metricsweep gc --days 30 --keep 3\nmetricsweep gc --sweep 7 --yes"),
        ("mlflow-env", admin.mlflow_env, 'eval "$(metricsweep mlflow-env)"'),
        ("mlflow", admin.mlflow, "metricsweep mlflow sync 7"),
        ("webhook", admin.webhook, "metricsweep webhook test"),
    ),
}
"""By heading of the help, the name, function and example of each command; the help is the function's docstring.

A function whose first parameter is `server` gets the options --url, --token and --home.
"""
COMMANDS: Final = tuple(chain.from_iterable(GROUPS.values()))
_DASHED: Final = {"tag"}
"""Commands with an argument that may begin with `-`, which therefore have no `-h`."""


class Commands(TyperGroup):
    """The group of commands, which turns an error into a message and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands in the order of the help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, each with the whole first line of its help."""
        for heading, commands in GROUPS.items():
            lines = [(name, (self.commands[name].help or "").partition("\n")[0]) for name, *_ in commands]
            with formatter.section(heading):
                formatter.write_dl(lines, col_max=14)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; errors become a message and an exit code."""
        try:
            with requires_extra("server"):
                result = super().invoke(ctx)
            sys.stdout.flush()  # here, so that a full disk is reported like any other error
            return result
        except (typer.Exit, typer.Abort, TyperException, KeyboardInterrupt):
            raise
        except Exception as error:
            raise typer.Exit(explain(error)) from error

    def main(  # type: ignore[override]  # typer's own parameters
        self, args: Any = None, prog_name: Any = None, **more: Any
    ) -> Any:
        """Run, and end the process; control characters in error messages are escaped."""
        if not more.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **more)
        try:
            code = super().main(args, prog_name, standalone_mode=False, **more)
        except TyperException as error:
            error.message = printable(error.message)
            if show := getattr(error, "show", None):  # with a hint at the help
                show()
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
    help="Run comparison sweeps of deep metric learning and make the tables of a paper.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they would print local variables, such as the token
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
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
    app.command(_name, epilog="\b\nExample:  " + _example.replace("\n", "\n" + " " * 10), context_settings=_settings)(
        with_server_options(_function)
    )


def main() -> None:
    """Run the console script."""
    os.environ["PYTHONSAFEPATH"] = "1"  # child processes import nothing from the current folder
    app()


if __name__ == "__main__":
    main()
