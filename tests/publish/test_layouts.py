"""What a layout says beyond rows and columns: which metrics where, labels, titles, differences, words for no number."""

import html
import json
from dataclasses import replace

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.table_data import Heading
from orchestrator.views.runs import NO_SWEEP, Cell
from orchestrator.views.tables import printed
from tests.publish import sweeps


def built(outcomes, **show):
    return build_own(outcomes, "main", sweeps.catalog(), **show)


def rows(table, panel=0):
    return {row.texts: row.cells for row in table.panels[panel].rows}


def titles(panel):
    return [column.title for column in panel.columns]


class TestMetrics:
    def test_so_has_each_panel(self):
        panels = [{"optimizer.lr": ["0.01"]}, {"optimizer.lr": ["0.001"]}]
        table = built(sweeps.svmax(panels=panels))
        assert [titles(panel) for panel in table.panels] == [["NMI", "R@1", "MAP@R", "ΔR@1"], ["NMI", "R@1", "ΔR@1"]]
        assert len(table.panels[1].rows) == 5  # the sixth has no cell there

    def test_a_point_without_any_has_no_columns(self):
        metrics = [{"metric": "nmi", "when": {"optimizer.lr": ["0.001"]}}]
        assert built(sweeps.svmax(metrics=metrics)).panels[0].groups == ((Heading("lr = 0.001"),),)
        panels = [{"optimizer.lr": ["0.01"]}, {"optimizer.lr": ["0.001"]}]
        assert len(built(sweeps.svmax(metrics=metrics, panels=panels)).panels) == 1

    def test_another_split_is_said(self):
        metrics = ["nmi", {"metric": "recall@1", "split": "validation"}]
        table = built(sweeps.svmax(metrics=metrics))
        assert table.panels[0].columns[1].key == "best/validation/recall@1"
        assert "R@1 of validation images." in table.caption

    def test_a_test_set_is_said(self):
        splits = ("test_lfw", "test_lfw_separated")
        table = built(sweeps.svmax(metrics=["nmi", *({"metric": "recall@1", "split": one} for one in splits)]))
        assert [one.key for one in table.panels[0].columns[1:3]] == [f"best/{one}/recall@1" for one in splits]
        assert [one.title for one in table.panels[0].columns[1:3]] == ["R@1 (lfw)", "R@1 (lfw) (separated)"]
        assert "R@1 (lfw) of test set lfw." in table.caption
        assert "of test set lfw by each model of a training, averaged over its models." in table.caption

    def test_neighbours_may_have_a_heading_in_common(self):
        metrics = [{"metric": "nmi", "over": "Clusters"}, {"metric": "f1", "over": "Clusters"}, "recall@1"]
        table = built(sweeps.svmax(metrics=metrics))
        assert table.panels[0].groups[-1] == (Heading("Clusters", 2), Heading("", 1)) * 2
        assert not built(sweeps.svmax(metrics=["nmi"])).panels[0].groups[1:]

    def test_columns_without_titles_leave_the_line_out(self):
        table = built(sweeps.svmax(metrics=[{"metric": "nmi", "label": ""}]))
        assert not table.panels[0].titled
        text = render(table, "latex").content.decode()
        assert (
            "Method &  & \\multicolumn{1}{c@{\\hspace{14pt}}}{fast -- 0.01} & \\multicolumn{1}{c}{lr = 0.001} \\\\"
            in text
        )
        assert "\\cmidrule" not in text
        markdown = render(table, "markdown").content.decode()
        assert markdown.splitlines()[2].replace(" ", "") == "|Method||fast–0.01|lr=0.001|"


