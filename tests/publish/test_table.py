"""Tables: printed numbers, bold, differences, what stands for the runs of a cell, and runs that differ in more."""

import csv
import io
import json
import statistics
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.publish.aggregate import half_interval, standard_error
from orchestrator.publish.formats import render
from orchestrator.publish.tables import compare as comparisons
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.cells import Contender, best
from orchestrator.publish.tables.table_data import Table
from orchestrator.publish.tables.words import budget
from orchestrator.views.runs import NO_SWEEP, SweepResults, origin_of
from orchestrator.views.tables import printed
from tests.publish import sweeps
from workers.catalog import load


def with_table(results, **table):
    main = {**results.spec["tables"]["main"], **table}
    return replace(results, spec={**results.spec, "tables": {"main": main}})


def built(results, **show):
    return build(results, "main", sweeps.catalog(), **show)


def with_values(results, values):
    """The outcomes with every trial's test value of recall@1 set by its cell."""
    trials = tuple(
        replace(one, values={**one.values, "best/test/recall@1": values[one.cell]} if one.values else {})
        for one in results.trials
    )
    return replace(results, trials=trials)


def pair(*labels, fate=sweeps.ok, **table):
    """One loss against some regularizers without tuning, one metric, one seed."""
    layout = {"rows": ["loss", "regularizer"], "columns": [], "metrics": ["recall@1"], **table}
    spec = sweeps.spec(tables={"main": layout})
    return sweeps.grid({"loss": ("triplet",), "regularizer": labels}, spec, seeds=1, fate=fate)


def column(table, index=0):
    return [row.cells[index] for panel in table.panels for row in panel.rows]


NUMBERS = [
    (0.59855, "percent", 2, "59.86"),  # as its shortest decimal reads, half to even
    (0.5, "percent", 0, "50"),
    (0.123456, "fraction", 3, "0.123"),
    (12.3456, "number", 1, "12.3"),
    (-0.00001, "percent", 2, "-0.001"),  # a number that is not zero never reads as zero
    (0.004, "number", 2, "0.004"),
    (0.0049, "number", 1, "0.005"),
    (0.00096, "number", 2, "0.001"),
    (0.0096, "number", 2, "0.01"),
    (0.0, "number", 2, "0.00"),
    (-1e-17, "number", 2, "0.00"),  # what two equal means may differ by
    (4e-9, "percent", 2, "4e-7"),
    (-0.5, "number", 1, "-0.5"),
    (1.0, "percent", 2, "100.00"),
    (1e-9, "number", 2, "1e-9"),
    (123456789.0, "number", 2, "1.23e+8"),
    (1e300, "number", 2, "1.00e+300"),
]


def test_numbers_are_printed_with_fixed_decimals():
    found = [printed(value, unit, decimals) for value, unit, decimals, _ in NUMBERS]
    assert found == [text for *_, text in NUMBERS]


class TestBold:
    def test_every_value_that_prints_as_the_maximum(self):
        results = with_values(pair("a", "b", "c"), [0.70001, 0.70004, 0.6])
        assert [one.bold for one in column(built(results))] == [True, True, False]
        rounded = column(built(with_values(pair("a", "b", decimals=0), [0.704, 0.699])))
        assert [(one.text, one.bold) for one in rounded] == [("70", True), ("70", True)]

    def test_the_least_where_lower_is_better(self):
        spec = sweeps.spec(tables={"main": {"rows": ["loss"], "metrics": ["spread"], "unit": "fraction"}})
        results = sweeps.grid({"loss": ("a", "b", "c")}, spec, metrics=("spread", "map@r"))
        table = built(results)
        values = [one.statistic.mean for one in column(table)]
        assert [one.bold for one in column(table)] == [value == min(values) for value in values]
        assert table.panels[0].columns[0].title == "Spread ↓"

    def test_it_waits_for_cells_that_may_still_come_and_for_no_others(self):
        ends = {"running": 0, "waiting": 0, "cancelled": 0, "failed": 1, "diverged": 1}
        bold = {
            end: column(
                built(
                    pair("a", "b", "c", fate=lambda labels, *_, end=end: end if labels["regularizer"] == "b" else "ok")
                )
            )
            for end in ends
        }
        assert {end: sum(cell.bold for cell in cells) for end, cells in bold.items()} == ends

    def test_the_block_may_be_given(self):
        whole = column(built(with_table(sweeps.digits(), bold=[])))
        assert [one.bold for one in whole].count(True) == 1
        assert not any(one.bold for one in column(built(with_table(sweeps.digits(), bold="none"))))

    def test_a_column_axis_splits_blocks_only_if_it_is_named(self):
        compare = {"dataset": ("digits", "omniglot"), "loss": ("triplet", "semihard")}
        layout = {"rows": ["loss"], "columns": ["dataset"], "metrics": ["recall@1"]}
        results = sweeps.grid(compare, sweeps.spec(tables={"main": layout}))
        assert sum(one.bold for row in built(results).panels[0].rows for one in row.cells) == 2
        joined = built(with_table(results, bold=["loss"]))
        assert [sum(one.bold for one in row.cells) for row in joined.panels[0].rows] == [1, 1]

    def test_an_exponent_compares_as_a_number(self):
        found = best([Contender((0,), "x", "higher", "9.99e+8", True), Contender((1,), "x", "higher", "50.00", True)])
        assert found == {(0,)}


