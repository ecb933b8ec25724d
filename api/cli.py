"""The `metricsweep` command: how what it is made of is found, and how its errors end."""

import gc
import importlib
import sys
from collections.abc import Iterator, MutableMapping
from types import ModuleType
from typing import Annotated, Any, Final, NoReturn, Protocol, runtime_checkable

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from api.commands.index import COMMANDS
from api.commands.terminal import EXIT_CODES, FAILED, err, explain, out
from orchestrator.host.printable import printable


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
        context = {"ignore_unknown_options": True, "help_option_names": ["--help"]} if given.dashed else None
        one.command(name, cls=TyperCommand, epilog=f"Example:  {given.example}", context_settings=context)(found)
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


_NO_PLUGINS: Final = ModuleType("pydantic.plugin._loader")
_NO_PLUGINS.get_plugins = tuple  # type: ignore[attr-defined]


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
    # pydantic reads the metadata of whatever is installed to find plugins of its own: a tenth of a short command.
    sys.modules.setdefault("pydantic.plugin._loader", _NO_PLUGINS)
    try:
        app()
    finally:
        gc.freeze()  # nor is it worth a last look, now that the process ends


if __name__ == "__main__":
    main()
