import csv
import io
import json
from dataclasses import replace

import pytest

from orchestrator.publish.formats import names, render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.cells import Contender, best
from orchestrator.publish.tables.table_data import Heading
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Cell, origin_of
from orchestrator.views.tables import printed
from tests.publish import sweeps


def with_table(outcomes, **table):
    main = {**outcomes.spec["tables"]["main"], **table}
    return replace(outcomes, spec={**outcomes.spec, "tables": {"main": main}})


def built(outcomes, **show):
    return build_own(outcomes, "main", sweeps.catalog(), **show)


def with_values(outcomes, values):
    """The outcomes with every trial's test value of recall@1 set by its cell."""
    trials = tuple(
        replace(one, values={**one.values, "best/test/recall@1": values[one.cell]} if one.values else {})
        for one in outcomes.trials
    )
    return replace(outcomes, trials=trials)


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
        outcomes = with_values(pair("a", "b", "c"), [0.70001, 0.70004, 0.6])
        assert [one.bold for one in column(built(outcomes))] == [True, True, False]
        rounded = column(built(with_values(pair("a", "b", decimals=0), [0.704, 0.699])))
        assert [(one.text, one.bold) for one in rounded] == [("70", True), ("70", True)]

    def test_never_for_a_metric_without_direction(self):
        assert not any(one.bold for one in column(built(pair("a", "b", metrics=["norm_var"]))))

    def test_the_least_where_lower_is_better(self):
        spec = sweeps.spec(tables={"main": {"rows": ["loss"], "metrics": ["spread"], "unit": "fraction"}})
        outcomes = sweeps.grid({"loss": ("a", "b", "c")}, spec, metrics=("spread", "map@r"))
        table = built(outcomes)
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

    def test_not_where_there_is_nothing_to_compare(self):
        assert not column(built(pair("a")))[0].bold

    def test_the_block_is_all_row_axes_but_the_last_and_every_column_axis(self):
        table = built(sweeps.digits())
        for c, title in enumerate(("NMI", "F1", "R@1", "MAP@R")):
            assert table.panels[0].columns[c].title == title
            cells = column(table, c)
            for block in range(4):
                assert [one.bold for one in cells[4 * block : 4 * block + 4]].count(True) >= 1
        assert not any(one.bold for one in column(table, 4))

    def test_the_block_may_be_given(self):
        whole = column(built(with_table(sweeps.digits(), bold=[])))
        assert [one.bold for one in whole].count(True) == 1
        assert not any(one.bold for one in column(built(with_table(sweeps.digits(), bold="none"))))

    def test_a_column_axis_splits_blocks_only_if_it_is_named(self):
        compare = {"dataset": ("digits", "omniglot"), "loss": ("triplet", "semihard")}
        layout = {"rows": ["loss"], "columns": ["dataset"], "metrics": ["recall@1"]}
        outcomes = sweeps.grid(compare, sweeps.spec(tables={"main": layout}))
        assert sum(one.bold for row in built(outcomes).panels[0].rows for one in row.cells) == 2
        joined = built(with_table(outcomes, bold=["loss"]))
        assert [sum(one.bold for one in row.cells) for row in joined.panels[0].rows] == [1, 1]

    def test_an_exponent_compares_as_a_number(self):
        found = best([Contender((0,), "x", "higher", "9.99e+8", True), Contender((1,), "x", "higher", "50.00", True)])
        assert found == {(0,)}


class TestMarks:
    def test_what_an_ended_sweep_never_ran_is_not_on_its_way(self):
        outcomes = replace(pair("a", "b", fate=lambda *_: "cancelled"), state="cancelled")
        assert [one.meaning for one in built(outcomes).legend] == ["not run"]

    def test_a_metric_that_was_not_computed_is_a_dash(self):
        cell = column(built(pair("a", metrics=["f2"])))[0]
        assert (cell.text, cell.mark, cell.statistic) == ("–", None, None)
        assert "best/test/f2" in cell.note

    def test_a_sweep_without_cells_yet(self):
        empty = replace(sweeps.digits(), cells=(), candidates=(), trials=(), state="queued")
        table = built(empty)
        assert table.panels[0].rows == ()
        assert "No cells yet: the sweep is queued." in table.caption
        for name in names():
            assert render(table, name).content