DEVIATIONS = [
    ([(0.0144, 0.0192), (0.5, 0.52)], {}, ["0.0168 ± 0.0034", "0.5100 ± 0.0141"]),
    ([(0.0168, 0.0168), (0.5, 0.5)], {}, ["0.017 ± 0.000", "0.500 ± 0.000"]),
    ([(12.3, 16.9), (11.0, 15.0)], {}, ["14.6 ± 3.3", "13.0 ± 2.8"]),
    ([(4800.0, 4970.0), (4700.0, 5100.0)], {}, ["4885 ± 120", "4900 ± 283"]),
    ([(0.0168,), (0.5,)], {}, ["0.017", "0.500"]),
    ([(1.5,), (0.5,)], {}, ["1.50", "0.50"]),
    ([(0.0144, 0.0192), (0.5, 0.52)], {"decimals": 2}, ["0.02 ± 0.003", "0.51 ± 0.01"]),
]


@pytest.mark.parametrize(("values", "given", "expected"), DEVIATIONS)
def test_the_deviation_decides_on_the_decimals_of_a_number_that_is_no_percent(values, given, expected):
    layout = {"rows": ["loss"], "columns": [], "metrics": ["norm_var"], **given}
    found = sweeps.grid({"loss": ["triplet", "semihard"]}, sweeps.spec(tables={"main": layout}), seeds=len(values[0]))
    trials = [
        replace(one, values={**one.values, "best/test/norm_var": values[one.cell][one.repeat]}) for one in found.trials
    ]
    table = build(replace(found, trials=tuple(trials)), "main", sweeps.catalog())
    cells = [row.cells[0] for row in table.panels[0].rows]
    assert [f"{one.text} ± {one.std}" if one.std else one.text for one in cells] == expected


def _mixed_runs():
    """Triplet's second run has other data and code, semihard's all share theirs, n-pair's versions of parts differ.

    Triplet's second run left out two damaged images, and its first run one; the others report no number of them.
    """
    layout = {"rows": ["loss"], "columns": [], "metrics": ["recall@1", "nmi"], "show_tuned": False}
    compare = {"loss": ["triplet", "semihard", "normalized_npair"]}
    found = sweeps.grid(compare, sweeps.spec(tables={"main": layout}), seeds=2)

    def made(one):
        other = one.repeat == 1
        data = "sha256:" + ("b" if other and one.cell == 0 else "a") * 64
        code = {"git_commit": ("d" if other and one.cell == 0 else "c") * 40, "versions": {"metricsweep": "0.1.0"}}
        version = 2 if other and one.cell == 2 else 1
        stamp = json.dumps({"parts": {}, "metric": "map@r", "precision": None, "manifest": None,
                            "versions": {"loss": version}})  # fmt: skip
        skipped = {"images": one.repeat + 1 if one.cell == 0 else ["no number"], "names": ["a.jpg"]}
        return replace(one, origin=origin_of({"manifest": data, **code, "skipped": skipped}), stamp=stamp)

    return build(replace(found, trials=tuple(map(made, found.trials))), "main", sweeps.catalog())


