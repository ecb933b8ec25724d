"""The worker by hand: python -m workers train | evaluate | identify | catalog | data verify | data fetch |
weights list | weights verify | weights fetch.
"""

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from workers.catalog import Catalog, PartSourceError, complete, load, problems
from workers.contract import KINDS, Part, Place, Progress, Recipe, Stopped
from workers.data import published_weights
from workers.data.scratch import claim_code_caches, scratch


class RecipeError(ValueError):
    """A recipe file cannot be read, or its recipe has problems; the message names all of them."""


def read(path: Path, catalog: Catalog) -> Recipe:
    """The complete recipe in the file `path`; raises RecipeError."""
    try:
        raw = yaml.load(path.read_text("utf-8"), _Loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise RecipeError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise RecipeError(f"{path}: expected a mapping with dataset, backbone, loss, ...; found {type(raw).__name__}")
    if wrong := problems(raw, catalog):
        raise RecipeError("; ".join(f"{path}: {problem.path}: {problem.message}" for problem in wrong))
    return complete(Recipe.model_validate(raw), catalog)


def scalar(text: str) -> Any:
    """A value as it would be read in a recipe file; a text where it is nothing else."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return text


class _Loader(yaml.SafeLoader):
    """PyYAML reads YAML 1.1; this is 1.2 where recipes would notice, and duplicate keys are refused."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own form
        first: [pair for pair in pairs if pair[0].rpartition(":")[2] not in {"bool", "float", "int", "timestamp"}]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, unless a key stands in it twice."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


_SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)  # of MegaFace's lists of distractors
_EXAMPLES: Final = """examples:
  python -m workers train recipe.yaml --out result
  python -m workers train recipe.yaml --out result --resume result/last.pt
  python -m workers evaluate result/best.pt --metric recall@16 --metric nmi_sec
  python -m workers identify feature_out --size 1000 --size 1000000 --data ~/data
  python -m workers catalog --json
  python -m workers data fetch cub200 --data ~/data
  python -m workers data verify packed --set file=birds.npz --data ~/data
  python -m workers weights fetch bn_inception --data ~/data
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives its exit code: 0 done, 1 failed with one line on stderr, 2 wrong usage."""
    chosen = _parser().parse_args(arguments)
    try:
        code: int = chosen.command(chosen)
    except (RecipeError, PartSourceError, Stopped, OSError, ValueError, LookupError, RuntimeError, TypeError) as error:
        lines = str(error).strip().splitlines()
        print(f"error: {lines[0] if lines else type(error).__name__}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m workers", description=__doc__, epilog=_EXAMPLES, formatter_class=plain)
    commands = parser.add_subparsers(required=True, metavar="command")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, metavar="DIR", help="folder of data sets (default: $METRICSWEEP_DATA)")
    shared.add_argument("--parts", type=Path, metavar="DIR", help="folder of own parts (default: $METRICSWEEP_PARTS)")

    train = commands.add_parser(
        "train", parents=[shared], help="train one recipe", epilog=_EXAMPLES, formatter_class=plain
    )
    train.add_argument("recipe", type=Path, help="a recipe file, YAML or JSON")
    train.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of result.json and weights (default: runs/NAME-ID)"
    )
    _add_device(train)
    train.add_argument("--resume", type=Path, metavar="FILE", help="go on from this checkpoint")
    train.set_defaults(command=_train)

    evaluate = commands.add_parser(
        "evaluate", parents=[shared], help="compute metrics of weights that a training kept", formatter_class=plain
    )
    evaluate.add_argument("weights", type=Path, help="best.pt or final.pt, as a training leaves it")
    evaluate.add_argument(
        "--metric", action="append", required=True, metavar="NAME", help="such as recall@16; may stand several times"
    )
    evaluate.add_argument("--json", action="store_true", help="print an object of keys and values")
    _add_device(evaluate)
    evaluate.set_defaults(command=_evaluate)

    identify = commands.add_parser(
        "identify", parents=[shared], help="judge the feature files of MegaFace's probes and distractors: rank-1",
        description="MegaFace, challenge 1, of features that any program computed: a folder with facescrub/ and "
        "megaface/, a file for each image as the devkit has them. The lists are those of megaface/ in the data folder.",
    )  # fmt: skip
    identify.add_argument("features", type=Path, help="the folder of facescrub/ and megaface/")
    identify.add_argument("--ending", metavar="TEXT", help="what follows an image's name (default: as it is found)")
    identify.add_argument(
        "--size", type=_positive, action="append", metavar="N",
        help="a list of so many distractors; may stand several times (default: 1000, 10000, 100000, 1000000)",
    )  # fmt: skip
    identify.add_argument("--draw", type=_positive, default=1, metavar="N", help="the lists' last number (default: 1)")
    identify.add_argument(
        "--noise", choices=["dropped", "kept"], default="dropped", help="images that InsightFace found to be wrong"
    )
    identify.add_argument("--part", action="store_true", help="take other than the official 3,530 probes")
    identify.add_argument("--json", action="store_true", help="print an object of sizes and rates")
    _add_device(identify)
    identify.set_defaults(command=_identify)

    catalog = commands.add_parser("catalog", parents=[shared], help="list the parts that exist")
    catalog.add_argument("--json", action="store_true", help="print everything as JSON")
    catalog.set_defaults(command=_catalog)

    data = commands.add_parser("data", help="look after data sets").add_subparsers(required=True, metavar="command")
    verify = data.add_parser(
        "verify", parents=[shared], help="count the images of a data set and compare their content"
    )
    verify.add_argument("name", help="a data set, such as omniglot")
    verify.add_argument(
        "--set", type=_option, action="append", default=[], metavar="NAME=VALUE",
        help="a hyper-parameter of the data set, such as side=128",
    )  # fmt: skip
    verify.set_defaults(command=_verify)
    fetch = data.add_parser("fetch", parents=[shared], help="download a data set that its authors offer to anyone")
    fetch.add_argument("name", help="a data set, such as cub200")
    fetch.set_defaults(command=_fetch)
    weights = commands.add_parser("weights", help="look after pretrained weights")
    every = weights.add_subparsers(required=True, metavar="command")
    listed = every.add_parser("list", parents=[shared], help="list the published files, and which of them are here")
    listed.set_defaults(command=_list_weights)
    compared = every.add_parser("verify", parents=[shared], help="compare files with the hashes in their names")
    compared.add_argument(
        "names", nargs="*", metavar="NAME", help="a file or backbone (default: every one that is here)"
    )
    compared.set_defaults(command=_verify_weights)
    fetched = every.add_parser("fetch", parents=[shared], help="download published weights into the data folder")
    fetched.add_argument("names", nargs="+", metavar="NAME", help="a backbone or its file, such as bn_inception")
    fetched.add_argument(
        "--mirror", action="append", default=[], metavar="URL",
        help="a folder of such files, asked first; the hash decides",
    )  # fmt: skip
    fetched.set_defaults(command=_fetch_weights)
    return parser


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto: a GPU where there is one"
    )
    parser.add_argument("--threads", type=_positive, default=1, metavar="N", help="threads of the CPU (default: 1)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def _train(chosen: argparse.Namespace) -> int:
    claim_code_caches()
    # torch takes seconds to import, which the other commands and --help need not wait for.
    from workers.train import train

    parts = _parts(chosen)
    recipe = read(chosen.recipe, load(parts))
    out: Path = chosen.out or Path("runs") / f"{chosen.recipe.stem}-{recipe.fingerprint[:8]}"
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        if asked:  # asked twice: do not wait for the end of the iteration
            raise KeyboardInterrupt
        asked.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    place = Place(_root(chosen), scratch(), out, chosen.device, chosen.threads, stop=lambda: bool(asked), parts=parts)
    try:
        result = train(recipe, place, _print, chosen.resume)
    except Stopped as stopped:
        raise Stopped(f"{stopped}; go on with --resume {out / 'last.pt'}") from None
    _write(out / "result.json", result.model_dump_json(indent=2) + "\n")
    print(f"{result.outcome} after {result.steps} iterations in {result.seconds:.1f} s")
    _summary(recipe, result.metrics)
    print(f"{out / 'result.json'}")
    return 0


def _evaluate(chosen: argparse.Namespace) -> int:
    claim_code_caches()
    from workers.training import kept_weights  # torch: see _train

    kept = kept_weights.read(chosen.weights)
    place = Place(_root(chosen), scratch(), Path(), chosen.device, chosen.threads, parts=_parts(chosen))
    found = kept_weights.evaluate(kept, chosen.metric, place)
    if chosen.json:
        print(json.dumps(found, indent=2))
        return 0
    for key, value in found.items():
        print(f"{key:<32} {value:.6g}")
    return 0


def _print(progress: Progress) -> None:
    print(progress.log, end="", flush=True)


def _summary(recipe: Recipe, metrics: dict[str, float]) -> None:
    """The test metrics of the checkpoint that a table would print."""
    prefix = f"{recipe.select.checkpoint}/test/"
    for key, value in metrics.items():
        if key.startswith(prefix):
            print(f"  {key:<24} {value:.4g}")


def _catalog(chosen: argparse.Namespace) -> int:
    catalog = load(_parts(chosen))
    if chosen.json:
        print(catalog.model_dump_json(indent=2))
        return 0
    for kind in KINDS:
        print(kind)
        for entry in catalog.of(kind):
            options = ", ".join(p.name if p.required else f"{p.name}={p.default}" for p in entry.parameters)
            print(f"  {entry.name:<20} {entry.doc.partition(chr(10))[0]}{f'  [{options}]' if options else ''}")
    return 0


def _verify(chosen: argparse.Namespace) -> int:
    from workers import registry  # torch: see _train
    from workers.data import images

    parts, given = _parts(chosen), dict(chosen.set)
    entry = load(parts).get("dataset", chosen.name)
    # So that a data set with other counts than the official ones says all of them, instead of refusing to load.
    lenient = entry is not None and entry.parameter("official") is not None and "official" not in given
    part = Part(name=chosen.name, **(given | {"official": False} if lenient else given))
    dataset: Any = registry.build("dataset", part, parts, root=_root(chosen), scratch=scratch())
    splits: dict[str, images.Images] = {name: getattr(dataset, name) for name in ("train", "test")}
    for name, split in splits.items():
        spread = _spread(split.labels.bincount().tolist())
        print(f"{name:<6} {split.classes:>6,} classes {len(split):>8,} images{spread}")
        if split.query is not None:
            print(f"       {split.counts['queries']:,} of them are queries")
        if split.pairs is not None:
            same, folds = int(split.pairs.same.sum()), int(split.pairs.fold.max()) + 1
            print(f"       {len(split.pairs.same):,} pairs, {same:,} of them of one class, in {folds} folds")
        for size, among in (split.distractors or {}).items():
            print(f"       {len(among):,} distractors of the list of {size:,}")
    print(f"content {images.content_hash(dataset)}")
    for line in images.notes(dataset):
        print(line)
    wrong = images.faults(dataset)
    if lenient:
        wrong += images.miscounts(type(dataset), {name: split.counts for name, split in splits.items()})
    if wrong:
        raise ValueError(f"{chosen.name}: {'; '.join(wrong)}")
    print("as expected, but for what is said above" if images.notes(dataset) else "as expected")
    return 0


def _spread(sizes: Sequence[int]) -> str:
    """How many images a class has; nothing where there is no class."""
    if not sizes:
        return ""
    single = sizes.count(1)
    return f", {min(sizes):,} to {max(sizes):,} a class{f', {single:,} of one image' if single else ''}"


def _fetch(chosen: argparse.Namespace) -> int:
    from workers.data.download import fetch  # torch: see _train

    for path in fetch(chosen.name, _root(chosen)):
        print(path)
    print(f"now run: python -m workers data verify {chosen.name}")
    return 0


def _identify(chosen: argparse.Namespace) -> int:
    from workers.data import megaface  # torch: see _train
    from workers.evaluation.identify import rank1
    from workers.training import determinism

    lists = megaface.DevkitLists.of(_root(chosen))
    probes = lists.probes(chosen.noise, official=not chosen.part)
    strangers = lists.strangers(sorted(set(chosen.size or _SIZES)), chosen.draw, chosen.noise)
    ending = megaface.ending(chosen.features, probes[0]) if chosen.ending is None else chosen.ending
    files = megaface.FeatureFiles(chosen.features, ending)
    device = determinism.device(chosen.device)
    with determinism.applied(device, chosen.threads):
        rates = rank1(files, probes, strangers, device)
    if chosen.json:
        print(json.dumps(rates, indent=2))
        return 0
    for size, rate in rates.items():
        print(f"rank-1 among {size:>9,} distractors  {rate:.6g}")
    return 0


def _list_weights(chosen: argparse.Namespace) -> int:
    root = _root(chosen)
    for here in (published_weights.look_up(root, file) for file in published_weights.FILES):
        print(f"{here.state:<8} {here.file.backbone:<14} {here.file.name}")
    print(f"in {root / published_weights.FOLDER}")
    return 0


def _verify_weights(chosen: argparse.Namespace) -> int:
    root = _root(chosen)
    looks = [published_weights.look_up(root, published_weights.of(name)) for name in chosen.names]
    if not chosen.names:
        every = (published_weights.look_up(root, file) for file in published_weights.FILES)
        looks = [look for look in every if look.state != "missing"]
    for look in looks:
        print(f"{look.state:<8} {look.path}")
    if absent := [look.file.name for look in looks if look.state == "missing"]:
        raise LookupError(f"not there: {', '.join(absent)}; `weights fetch` downloads them")
    if damaged := [look for look in looks if look.state == "wrong"]:
        raise published_weights.wrong(damaged[0])
    print(f"{len(looks)} files as their names promise" if looks else f"no published file is in {root}")
    return 0


def _fetch_weights(chosen: argparse.Namespace) -> int:
    for file in [published_weights.of(name) for name in chosen.names]:
        print(published_weights.fetch_published(_root(chosen), file, chosen.mirror))
    return 0


def _option(text: str) -> tuple[str, Any]:
    """A hyper-parameter NAME=VALUE, its value read as in a recipe."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")
    return name, scalar(value)


def _parts(chosen: argparse.Namespace) -> Path | None:
    folder = chosen.parts or os.environ.get("METRICSWEEP_PARTS")
    return Path(os.path.expanduser(folder)) if folder else None


def _root(chosen: argparse.Namespace) -> Path:
    """The folder of data sets, as the service finds it too."""
    home = Path(os.environ.get("METRICSWEEP_HOME") or ".metricsweep")
    return Path(os.path.expanduser(chosen.data or os.environ.get("METRICSWEEP_DATA") or home / "data"))


def _write(path: Path, text: str) -> None:
    """Write a file aside and rename it, so that it is never half there; after an error the old one is as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, "utf-8")
        aside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        aside.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
