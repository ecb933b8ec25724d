"""Train and evaluate single recipes, and manage data sets and weights, without a server."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from workers.catalog import Catalog, DocumentError, PartSourceError, complete, load, load_document, problems
from workers.contract import KINDS, Part, Place, Recipe, Stopped
from workers.data import published_weights
from workers.data.scratch import claim_code_caches, scratch


class RecipeError(ValueError):
    """A recipe file cannot be read, or its recipe has problems; the message names all of them."""


def read(path: Path, catalog: Catalog) -> Recipe:
    """Reads and completes the recipe in the file `path`; raises RecipeError."""
    try:
        document = load_document(path.read_bytes())
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error}") from error
    except DocumentError as error:
        raise RecipeError(f"{path}: {error}") from error
    raw = document.value
    if not isinstance(raw, dict):
        raise RecipeError(f"{path}: expected a mapping with dataset, backbone, loss, ...; found {type(raw).__name__}")
    if wrong := problems(raw, catalog):
        lines = [f"{path}:{document.line(problem.path) or 1}: {problem.path}: {problem.message}" for problem in wrong]
        raise RecipeError("; ".join(lines))
    return complete(Recipe.model_validate(raw), catalog)


_SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)  # of MegaFace's lists of distractors
_EXAMPLES: Final = """examples:
  python -m workers train recipe.yaml --out result
  python -m workers train recipe.yaml --out result --resume result/last.pt
  python -m workers evaluate result/best.safetensors --metric recall@16 --metric nmi_sec
  python -m workers identify feature_out --size 1000 --size 1000000 --data ~/data
  python -m workers catalog --json
  python -m workers data fetch cub200 --data ~/data
  python -m workers data verify packed --set file=birds.npz --data ~/data
  python -m workers weights fetch bn_inception --data ~/data
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 success, 1 failure with a line on stderr, 2 wrong usage."""
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
    shared, on_device, as_json = (argparse.ArgumentParser(add_help=False) for _ in range(3))
    shared.add_argument("--data", type=Path, metavar="DIR", help="folder of data sets (default: $METRICSWEEP_DATA)")
    shared.add_argument("--parts", type=Path, metavar="DIR", help="folder of own parts (default: $METRICSWEEP_PARTS)")
    on_device.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto: a GPU if any")
    on_device.add_argument("--threads", type=_positive, default=1, metavar="N", help="threads of the CPU (default: 1)")
    as_json.add_argument("--json", action="store_true", help="print JSON")

    def add(commands: Any, name: str, run: Any, about: str, *options: argparse.ArgumentParser, **more: Any) -> Any:
        command = commands.add_parser(name, parents=[shared, *options], help=about, **more)
        command.set_defaults(command=run)
        return command

    commands = parser.add_subparsers(required=True, metavar="command")
    train = add(commands, "train", _train, "train one recipe", on_device, epilog=_EXAMPLES, formatter_class=plain)
    train.add_argument("recipe", type=Path, help="a recipe file, YAML or JSON")
    out = "folder of result.json and weights (default: runs/NAME-ID)"
    train.add_argument("--out", type=Path, metavar="DIR", help=out)
    train.add_argument("--resume", type=Path, metavar="FILE", help="continue from this checkpoint")

    evaluate = add(commands, "evaluate", _evaluate, "compute metrics of kept weights", on_device, as_json)
    evaluate.add_argument("weights", type=Path, help="best.safetensors or final.safetensors, as a training leaves it")
    metric = "such as recall@16; may be repeated"
    evaluate.add_argument("--metric", action="append", required=True, metavar="NAME", help=metric)

    about = "compute MegaFace's rank-1 from feature files"
    description = (
        "MegaFace, challenge 1, of features that any program computed: a folder with facescrub/ and megaface/, a file "
        "for each image as the devkit has them. The lists are those of megaface/ in the data folder."
    )
    identify = add(commands, "identify", _identify, about, on_device, as_json, description=description)
    identify.add_argument("features", type=Path, help="the folder of facescrub/ and megaface/")
    identify.add_argument("--ending", metavar="TEXT", help="what follows an image's name (default: detected)")
    size = "number of distractors; may be repeated (default: 1000, 10000, 100000, 1000000)"
    identify.add_argument("--size", type=_positive, action="append", metavar="N", help=size)
    identify.add_argument("--draw", type=_positive, default=1, metavar="N", help="the lists' last number (default: 1)")
    noise = "what to do with the images of InsightFace's noise lists"
    identify.add_argument("--noise", choices=["dropped", "kept"], default="dropped", help=noise)
    identify.add_argument("--part", action="store_true", help="accept other probes than the official 3,530")

    add(commands, "catalog", _catalog, "list the parts that exist", as_json)

    data = commands.add_parser("data", help="fetch or verify data").add_subparsers(required=True, metavar="command")
    verify = add(data, "verify", _verify, "check the files, counts and hash of a data set")
    verify.add_argument("name", help="a data set, such as omniglot")
    option = "a hyper-parameter of the data set, such as side=128"
    verify.add_argument("--set", type=_option, action="append", default=[], metavar="NAME=VALUE", help=option)
    fetch = add(data, "fetch", _fetch, "download a data set that its authors offer to anyone")
    fetch.add_argument("name", help="a data set, such as cub200")

    weights = commands.add_parser("weights", help="list, verify or download pretrained weights")
    every = weights.add_subparsers(required=True, metavar="command")
    add(every, "list", _list_weights, "list the published files, and which of them are here")
    compared = add(every, "verify", _verify_weights, "compare files with the hashes in their names")
    names = "a file or backbone (default: all files that are here)"
    compared.add_argument("names", nargs="*", metavar="NAME", help=names)
    fetched = add(every, "fetch", _fetch_weights, "download published weights into the data folder")
    fetched.add_argument("names", nargs="+", metavar="NAME", help="a backbone or its file, such as bn_inception")
    mirror = "an address to try before the publishers'; hashes are checked"
    fetched.add_argument("--mirror", action="append", default=[], metavar="URL", help=mirror)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def _train(chosen: argparse.Namespace) -> int:
    claim_code_caches()
    # Here, since torch takes seconds to import, and other commands do not need it.
    from workers.train import train
    from workers.training import results

    parts = _parts(chosen)
    recipe = read(chosen.recipe, load(parts))
    out: Path = chosen.out or Path("runs") / f"{chosen.recipe.stem}-{recipe.fingerprint[:8]}"
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        if asked:  # the second time, do not wait for the end of the iteration
            raise KeyboardInterrupt
        asked.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    place = Place(_root(chosen), scratch(), out, chosen.device, chosen.threads, stop=lambda: bool(asked), parts=parts)
    try:
        result = train(recipe, place, lambda progress: print(progress.log, end="", flush=True), chosen.resume)
    except Stopped as stopped:
        raise Stopped(f"{stopped}; go on with --resume {out / 'last.pt'}") from None
    results.write(out, {"result.json": f"{result.model_dump_json(indent=2)}\n".encode()})
    print(f"{result.outcome} after {result.steps} iterations in {result.seconds:.1f} s")
    prefix = f"{recipe.select.checkpoint}/test/"
    for key, value in result.metrics.items():
        if key.startswith(prefix):
            print(f"  {key:<24} {value:.4g}")
    print(f"{out / 'result.json'}")
    return 0


def _evaluate(chosen: argparse.Namespace) -> int:
    claim_code_caches()
    from workers.training import kept_weights  # torch: see _train

    kept = kept_weights.read(chosen.weights)
    place = Place(_root(chosen), scratch(), Path(), chosen.device, chosen.threads, parts=_parts(chosen))
    found = kept_weights.evaluate(kept, chosen.metric, place)
    return _print(chosen, found, "{:<32} {:.6g}")


def _print(chosen: argparse.Namespace, found: Mapping[Any, float], form: str) -> int:
    """Print numbers as JSON, or each in a line of this form."""
    lines = [form.format(key, value) for key, value in found.items()]
    print(json.dumps(found, indent=2) if chosen.json else "\n".join(lines))
    return 0


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
    # So that a data set with unofficial counts reports all of them, instead of refusing to load.
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
    from workers.evaluation.verification import rank1
    from workers.training import determinism

    lists = megaface.DevkitLists.of(_root(chosen))
    probes = lists.probes(chosen.noise, official=not chosen.part)
    strangers = lists.strangers(sorted(set(chosen.size or _SIZES)), chosen.draw, chosen.noise)
    ending = megaface.ending(chosen.features, probes[0]) if chosen.ending is None else chosen.ending
    files = megaface.FeatureFiles(chosen.features, ending)
    device = determinism.device(chosen.device)
    with determinism.applied(device, chosen.threads):
        rates = rank1(files, probes, strangers, device)
    return _print(chosen, rates, "rank-1 among {:>9,} distractors  {:.6g}")


def _list_weights(chosen: argparse.Namespace) -> int:
    root = _root(chosen)
    for here in (published_weights.look_up(root, file) for file in published_weights.FILES):
        print(f"{here.state:<8} {here.file.backbone:<14} {here.file.name}")
    print(f"in {root / published_weights.FOLDER}")
    return 0


def _verify_weights(chosen: argparse.Namespace) -> int:
    root = _root(chosen)
    files = [published_weights.of(name) for name in chosen.names] or published_weights.FILES
    every = [published_weights.look_up(root, file) for file in files]
    looks = [look for look in every if chosen.names or look.state != "missing"]
    for look in looks:
        print(f"{look.state:<8} {look.path}")
    if absent := [look.file.name for look in looks if look.state == "missing"]:
        raise LookupError(f"missing weights: {', '.join(absent)}; download them with `weights fetch`")
    if damaged := [look for look in looks if look.state == "wrong"]:
        raise published_weights.wrong(damaged[0])
    print(f"{len(looks)} files as their names promise" if looks else f"no published file is in {root}")
    return 0


def _fetch_weights(chosen: argparse.Namespace) -> int:
    for file in [published_weights.of(name) for name in chosen.names]:
        print(published_weights.fetch_published(_root(chosen), file, chosen.mirror))
    return 0


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")
    try:
        return name, load_document(value.encode()).value  # as in a recipe file
    except DocumentError:
        return name, value


def _parts(chosen: argparse.Namespace) -> Path | None:
    folder = chosen.parts or os.environ.get("METRICSWEEP_PARTS")
    return Path(os.path.expanduser(folder)) if folder else None


def _root(chosen: argparse.Namespace) -> Path:
    """The folder of data sets, by the same rule as the service."""
    home = Path(os.environ.get("METRICSWEEP_HOME") or ".metricsweep")
    return Path(os.path.expanduser(chosen.data or os.environ.get("METRICSWEEP_DATA") or home / "data"))


if __name__ == "__main__":
    sys.exit(main())
