"""Tables of every layout equal the files of golden/: all as Markdown, some as LaTeX."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.runs import Cell, SweepResults, TrialResult
from orchestrator.views.states import TrialState
from tests.publish import presets, shapes, sweeps
from tests.publish.test_imported_rows import BARE, QUOTED, THEIRS, compared
from tests.publish.test_imported_rows import quoting as with_quoted
from tests.publish.test_imported_rows import results as with_imported
from tests.publish.test_significance import SHIFTS, shifted
from tests.publish.test_table import reproduced, selected
from tests.publish.test_table import results as averaged

Made = Callable[[], Table]
LOSSES, REGULARIZERS = ("triplet", "semihard"), ("none", "sec")
BOTH_LRS = [{"optimizer.lr": ["0.01"]}, {"optimizer.lr": ["0.001"]}]
FROZEN = {"name": "frozen", "of": {"name": "mobilenet_v2", "weights": "w.pt"}}


def grid(compare: Mapping[str, Sequence[str]], spec: Any = None, **layout: Any) -> SweepResults:
    """A sweep over some axes, with one table, of two seeds."""
    table = {"rows": [*compare], "columns": [], "metrics": ["recall@1"], **layout}
    return sweeps.grid(compare, sweeps.spec(tables={"main": table}, **(spec or {})), seeds=2)


def shown(given: SweepResults, numbers: Any = "own", real: bool = False, **layout: Any) -> Made:
    """Its table, with changes to the layout; by the catalog that stays as it is, or by the real one."""
    main = {**given.spec["tables"]["main"], **layout}
    changed = replace(given, spec={**given.spec, "tables": {"main": main}})
    return lambda: build(changed, "main", presets.catalog() if real else sweeps.catalog(), numbers=numbers)


def of_spec(given: SweepResults, **spec: Any) -> SweepResults:
    return replace(given, spec={**given.spec, **spec})


def cut(given: SweepResults, kept: Callable[[TrialResult], bool]) -> SweepResults:
    return replace(given, trials=tuple(one for one in given.trials if kept(one)))


def changed(given: SweepResults, which: Callable[[TrialResult], bool], **values: Any) -> SweepResults:
    return replace(given, trials=tuple(replace(one, **values) if which(one) else one for one in given.trials))


def headings() -> dict[str, Made]:
    """Rows and columns: what spans what, what is left out, and what stands where nothing is."""
    digits = sweeps.grid({"loss": LOSSES, "regularizer": ("none", "l2", "sec")}, sweeps.spec())
    ragged = {"loss": ("a", "b", "c", "d"), "regularizer": ("e", "f")}
    hole = {"loss": LOSSES, "dataset": ("digits", "omniglot")}
    held = {"recipe": {"dataset": {"name": "digits"}, "loss": {"name": "triplet", "margin": 0.2}}}
    metrics = [{"metric": "recall@1", "label": "P@1", "unit": "fraction", "decimals": 3}, "nmi", "norm_var"]
    in_turn = tuple(sorted(digits.cells, key=lambda one: one.index % 3))
    mixed = [("b", "f"), ("a", "f"), ("b", "e"), ("a", "e")]
    cells = tuple(Cell(at, {"loss": one, "regularizer": two}) for at, (one, two) in enumerate(mixed))
    single = sweeps.grid(
        ragged, sweeps.spec(tables={"main": {"rows": [*ragged], "metrics": ["recall@1"]}}),
        keep=lambda one: one["regularizer"] == "e" or one["loss"] == "a",
    )  # fmt: skip
    with_hole = sweeps.grid(
        hole, sweeps.spec(tables={"main": {"rows": ["loss"], "columns": ["dataset"], "metrics": ["recall@1", "f2"]}}),
        keep=lambda one: one != {"loss": "semihard", "dataset": "omniglot"},
    )  # fmt: skip
    three = {"dataset": ("a", "b"), "loss": ("c", "d"), "regularizer": ("e", "f")}
    nested = {"loss": ("triplet",), "dataset": ("digits", "omniglot"), "regularizer": REGULARIZERS}
    return {
        "single rows are not ruled off": shown(single),
        "three levels of rows": shown(grid(three)),
        "two levels of columns": shown(grid(nested, rows=["loss"], columns=["dataset", "regularizer"])),
        "an axis that the recipe holds": shown(grid(
            {"regularizer": REGULARIZERS}, held, rows=["loss.margin", "regularizer"], columns=["dataset"])),
        "an axis that the layout does not name": shown(digits, rows=["regularizer"], metrics=["nmi"]),
        "bare values over columns": shown(grid({"loss": LOSSES, "embedding": ("64", "128")}, rows=["loss"],
                                               columns=["embedding"])),
        "an axis that does not apply everywhere": shown(grid({"loss": LOSSES, "regularizer": ("none", "")})),
        "cells in another order": shown(replace(digits, cells=in_turn), metrics=["nmi"]),
        "the order of the sweep within a block": shown(replace(grid({"loss": "ab", "regularizer": "ef"}), cells=cells)),
        "a hole, and a metric that was not computed": shown(with_hole),
        "labels and units": shown(grid({"loss": LOSSES}, metrics=metrics)),
        "cancelled before it ran": shown(replace(changed(
            grid({"loss": LOSSES}), lambda one: True, state=TrialState.CANCELLED, values={}), state="cancelled")),
        "no cells yet": shown(replace(digits, cells=(), candidates=(), trials=(), state="queued")),
        "panels": shown(sweeps.rich(), panels=[{"dataset": ["omniglot"]}]),
        "without deviations": shown(digits, std=False, unit="fraction", bold="none"),
        "two diverged cells side by side": lambda: build(sweeps.grid(
            hole, sweeps.spec(tables={"main": {"rows": ["loss"], "columns": ["dataset"], "metrics": ["nmi", "f1"]}}),
            fate=lambda *_: "diverged"), "main", sweeps.catalog()),
    }  # fmt: skip


def metrics() -> dict[str, Made]:
    """Which metrics stand where, what they and their groups are called."""
    late = [{"metric": "nmi", "when": {"optimizer.lr": ["0.001"]}}]
    sets = [{"metric": "recall@1", "split": one} for one in ("test_lfw", "test_lfw_separated")]
    clusters = [{"metric": "nmi", "over": "Clusters"}, {"metric": "f1", "over": "Clusters"}, "recall@1"]
    alike = ["nmi", "nmi_sec", "recall@1", {"metric": "recall@1", "unit": "fraction"}]
    arrows = ["recall@1", {"metric": "map@r", "label": "mAP"}, "norm_var", {"metric": "f1", "label": "F1 ↑"},
              {"metric": "map@r", "delta": {"regularizer": "none"}, "label": "ΔMAP"}]  # fmt: skip
    layouts: dict[str, dict[str, Any]] = {
        "as SVMax prints": {}, "panels with columns of their own": {"panels": BOTH_LRS},
        "a point without metrics": {"metrics": late}, "a panel without metrics": {"metrics": late, "panels": BOTH_LRS},
        "another split": {"metrics": ["nmi", {"metric": "recall@1", "split": "validation"}]},
        "further test sets": {"metrics": ["nmi", *sets]}, "a heading in common": {"metrics": clusters},
        "columns without titles": {"metrics": [{"metric": "nmi", "label": ""}]},
        "metrics of one label": {"metrics": alike},
        "a label that is given": {"metrics": ["nmi", {"metric": "nmi_sec", "label": "NMI of SEC"}]},
        "a label where an axis does not apply": {
            "labels": {"regularizer.eta": {"": "0"}}, "titles": {"regularizer": None, "optimizer.lr": ""},
        },
        "deviations of the form of the means": {"std": True},
    }  # fmt: skip
    shorter = {"metrics": ["recall@1", "map@r"], "groups": "several"}
    digits = sweeps.grid({"loss": LOSSES, "regularizer": ("none", "l2", "sec")}, sweeps.spec())
    return {
        **{name: shown(sweeps.svmax(**layout)) for name, layout in layouts.items()},
        "arrows": shown(digits, metrics=arrows, arrows=True),
        "no heading over all columns": shown(digits, **shorter),
        "and a caption of one's own": shown(digits, **shorter, caption="Norms matter."),
        "a caption that begins with the contents": shown(digits, arrows=True, groups="several", lead="contents"),
        "the contents, and a caption of one's own": shown(digits, **shorter, lead="contents", caption="Norms matter"),
    }


def templates() -> dict[str, Made]:
    """Labels with what was chosen in them."""
    labels = {"regularizer": {"l2": "L2 (η={regularizer.eta}, lr={optimizer.lr})", "sec": "SEC (η={regularizer.eta})"}}
    recipe = {"dataset": "digits", "optimizer": {"name": "adam", "lr": 0.001}}
    given = of_spec(sweeps.rich(), recipe=recipe, tune={"regularizer.eta": []})
    layout = {"show_tuned": False, "labels": labels, "metrics": ["nmi"]}
    compare = {"loss": ("triplet",), "optimizer.lr": ("0.01",), "regularizer.eta": ("1", "2")}
    over = {"optimizer.lr": {"0.01": "{optimizer.lr} with λ={regularizer.eta}"}}
    columns = ["optimizer.lr", "regularizer.eta"]
    above = grid(compare, {"compare": sweeps.axes(compare)}, rows=["loss"], columns=columns, labels=over)
    panels = [{"dataset": ["digits"]}, {"dataset": ["omniglot"]}]
    return {
        "what a row has in common, or each in turn": shown(given, **layout),
        "by panel": shown(given, **layout, panels=panels),
        "over columns": shown(above),
    }


def captions() -> dict[str, Made]:
    """What a reader needs to trust the numbers."""
    pair = {"loss": LOSSES, "regularizer": REGULARIZERS}
    digits = sweeps.grid({**pair, "regularizer": ("none", "l2", "sec")}, sweeps.spec())
    raced = sweeps.spec(prune={"name": "asha"})

    def fate(labels: Mapping[str, str], candidate: int, repeat: int) -> str:
        return "pruned" if labels["regularizer"] == "sec" and candidate == 1 and repeat else "ok"

    of_test, of_last = ({"select": {"metric": "map@r", "split": split}} for split in ("test", "last"))
    frozen = {"recipe": {**digits.spec["recipe"], "backbone": FROZEN}}
    rules = [{"when": {"loss": ["triplet"], "regularizer": ["sec"]}, "patch": {"backbone": FROZEN}}]
    by_sec = ["recall@1", "recall_sec@1", {"metric": "recall_sec@2", "label": "R@2"}, "nmi_sec", "f1_sec"]
    small = partial(shown, metrics=["nmi", "recall@1"])
    return {
        "all that is said": small(digits),
        "a caption of one's own": small(digits, caption="Norms matter"),
        "everything in the caption": small(digits, caption_detail="full"),
        "selected on test": small(of_spec(digits, **of_test)),
        "selected on test, which a note says": shown(of_spec(digits, **of_test)),
        "candidates selected on test": small(of_spec(digits, **of_last)),
        "nothing tuned": shown(grid({"loss": LOSSES}, of_last)),
        "pruned": shown(sweeps.grid(pair, raced, fate=fate), metrics=["nmi"]),
        "pruned by test": shown(of_spec(sweeps.grid(pair, raced), **of_last), metrics=["nmi"]),
        "unequal repeats": small(cut(digits, lambda one: not (one.cell == 0 and one.repeat == 2))),
        "a single run": shown(sweeps.grid({"loss": LOSSES}, sweeps.spec(), seeds=1)),
        "a frozen backbone": small(of_spec(digits, **frozen), real=True),
        "frozen by a rule": small(of_spec(digits, rules=rules), real=True),
        "by the rules of SEC's code": shown(digits, metrics=by_sec, real=True),
        "by faiss's clusters": shown(digits, metrics=["nmi", "f1"], real=True),
    }


def averages() -> dict[str, Made]:
    """What stands for the runs of a cell, and how many they are."""
    fewer = cut(averaged(3), lambda one: not (one.cell == 0 and one.repeat == 2))
    delta = ["recall@1", {"metric": "recall@1", "delta": {"regularizer": "none"}, "signed": True}]
    layouts: dict[str, dict[str, Any]] = {
        **{spread: {"spread": spread} for spread in ("std", "se", "ci95", "none")},
        "se in a form of its own": {"spread": "se", "std": {"decimals": 4, "unit": "fraction"}},
        "median": {"center": "median"}, "median ± std": {"center": "median", "spread": "std"},
        "best": {"center": "best"}, "differences of the best": {"center": "best", "metrics": delta},
    }  # fmt: skip
    several = {"search": {"name": "tpe", "trials": 3, "reproduce": 4}}
    found = sweeps.grid({"loss": LOSSES}, sweeps.spec(**several), seeds=5)
    return {
        **{name: shown(averaged(), **{"metrics": ["recall@1", "norm_var"], **it}) for name, it in layouts.items()},
        "the best of one": shown(averaged(1), center="best"),
        **{
            f"counts: {when}": shown(fewer, metrics=["recall@1"], counts=when) for when in ("differ", "always", "never")
        },
        "reproduced": shown(reproduced(10), metrics=["recall@1"], spread="ci95"),
        "partly reproduced": shown(reproduced(10, partly=1), metrics=["recall@1"]),
        "several candidates reproduced": shown(found, rows=["loss"], metrics=["recall@1"]),
    }


def selections() -> dict[str, Made]:
    """Both selections side by side."""
    given = selected()
    delta = ["map@r", {"metric": "map@r", "delta": {"regularizer": "l2"}}]
    better = changed(given, lambda one: one.cell == 2, values={**given.trials[0].values, "best_test/test/map@r": 0.9})
    lost = changed(given, lambda one: one.cell == 0, diverged=True, values={})
    lost = changed(lost, lambda one: one.cell == 1, state=TrialState.RUNNING, values={})
    return {
        "both selections": shown(given),
        "bold by each": shown(better, bold=["regularizer"]),
        "by test alone": shown(given, selections=["test"], selection_gap=False),
        "by neither": shown(given, selections=[], selection_gap=False),
        "differences of the same selection": shown(given, metrics=delta, show_tuned=False),
        "diverged and running": shown(lost),
    }


def others() -> dict[str, Made]:
    """Numbers of papers and of other people."""
    views = ("own", "published", "difference", "both", "verdict")
    queued = compared(fate=lambda *_: "waiting")
    faces = [{"metric": "verification_accuracy", "split": f"test_{one}", "unit": "percent"}
             for one in ("lfw", "agedb30", "cars")]  # fmt: skip
    further = grid({"loss": ("cosface",), "regularizer": REGULARIZERS}, {"recipe": {"dataset": "casia_webface"}},
                   metrics=faces, published="SEC-T4")  # fmt: skip
    lacking = grid({"loss": ("triplet", "margin"), "regularizer": REGULARIZERS, "dataset": ("cub200",)},
                   rows=["loss", "regularizer"], columns=["dataset"], metrics=["recall@1", "map@r"],
                   published="SEC-T3", caption="All trained with 128 dimensions.")  # fmt: skip
    quote = {"of": {"loss": "semihard", "regularizer": "sec"}, "label": "SHT, SEC"}
    bold = grid({"loss": ("triplet",), "regularizer": REGULARIZERS, "dataset": ("cub200", "cars196")},
                rows=["loss", "regularizer"], columns=["dataset"], published="SEC-T3",
                quoted=[quote, {**quote, "bold": True}])  # fmt: skip
    imported = {"own": {}, "ci95": {"spread": "ci95"}, "both": {"spread": "ci95", "covers": "both"}}
    return {
        **{f"compared: {view}": shown(compared(), view) for view in views},
        "compared before it ran": shown(queued, "verdict"),
        "compared after one run": shown(compared(seeds=1), "verdict"),
        "faces in print": shown(further, "published"),
        "cells that the paper lacks": shown(lacking, "published"),
        **{f"quoted: {view}": shown(with_quoted(), view, real=True) for view in views},
        "quoted with its mark": shown(with_quoted([{**QUOTED[0], "label": "Supervised† once"}]), real=True),
        "quoted beside the mark": shown(with_quoted(labels={"loss": {"triplet": "Triplet†"}}), real=True),
        "quoted in bold": shown(bold, real=True),
        **{f"imported: {name}": shown(with_imported(THEIRS, BARE, **it)) for name, it in imported.items()},
        **{f"imported: {view}": shown(with_imported(THEIRS, published="SEC-T3"), view) for view in views[1:]},
    }


def comparisons() -> dict[str, Made]:
    """Against a baseline: marks, and words where there can be none."""
    few = cut(shifted(SHIFTS), lambda one: not (one.cell == 1 and one.repeat > 1))
    ranks = {f"{seeds} signed ranks": shown(shifted(SHIFTS, seeds=seeds, test="wilcoxon")) for seeds in (5, 7, 10)}
    return {
        "paired t-tests": shown(shifted(SHIFTS)), "too few seeds": shown(shifted(SHIFTS, seeds=2)), **ranks,
        "missing pairs": shown(few), "queued": shown(replace(shifted(SHIFTS), trials=(), state="queued")),
    }  # fmt: skip


def every_shape() -> dict[str, Made]:
    """One to four axes of rows, panels, uneven seeds, signs."""
    return {name: partial(replace, table) for name, table in shapes.tables().items()}


def test_tables_equal_their_golden_files(golden: Callable[[str, bytes], None]) -> None:
    for made in (headings, metrics, templates, captions, averages, selections, others, comparisons, every_shape):
        tables = {name: table() for name, table in made().items()}
        for kind, ending in (("markdown", "md"), ("latex", "tex")):
            if ending == "md" or made in (headings, metrics, others, every_shape):
                written = (f"% {name}\n".encode() + render(table, kind).content for name, table in tables.items())
                golden(f"{made.__name__}.{ending}", b"\n".join(written))
