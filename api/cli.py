"""The `metricsweep` command: what it is made of, and how its errors end."""

from collections.abc import Callable
from typing import Any, Final

import typer
from typer.core import TyperGroup

from api.commands import (
    bundles,
    catalog,
    comparisons,
    figures,
    local,
    published,
    requests,
    specs,
    sweeps,
    tables,
    watch,
)
from api.commands.terminal import EXIT_CODES, explain


class Commands(TyperGroup):
    """The commands, with one place where an error becomes a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was given."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            raise typer.Exit(explain(error)) from error


app = typer.Typer(
    cls=Commands,
    name="metricsweep",
    help="Runs the comparison sweeps of deep metric learning and turns them into the tables of a paper.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they would print local variables, the token among them
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: Final[dict[str, tuple[Callable[..., None], str]]] = {
    "serve": (local.serve, "metricsweep serve --home .metricsweep"),
    "run": (local.run, "metricsweep run sweeps/digits.yaml --out tables"),
    "submit": (sweeps.submit, "metricsweep submit sweeps/digits.yaml --watch"),
    "list": (sweeps.list_sweeps, "metricsweep list --state running --json"),
    "show": (sweeps.show, "metricsweep show 7      metricsweep show --trial 41"),
    "watch": (watch.watch, "metricsweep watch 7"),
    "table": (tables.table, "metricsweep table 7 main --out main.tex --tuned"),
    "compare": (comparisons.compare, "metricsweep compare 7 9 --view difference"),
    "rebuild": (bundles.rebuild, "metricsweep rebuild out.zip --table main --format latex"),
    "figure": (figures.figure, "metricsweep figure 7 main --format pdf -o main.pdf"),
    "cancel": (requests.cancel, "metricsweep cancel 7 --cell 3"),
    "retry": (requests.retry, "metricsweep retry 7 --only failed"),
    "pause": (requests.pause, "metricsweep pause 7"),
    "resume": (requests.resume, "metricsweep resume 7"),
    "priority": (requests.priority, "metricsweep priority 7 10"),
    "extend": (requests.extend, "metricsweep extend 7 sweeps/digits.yaml --set 'repeat.seed=[0, 1, 2, 3]'"),
    "delete": (requests.delete, "metricsweep delete 7"),
    "requests": (requests.requests, "metricsweep requests 7"),
    "catalog": (catalog.catalog, "metricsweep catalog loss triplet"),
    "published": (published.published, "metricsweep published SEC-T3 --like sweeps/sec_t3.yaml --out sec-t3.tex"),
    "expand": (specs.expand, "metricsweep expand sweeps/digits.yaml"),
}
"""Every command with its example; a test runs the help of each."""

for _name, (_command, _example) in COMMANDS.items():
    app.command(_name, epilog=f"Example:  {_example}")(_command)


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