def test_numbers_of_runs_with_different_data_code_or_versions_are_marked_in_every_format():
    table = _mixed_runs()
    rows = {row.texts[0]: row.cells[0].mixed for row in table.panels[0].rows}
    assert rows == {
        "Triplet": "commits: cccccccccccc, dddddddddddd; data: sha256:aaaaaaaaaaaa, sha256:bbbbbbbbbbbb; "
        "skipped images: 1, 2",
        "Semihard triplet": "",
        "Normalized N-pair": "version of loss: 1, 2",
    }
    note = f"The runs of Triplet differ in more than their seeds ({rows['Triplet']})."
    assert note in table.words.below
    left_out = ("1 damaged image was left out in Triplet.", "2 damaged images were left out in Triplet.")
    assert {*left_out} <= {*table.words.below}
    for name, sign in {"markdown": "◊", "html": "&#9674;", "latex": "$\\diamond$"}.items():
        text = render(table, name).content.decode()
        assert text.count(sign) == 4 + 1, name  # two numbers each of two rows, and the legend
        assert "differ in more than their seeds" in text
    read = json.loads(render(table, "json").content)
    assert [row["cells"][0].get("mixed", "") for row in read["panels"][0]["rows"]] == list(rows.values())
    lines = csv.DictReader(io.StringIO(render(table, "csv").content.decode(), newline=""))
    assert [line["mixed"] for line in lines][::2] == list(rows.values())


def test_bold_compares_a_metric_with_equal_decimals_in_every_column():
    layout = {"rows": [], "columns": ["dataset", "loss"], "metrics": ["spread"], "unit": "number", "bold": ["dataset"]}
    compare = {"dataset": ["digits", "omniglot"], "loss": ["triplet", "semihard"]}
    found = sweeps.grid(compare, sweeps.spec(tables={"main": layout}), seeds=2, metrics=["spread", "map@r"])
    values = [(0.01, 0.0103), (0.01, 0.0102), (4.0, 5.0), (3.0, 4.0)]
    trials = [
        replace(one, values={**one.values, "best/test/spread": values[one.cell][one.repeat]}) for one in found.trials
    ]
    table = build(replace(found, trials=tuple(trials)), "main", sweeps.catalog())
    (panel,) = table.panels
    assert len({column.decimals for column in panel.columns}) == 1
    assert [cell.bold for cell in panel.rows[0].cells] == [False, True, False, True]


class TestDifferences:
    def test_they_come_from_unrounded_means(self):
        table = built(sweeps.svmax())
        found = {row.texts: row.cells for row in table.panels[0].rows}
        ours, base = found["Triplet†", "SVMax (λ=1)"], found["Triplet†", ""]
        assert ours[3].statistic.mean == ours[1].statistic.mean - base[1].statistic.mean
        assert ours[3].text == "+1.58"
        assert (ours[3].std, ours[3].statistic.n) == (None, 3)

    def test_a_baseline_without_a_value_gives_no_difference_and_a_running_baseline_is_pending(self):
        layout = {"rows": ["regularizer"], "metrics": [{"metric": "nmi", "delta": {"regularizer": "none"}}]}
        for end, text, mark in (("waiting", "…", "pending"), ("diverged", "–", None), ("failed", "–", None)):
            results = sweeps.grid(
                {"regularizer": ("none", "l2")}, sweeps.spec(tables={"main": layout}),
                fate=lambda labels, *_, end=end: end if labels["regularizer"] == "none" else "ok",
            )  # fmt: skip
            cell = built(results).panels[0].rows[1].cells[0]
            assert (cell.text, cell.mark == "pending") == (text, mark == "pending"), end

    def test_the_baseline_agrees_in_every_other_label_that_it_has(self):
        metrics = ["nmi", {"metric": "nmi", "delta": {"regularizer": "l2"}}]
        layout = {"rows": ["regularizer"], "columns": ["dataset"], "metrics": metrics}
        results = sweeps.grid(
            {"regularizer": ("none", "l2"), "dataset": ("digits", "omniglot")}, sweeps.spec(tables={"main": layout})
        )
        none, l2 = (row.cells for row in built(results).panels[0].rows)
        for at in (0, 2):
            assert none[at + 1].statistic.mean == none[at].statistic.mean - l2[at].statistic.mean

    def test_the_plus_is_that_of_the_printed_number(self):
        texts = {0.0123: "+1.2", -0.0123: "-1.2", 0.00001: "+0.001", 0.0: "0.0"}
        assert {value: printed(value, "percent", 1, signed=True) for value in texts} == texts