class TestDifferences:
    def test_they_come_from_unrounded_means(self):
        table = built(sweeps.svmax())
        found = rows(table)
        ours, base = found["Triplet†", "SVMax (λ=1)"], found["Triplet†", ""]
        assert ours[3].statistic.mean == ours[1].statistic.mean - base[1].statistic.mean
        assert ours[3].text == "+1.58"
        assert (ours[3].std, ours[3].statistic.n) == (None, 3)

    def test_a_baseline_without_a_value_gives_no_difference_and_a_running_baseline_is_pending(self):
        layout = {"rows": ["regularizer"], "metrics": [{"metric": "nmi", "delta": {"regularizer": "none"}}]}
        for end, text, mark in (("waiting", "…", "pending"), ("diverged", "–", None), ("failed", "–", None)):
            outcomes = sweeps.grid(
                {"regularizer": ("none", "l2")}, sweeps.spec(tables={"main": layout}),
                fate=lambda labels, *_, end=end: end if labels["regularizer"] == "none" else "ok",
            )  # fmt: skip
            cell = built(outcomes).panels[0].rows[1].cells[0]
            assert (cell.text, cell.mark == "pending") == (text, mark == "pending"), end

    def test_the_baseline_agrees_in_every_other_label_that_it_has(self):
        layout = {
            "rows": ["regularizer"],
            "columns": ["dataset"],
            "metrics": ["nmi", {"metric": "nmi", "delta": {"regularizer": "l2"}}],
        }
        outcomes = sweeps.grid(
            {"regularizer": ("none", "l2"), "dataset": ("digits", "omniglot")}, sweeps.spec(tables={"main": layout})
        )
        none, l2 = (row.cells for row in built(outcomes).panels[0].rows)
        for at in (0, 2):
            assert none[at + 1].statistic.mean == none[at].statistic.mean - l2[at].statistic.mean

    def test_the_plus_is_that_of_the_printed_number(self):
        assert printed(0.0123, "percent", 1, signed=True) == "+1.2"
        assert printed(-0.0123, "percent", 1, signed=True) == "-1.2"
        assert printed(0.00001, "percent", 1, signed=True) == "+0.001"
        assert printed(0.0, "percent", 1, signed=True) == "0.0"


class TestNames:
    def test_metrics_of_one_label_are_told_apart_by_their_names(self):
        metrics = ["nmi", "nmi_sec", "recall@1", {"metric": "recall@1", "unit": "fraction"}]
        titles = [column.title for column in built(sweeps.svmax(metrics=metrics)).panels[0].columns[:4]]
        assert titles == ["NMI (nmi)", "NMI (nmi_sec)", "R@1", "R@1"]
        metrics[1] = {"metric": "nmi_sec", "label": "NMI of SEC"}
        titles = [column.title for column in built(sweeps.svmax(metrics=metrics)).panels[0].columns[:2]]
        assert titles == ["NMI", "NMI of SEC"]

    def test_where_an_axis_does_not_apply_a_label_may_stand(self):
        labels = {"regularizer.eta": {"": "0"}}
        table = built(sweeps.svmax(labels=labels, titles={"regularizer": None}))
        assert [row.texts for row in table.panels[0].rows[:2]] == [("Triplet", "0"), ("Triplet", "1")]

    def test_a_template_takes_what_the_cells_of_its_row_share_else_each_in_turn(self):
        labels = {
            "regularizer": {"l2": "L2 (η={regularizer.eta}, lr={optimizer.lr})", "sec": "SEC (η={regularizer.eta})"}
        }
        table = {**sweeps.rich().spec["tables"]["main"], "show_tuned": False, "labels": labels}
        recipe = {"dataset": "digits", "optimizer": {"name": "adam", "lr": 0.001}}
        spec = {"tables": {"main": table}, "recipe": recipe, "tune": {"regularizer.eta": []}}
        outcomes = sweeps.rich()
        found = built(replace(outcomes, spec={**outcomes.spec, **spec}))
        texts = [row.texts[1] for row in found.panels[0].rows]
        assert texts[1] == "L2 (η=0.0001/0.001, lr=0.001)"
        assert texts[2] == "SEC (η=0.5)"
        assert texts[4] == "L2 (η=–/0.01, lr=0.001)"  # one diverged: nothing was chosen there
        assert texts[8] == "SEC (η=0.5/…)"  # one still runs
        panels = [{"dataset": ["digits"]}, {"dataset": ["omniglot"]}]
        table["panels"] = panels
        apart = built(replace(outcomes, spec={**outcomes.spec, **spec}))
        assert [panel.rows[1].texts[1] for panel in apart.panels] == [
            "L2 (η=0.0001, lr=0.001)",
            "L2 (η=0.001, lr=0.001)",
        ]

    def test_headings_over_columns_have_templates_too(self):
        labels = {"optimizer.lr": {"0.01": "{optimizer.lr} with λ={regularizer.eta}"}}
        layout = {
            "rows": ["loss"], "columns": ["optimizer.lr", "regularizer.eta"], "labels": labels, "metrics": ["nmi"],
        }  # fmt: skip
        compare = {"loss": ("triplet",), "optimizer.lr": ("0.01",), "regularizer.eta": ("1", "2")}
        spec = sweeps.spec(tables={"main": layout}, compare=sweeps.axes(compare))
        groups = built(sweeps.grid(compare, spec)).panels[0].groups
        assert [heading.text for heading in groups[0]] == ["0.01 with λ=1", "0.01 with λ=2"]

    def test_rows_stand_in_the_order_of_the_sweep_within_their_block(self):
        cells = [("a", "y"), ("b", "x"), ("b", "y"), ("a", "x")]
        layout = {"rows": ["loss", "regularizer"], "metrics": ["nmi"]}
        outcomes = sweeps.grid({"loss": ("a", "b"), "regularizer": ("x", "y")}, sweeps.spec(tables={"main": layout}))
        mixed = tuple(Cell(at, {"loss": one, "regularizer": two}) for at, (one, two) in enumerate(cells))
        found = built(replace(outcomes, cells=mixed)).panels[0].rows
        assert [row.texts for row in found] == [("a", "y"), ("a", "x"), ("b", "x"), ("b", "y")]