class TestHeadings:
    def test_a_row_heading_spans_its_block(self):
        rows = built(sweeps.digits()).panels[0].rows
        assert [row.headings[0] for row in rows[:4]] == [Heading("Triplet", 4), None, None, None]
        assert [row.headings[1] for row in rows[:2]] == [Heading("None"), Heading("L2")]
        assert [row.rule for row in rows[:5]] == [None, None, None, None, 0]

    def test_single_rows_are_not_ruled_off_from_one_another(self):
        layout = {"rows": ["loss", "regularizer"], "metrics": ["recall@1"]}
        compare = {"loss": ("a", "b", "c", "d"), "regularizer": ("e", "f")}
        spec = sweeps.spec(tables={"main": layout})
        kept = sweeps.grid(compare, spec, keep=lambda one: one["regularizer"] == "e" or one["loss"] == "a")
        rows = built(kept).panels[0].rows
        assert [row.texts for row in rows] == [("a", "e"), ("a", "f"), ("b", "e"), ("c", "e"), ("d", "e")]
        assert [row.rule for row in rows] == [None, None, 0, None, None]  # after the group, and nowhere else

    def test_rules_of_a_deeper_nesting_begin_where_the_label_changes(self):
        layout = {"rows": ["dataset", "loss", "regularizer"], "metrics": ["recall@1"]}
        compare = {"dataset": ("a", "b"), "loss": ("c", "d"), "regularizer": ("e", "f")}
        table = built(sweeps.grid(compare, sweeps.spec(tables={"main": layout})))
        rows = table.panels[0].rows
        assert [row.rule for row in rows] == [None, None, 1, None, 0, None, 1, None]
        assert [row.headings[0].span if row.headings[0] else 0 for row in rows] == [4, 0, 0, 0, 4, 0, 0, 0]
        assert [row.headings[1].span if row.headings[1] else 0 for row in rows] == [2, 0, 2, 0, 2, 0, 2, 0]

    def test_two_column_axes_nest(self):
        layout = {"rows": ["loss"], "columns": ["dataset", "regularizer"], "metrics": ["nmi", "f1"]}
        compare = {"loss": ("x",), "dataset": ("digits", "omniglot"), "regularizer": ("none", "l2")}
        panel = built(sweeps.grid(compare, sweeps.spec(tables={"main": layout}))).panels[0]
        assert panel.groups[0] == (Heading("Digits", 4), Heading("Omniglot", 4))
        assert panel.groups[1] == (Heading("None", 2), Heading("L2", 2)) * 2

    def test_an_axis_that_is_not_varied_shows_the_recipes_value(self):
        spec = sweeps.spec(recipe={"dataset": {"name": "digits"}, "loss": {"name": "triplet", "margin": 0.2}})
        layout = {"rows": ["loss.margin", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"]}
        outcomes = sweeps.grid({"regularizer": ("none", "l2")}, {**spec, "tables": {"main": layout}})
        panel = built(outcomes).panels[0]
        assert panel.groups == ((Heading("Digits", 1),),)
        assert panel.rows[0].headings == (Heading("0.2", 2), Heading("None"))

    def test_a_compare_axis_that_the_table_does_not_name_is_not_lost(self):
        table = built(with_table(sweeps.digits(), rows=["regularizer"]))
        assert table.stub == ("Loss", "Regularizer")
        assert len(table.panels[0].rows) == 16

    def test_a_bare_value_over_columns_is_given_its_name(self):
        layout = {"rows": ["loss"], "columns": ["embedding"], "metrics": ["nmi"]}
        compare = {"loss": ("triplet", "semihard"), "embedding": ("64", "128")}
        table = built(sweeps.grid(compare, sweeps.spec(tables={"main": layout})))
        assert table.panels[0].groups == ((Heading("Embedding = 64"), Heading("Embedding = 128")),)
        assert "Loss on Embedding = 64 and Embedding = 128." in table.caption

    def test_an_axis_that_does_not_apply_everywhere(self):
        outcomes = pair("a", "b")
        cells = (outcomes.cells[0], Cell(1, {"loss": "triplet"}))
        rows = built(replace(outcomes, cells=cells)).panels[0].rows
        assert [row.texts for row in rows] == [("Triplet", "a"), ("Triplet", "–")]

    def test_rows_that_share_a_label_stand_together_whatever_the_order_of_cells(self):
        outcomes = sweeps.digits()
        shuffled = replace(outcomes, cells=tuple(sorted(outcomes.cells, key=lambda one: one.index % 4)))
        spans = [row.headings[0].span for row in built(shuffled).panels[0].rows if row.headings[0]]
        assert spans == [4, 4, 4, 4]

    def test_a_hole_in_the_grid_is_a_dash_without_a_mark(self):
        compare = {"loss": ("a", "b"), "dataset": ("digits", "omniglot")}
        spec = sweeps.spec(tables={"main": {"rows": ["loss"], "columns": ["dataset"], "metrics": ["recall@1"]}})
        hole = {"loss": "b", "dataset": "omniglot"}
        table = built(sweeps.grid(compare, spec, keep=lambda one: {key: one[key] for key in hole} != hole))
        last = table.panels[0].rows[-1].cells[-1]
        assert (last.text, last.cell, last.mark) == ("–", None, None)

    def test_labels_and_units_of_one_column(self):
        metrics = [{"metric": "recall@1", "label": "P@1", "unit": "fraction", "decimals": 3}, "nmi", "norm_var"]
        columns = built(pair("a", metrics=metrics)).panels[0].columns
        found = [(one.title, one.unit, one.decimals) for one in columns]
        assert found == [("P@1", "fraction", 3), ("NMI", "percent", 2), ("Norm var", "number", 3)]


def test_each_panel_has_the_columns_it_asks_for_and_none_is_lost():
    table = built(with_table(sweeps.rich(), panels=[{"dataset": ["omniglot"]}]))
    assert [panel.groups[0][0].text for panel in table.panels] == ["Omniglot", "Digits"]


def test_an_unknown_table_names_those_there_are():
    with pytest.raises(NotFoundError, match=r"no table named 'mian'.*main"):
        build_own(sweeps.digits(), "mian", sweeps.catalog())


def test_the_deviation_may_be_left_out():
    assert all(one.std is None for one in column(built(with_table(sweeps.digits(), std=False))))


def test_last_checkpoint_when_selection_says_last():
    spec = sweeps.spec(select={"metric": "map@r", "split": "last"})
    assert built(sweeps.digits(**spec)).panels[0].columns[0].key == "last/test/nmi"


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
    table = build_own(replace(found, trials=tuple(trials)), "main", sweeps.catalog())
    cells = [row.cells[0] for row in table.panels[0].rows]
    assert [f"{one.text} ± {one.std}" if one.std else one.text for one in cells] == expected


def _mixed_runs():
    """Triplet's second run has other data and code, semihard's all share theirs, n-pair's versions of parts differ."""
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
        return replace(one, origin=origin_of({"manifest": data, **code}), stamp=stamp)

    return build_own(replace(found, trials=tuple(map(made, found.trials))), "main", sweeps.catalog())


def test_numbers_of_runs_with_different_data_code_or_versions_are_marked_in_every_format():
    table = _mixed_runs()
    rows = {row.texts[0]: row.cells[0].mixed for row in table.panels[0].rows}
    assert rows == {
        "Triplet": "commits: cccccccccccc, dddddddddddd; data: sha256:aaaaaaaaaaaa, sha256:bbbbbbbbbbbb",
        "Semihard triplet": "",
        "Normalized N-pair": "version of loss: 1, 2",
    }
    note = f"The runs of Triplet differ in more than their seeds ({rows['Triplet']})."
    assert note in table.notes
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
    table = build_own(replace(found, trials=tuple(trials)), "main", sweeps.catalog())
    (panel,) = table.panels
    assert len({column.decimals for column in panel.columns}) == 1
    assert [cell.bold for cell in panel.rows[0].cells] == [False, True, False, True]