def test_what_no_sweep_has_names_none():
    results = pair("none", "sec", columns=["dataset"], published="SEC-T3")
    found = built(replace(results, sweep=NO_SWEEP), numbers="published")
    assert found.file_stem == "sec-on-digits-main-published"
    texts = {name: render(found, name).content.decode() for name in ("latex", "html", "json")}
    assert "sweep 0" not in texts["latex"]
    assert "of the spec 'sec-on-digits'" in texts["latex"]
    assert "data-sweep" not in texts["html"]
    assert json.loads(texts["json"])["sweep"]["id"] is None


FROZEN = {"name": "frozen", "of": {"name": "mobilenet_v2", "weights": "w.pt"}}


def test_a_comparison_says_of_no_sweep_that_another_one_is_frozen():
    given = sweeps.digits()
    table = {"rows": ["backbone", "loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"]}

    def caption(*backbones, **layout):
        several = [
            replace(given, sweep=number, spec={
                **given.spec, "recipe": {**given.spec["recipe"], "backbone": one}, "tables": {"main": table | layout},
            })
            for number, one in enumerate(backbones, 1)
        ]  # fmt: skip
        return " ".join(comparisons.merged(several, "main", load()).words.below)

    told = "The backbone is frozen: head and loss are trained on features of MobileNetV2."
    assert told in caption(FROZEN, FROZEN)
    assert told not in caption(FROZEN, {"name": "small_cnn"})
    found = caption(FROZEN, {"name": "small_cnn"}, rows=["loss", "regularizer"])
    assert told not in found
    assert "The sweeps also differ in backbone (1: frozen, 2: small_cnn)" in found
    found = caption(FROZEN, {**FROZEN, "of": {"name": "resnet18", "weights": "w.pt"}})
    assert told not in found
    assert "The sweeps also differ in backbone.of (1: mobilenet_v2, 2: resnet18)" in found


def test_the_budget_is_put_in_the_fewest_words():
    for counts, words in (
        ([1, 1, 1, 1], ""), ([], ""), ([3, 3, 3, 3], "Selection budget: 3 candidates in every cell."),
        ([1, 3, 1, 3], "Selection budget: 1 candidate for x; 3 for y."),
        ([2, 2, 5, 5], "Selection budget: 2 candidates for a; 5 for b."),
        ([1, 3, 7, 3], "Selection budget: 1 to 7 candidates a cell."),
    ):  # fmt: skip
        cells = [{"loss": loss, "regularizer": other} for loss in "ab" for other in "xy"][: len(counts)]
        assert budget(dict(enumerate(cells)), dict(enumerate(counts)), lambda axis, label: label) == words


KEY = "best/test/recall@1"


def table_of(results, **layout):
    layout = {"rows": ["loss", "regularizer"], "columns": [], "metrics": ["recall@1", "norm_var"], **layout}
    return build(replace(results, spec={**results.spec, "tables": {"main": layout}}), "main", sweeps.catalog())