class TestWords:
    def test_two_diverged_cells_side_by_side_are_two_words(self):
        layout = {"rows": ["regularizer"], "columns": ["dataset"], "metrics": ["nmi", "f1"]}
        compare = {"regularizer": ("none",), "dataset": ("digits", "omniglot")}
        outcomes = sweeps.grid(compare, sweeps.spec(tables={"main": layout}), fate=lambda *_: "diverged")
        assert [cell.span for cell in built(outcomes).panels[0].rows[0].cells] == [2, 0, 2, 0]

    def test_what_is_missing_has_the_layouts_text(self):
        cells = rows(built(sweeps.svmax()))["Semihard triplet", "SVMax (λ=0.1)"]
        assert [cell.text for cell in cells[4:]] == ["-", "-", "-"]
        assert {cell.text for cell in rows(built(sweeps.svmax(metrics=["f2"])))["Triplet†", ""]} == {"-"}

    def test_deviations_may_have_a_form_of_their_own(self):
        cell = rows(built(sweeps.svmax()))["Triplet†", ""][1]
        assert (cell.text, cell.std) == ("56.09", "0.086")
        same = rows(built(sweeps.svmax(std=True)))["Triplet†", ""][1]
        assert (same.text, same.std) == ("56.09", "8.56")


class TestPublished:
    def printed(self, **more):
        layout = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["recall@1"]}
        compare = {"loss": ("triplet",), "regularizer": ("none", "sec"), "dataset": ("cub200",)}
        table = {**layout, "published": "SEC-T3", **more}
        return sweeps.grid(compare, sweeps.spec(tables={"main": table}), state="queued")

    def test_a_caption_of_ones_own_trainings_does_not_stand_above_printed_numbers(self):
        found = built(self.printed(caption="All trained with 128 dimensions."), numbers="published")
        assert found.caption.startswith("Four losses without regularizer")
        assert "All trained" not in found.caption

    def test_what_no_sweep_has_names_none(self):
        found = built(replace(self.printed(), sweep=NO_SWEEP), numbers="published")
        assert found.file_stem == "sec-on-digits-main-published"
        texts = {
            name: render(found, name).content.decode(errors="replace") for name in ("latex", "html", "json", "csv")
        }
        assert "sweep 0" not in texts["latex"]
        assert "of the spec 'sec-on-digits'" in texts["latex"]
        assert "data-sweep" not in texts["html"]
        assert json.loads(texts["json"])["sweep"]["id"] is None

    def test_a_further_set_that_is_tested_is_a_data_set_in_print(self):
        metrics = [
            {"metric": "verification_accuracy", "split": f"test_{one}", "unit": "percent"}
            for one in ("lfw", "agedb30", "cars")
        ]
        table = {"rows": ["loss", "regularizer"], "metrics": metrics, "published": "SEC-T4"}
        compare = {"loss": ("cosface",), "regularizer": ("none", "sec")}
        recipe = {"dataset": "casia_webface"}
        outcomes = sweeps.grid(compare, sweeps.spec(tables={"main": table}, recipe=recipe), state="queued")
        found = built(outcomes, numbers="published")
        texts = {one.labels["regularizer"]: [cell.text for cell in one.cells] for one in found.panels[0].rows}
        assert texts == {"none": ["99.37", "93.82", "–"], "sec": ["99.42", "94.37", "–"]}
        assert found.panels[0].columns[0].name == "lfw:verification_accuracy"
        assert found.panels[0].columns[1].key == "best/test_agedb30/verification_accuracy"

    def test_cells_that_the_paper_does_not_have_are_missing(self):
        table = {
            "rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["recall@1", "map@r"],
            "published": "SEC-T3",
        }  # fmt: skip
        compare = {"loss": ("triplet", "margin"), "regularizer": ("none", "sec"), "dataset": ("cub200",)}
        outcomes = sweeps.grid(compare, sweeps.spec(tables={"main": table}), state="queued")
        found = built(outcomes, numbers="published")
        cells = rows(found)
        assert [cell.text for cell in cells["Triplet", "SEC"]] == ["60.82", "–"]
        assert {cell.text for cell in cells["margin", "SEC"]} == {"–"}
        assert cells["Triplet", "SEC"][0].note == "as printed, regularizer.eta = 1.0"
        assert "those printed in SEC-T3" in found.caption
        assert "none is our own" in found.caption
        assert "seeds" not in found.caption
        assert found.file_stem.endswith("-published")
        assert found.caption.startswith("Four losses without regularizer")


