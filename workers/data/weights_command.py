"""The command `weights`: the published files of a data folder, listed, verified and fetched."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.data import published_weights


def add(commands: Any, shared: argparse.ArgumentParser, root: Callable[[argparse.Namespace], Path]) -> None:
    """Its parsers among `commands`; `root` tells the data folder that was chosen."""
    weights = commands.add_parser("weights", help="look after pretrained weights")
    every = weights.add_subparsers(required=True, metavar="command")
    listed = every.add_parser("list", parents=[shared], help="list the published files, and which of them are here")
    listed.set_defaults(command=lambda chosen: _list(chosen, root(chosen)))
    verify = every.add_parser("verify", parents=[shared], help="compare files with the hashes in their names")
    verify.add_argument("names", nargs="*", metavar="NAME", help="a file or backbone (default: every one that is here)")
    verify.set_defaults(command=lambda chosen: _verify(chosen, root(chosen)))
    fetch = every.add_parser("fetch", parents=[shared], help="download published weights into the data folder")
    fetch.add_argument("names", nargs="+", metavar="NAME", help="a backbone or its file, such as bn_inception")
    fetch.add_argument(
        "--mirror", action="append", default=[], metavar="URL",
        help="a folder of such files, asked first; the hash decides",
    )  # fmt: skip
    fetch.set_defaults(command=lambda chosen: _fetch(chosen, root(chosen)))


def _list(_: argparse.Namespace, root: Path) -> int:
    for here in (published_weights.look(root, file) for file in published_weights.FILES):
        print(f"{here.state:<8} {here.file.backbone:<14} {here.file.name}")
    print(f"in {root / published_weights.FOLDER}")
    return 0


def _verify(chosen: argparse.Namespace, root: Path) -> int:
    looks = [published_weights.look(root, published_weights.of(name)) for name in chosen.names]
    if not chosen.names:
        every = (published_weights.look(root, file) for file in published_weights.FILES)
        looks = [look for look in every if look.state != "missing"]
    for look in looks:
        print(f"{look.state:<8} {look.path}")
    if absent := [look.file.name for look in looks if look.state == "missing"]:
        raise LookupError(f"not there: {', '.join(absent)}; `weights fetch` downloads them")
    if damaged := [look for look in looks if look.state == "wrong"]:
        raise published_weights.wrong(damaged[0])
    print(f"{len(looks)} files as their names promise" if looks else f"no published file is in {root}")
    return 0


def _fetch(chosen: argparse.Namespace, root: Path) -> int:
    for file in [published_weights.of(name) for name in chosen.names]:
        print(published_weights.fetch(root, file, chosen.mirror))
    return 0