def results(seeds=5):
    return sweeps.grid({"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}, sweeps.spec(), seeds=seeds)


def runs(table, cell):
    summary = table.summaries[cell]
    return [
        one.values[KEY] for one in results().trials if (one.cell, one.candidate) == (summary.cell, summary.candidate)
    ]


def first(table):
    return table.panels[0].rows[0].cells[0]


def reproduced(more, partly=None):
    """The winner of each cell is trained again with `more` seeds; that of the first cell with `partly`."""
    spec = sweeps.spec(search={"name": "tpe", "trials": 3, "reproduce": more})
    found = sweeps.grid({"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}, spec, seeds=1)
    winners = {one.cell: one.candidate for one in table_of(found).summaries.values()}
    trials = list(found.trials)
    for one in found.trials:
        if winners[one.cell] == one.candidate:
            count = partly if partly is not None and one.cell == 0 else more
            again = ({key: value + 0.001 * n for key, value in one.values.items()} for n in range(1, count + 1))
            trials += [
                replace(one, repeat=n, repeat_labels={"seed": str(n)}, values=values)
                for n, values in enumerate(again, 1)
            ]
    return replace(found, trials=tuple(trials))


def test_a_spread_is_what_its_formula_gives():
    for spread, formula in {"std": lambda one: one.std, "se": standard_error, "ci95": half_interval}.items():
        cell = first(table_of(results(), spread=spread))
        assert cell.std == f"{100 * formula(cell.statistic):.2f}", spread


def test_the_median():
    table = table_of(results(), center="median")
    cell = first(table)
    assert cell.center == statistics.median(runs(table, cell.cell))
    assert cell.text == f"{100 * cell.center:.2f}"
    assert cell.statistic.mean == pytest.approx(statistics.fmean(runs(table, cell.cell)))
    assert cell.std is None
    header, line = render(table, "csv").content.decode().splitlines()[:2]
    assert float(dict(zip(header.split(","), line.split(","), strict=True))["median"]) == cell.center
    found = json.loads(render(table, "json").content)
    assert (found["center"], found["spread"]) == ("median", "none")
    assert found["panels"][0]["rows"][0]["cells"][0]["center"] == cell.center


def test_the_best():
    table = table_of(results(), center="best")
    assert first(table).center == max(runs(table, first(table).cell))
    variance = table.panels[0].rows[0].cells[1]  # of which none is better than another
    assert variance.center == variance.statistic.mean


TABLE: dict[str, Any] = {
    "rows": ["loss"], "columns": ["regularizer"],
    "metrics": ["map@r", {"metric": "recall@1", "unit": "fraction", "decimals": 3}],
    "selections": ["validation", "test"], "selection_gap": True, "show_tuned": True, "std": False,
}  # fmt: skip


def selected(**layout: Any) -> SweepResults:
    """Cells in which the last candidate is best on test, and the first on validation."""
    table = {**TABLE, **layout}
    select = {"metric": "map@r", "split": "validation", "beside": "test", "budget": 3}
    made = sweeps.grid(
        {"loss": sweeps.LOSSES[:2], "regularizer": ("l2", "sec")}, sweeps.spec(tables={"main": table}, select=select)
    )
    trials = []
    for one in made.trials:
        n, seed = one.candidate, one.repeat / 1000
        values = {
            "best/validation/map@r": 0.5 - n / 100, "best/test/map@r": 0.4 + n / 100 + seed,
            "best/test/recall@1": 0.7 - n / 100, "best_test/test/map@r": 0.42 + n / 50 + seed,
            "best_test/test/recall@1": 0.71 + n / 100,
        }  # fmt: skip
        trials.append(replace(one, values=values))
    return replace(made, trials=tuple(trials))


def built_by_both(given: SweepResults, **show: Any) -> Table:
    return build(given, "main", sweeps.catalog(), **show)


def test_a_difference_is_of_unrounded_means_and_never_bold() -> None:
    row = built_by_both(selected()).panels[0].rows[0]
    assert row.cells[6].statistic is not None
    assert row.cells[6].statistic.mean == pytest.approx(0.06)
    assert row.cells[6].std is None
    assert not any(cell.bold for one in built_by_both(selected()).panels[0].rows for cell in one.cells[6:8])


def test_data_formats_tell_them_apart() -> None:
    table = built_by_both(selected())
    rows = list(csv.DictReader(io.StringIO(render(table, "csv").content.decode())))
    first = [(one["metric"], one["key"], one["regularizer.eta"], one["printed"]) for one in rows[:6:2]]
    assert first == [
        ("map@r", "best/test/map@r", "0.01", "40.10"),
        ("map@r", "best_test/test/map@r", "0.0001", "46.10"),
        ("selection_gap:map@r", "best_test/test/map@r", "0.01", "+6.00"),
    ]
    found = json.loads(render(table, "json").content)
    assert [one.get("selection") for one in found["panels"][0]["columns"][:8:3]] == ["validation", "test", None]
    assert found["panels"][0]["columns"][6]["kind"] == "selection_gap"
    assert [one["candidate"] for one in found["cells_by_test"]] == [2, 2, 2, 2]