METRICS = ["recall@1", {"metric": "map@r", "label": "mAP"}, "norm_var"]
ALL = {"arrows": True, "groups": "several", "lead": "contents"}


def laid_out(made=sweeps.digits, **layout):
    outcomes = made()
    tables = {"main": {**outcomes.spec["tables"]["main"], **layout}}
    return build_own(replace(outcomes, spec={**outcomes.spec, "tables": tables}), "main", sweeps.catalog())


def all_titles(table):
    return [column.title for column in table.panels[0].columns]


def test_arrows_say_which_way_each_metric_is_better():
    assert all_titles(laid_out(metrics=METRICS, arrows=True)) == ["R@1 ↑", "mAP ↑", "Norm var"]
    assert all_titles(laid_out(metrics=METRICS)) == ["R@1", "mAP", "Norm var"]
    delta = {"metric": "map@r", "delta": {"regularizer": "none"}, "label": "ΔMAP"}
    assert all_titles(laid_out(metrics=["recall@1", delta], arrows=True))[1] == "ΔMAP"
    said = {"metric": "map@r", "label": "MAP@R ↑"}
    assert all_titles(laid_out(metrics=[said], arrows=True)) == ["MAP@R ↑"]
    table = laid_out(metrics=METRICS, arrows=True)
    assert r"R@1 $\uparrow$" in render(table, "latex").content.decode()
    assert ">R@1 ↑<" in html.unescape(render(table, "html").content.decode())
    assert "↑" not in table.caption


def test_a_heading_over_all_columns_is_left_to_the_caption():
    alone = laid_out(groups="several")
    assert alone.panels[0].groups == ()
    assert len(laid_out().panels[0].groups) == 1
    assert r"\cmidrule" not in render(alone, "latex").content.decode()
    assert " on Digits" in alone.caption
    assert laid_out(groups="several", caption="Norms matter.").caption.startswith("Norms matter. All on Digits. Test")
    assert "All on" not in laid_out(caption="Norms matter.").caption


def test_a_caption_begins_with_what_is_shown():
    found = laid_out(metrics=METRICS, **ALL).caption
    assert found.startswith(
        "R@1, mAP and Norm var on Digits, by loss and regularizer (sec-on-digits). "
        "Test metrics, mean ± standard deviation over 3 seeds (0, 1, 2). "
    )
    assert laid_out(lead="contents", caption="Norms matter").caption.startswith("Norms matter. Test metrics")
