from typing import Any

from tests.plan.conftest import Cases, Missed, Small, Told

AXES = {"loss": ["triplet", "semihard"], "regularizer": ["none", "l2"], "dataset": ["digits"]}


def with_table(small: Small, **table: Any) -> dict[str, Any]:
    return small(compare=AXES, tables={"main": {"rows": ["loss", "regularizer"], "metrics": ["nmi"]} | table})


WIDE = {
    "loss": ["triplet", "semihard"],
    "dataset": ["digits", {"label": "big", "patch": {"dataset": "sop"}}],
    "optimizer.lr": [0.01, 1e-5],
}


def test_facts_about_runs_are_checked(small: Small, missed: Missed) -> None:
    cases: Cases = [
        ({"spread": "sem"}, "spread", "expected 'std', 'se', 'ci95' or 'none', found 'sem'"),
        ({"spread": "se", "std": False}, "spread", "`std: false` prints no spread, and this asks for 'se'"),
        ({"spread": "ci95", "center": "best"}, "spread", "'ci95' is that of a mean, and `center` is 'best'"),
        ({"center": "mode"}, "center", "expected 'mean', 'median' or 'best', found 'mode'"),
        ({"against": {"regularizr": "none"}}, "against.regularizr", "there is no compare axis 'regularizr'; did"),
        ({"against": {"regularizer": "nne"}}, "against.regularizer", "axis 'regularizer' has no alternative 'nne'"),
        ({"against": {"regularizer": ["none", "l2"]}}, "against.regularizer", "expected one label, found 'none', 'l2'"),
        ({"against": {}}, "against", "expected a mapping from an axis"),
        ({"verdicts": "sec"}, "verdicts", "expected"),
        ({"verdicts": {"against": {"regularizr": "none"}}}, "verdicts.against.regularizr", "there is no compare axis"),
        ({"verdicts": {"of": {"loss": "x"}}}, "verdicts.of.loss", "axis 'loss' has no alternative 'x'"),
        ({"verdicts": {"margin": 0}}, "verdicts.margin", "expected more than 0, found 0"),
        ({"verdicts": {"level": 0.5}}, "verdicts.level", "expected at most 0.2, found 0.5"),
        ({"verdicts": {"looks": "never"}}, "verdicts.looks", "expected 'planned' or 'any', found 'never'"),
        ({"verdicts": {"metrics": ["recal@1"]}}, "verdicts.metrics[0]", "'recal@1' is no metric of the table"),
        ({"verdicts": {"agianst": {}}}, "verdicts.agianst", "there is no key 'agianst' here; did you mean 'against'?"),
        ({"test": "anova"}, "test", "expected 't' or 'wilcoxon', found 'anova'"),
    ]
    assert missed((with_table(small, **table), f"tables.main.{path}", said) for table, path, said in cases) == []


def nmi(**column: Any) -> dict[str, Any]:
    return {"metrics": [{"metric": "nmi", **column}]}


def quoted(**row: Any) -> dict[str, Any]:
    return {"published": "SVMax-T5", "quoted": [{"label": "J", **row}]}


def with_wide(small: Small, **table: Any) -> dict[str, Any]:
    columns = ["dataset", "optimizer.lr"]
    return small(compare=WIDE, tables={"main": {"rows": ["loss"], "columns": columns, "metrics": ["nmi"]} | table})


def test_says_what_is_wrong_with_what_is_printed(small: Small, missed: Missed) -> None:
    cases: Cases = [
        (nmi(when={"loss": "triplet"}), "metrics[0].when.loss", "'loss' is no axis of the columns"),
        (nmi(when={"dataset": "bg"}), "metrics[0].when.dataset", "axis 'dataset' has no"),
        (nmi(when={}), "metrics[0].when", "expected a mapping from an axis"),
        (nmi(when="big"), "metrics[0].when", "expected a mapping from an axis"),
        (nmi(delta={"los": "x"}), "metrics[0].delta.los", "there is no compare axis 'los'; did"),
        (nmi(delta={"loss": "x"}), "metrics[0].delta.loss", "axis 'loss' has no alternative 'x'"),
        (nmi(delta={"loss": WIDE["loss"]}), "metrics[0].delta.loss", "expected one label, found 'triplet', 'semihard'"),
        ({"metrics": [{"metric": "recall@1000"}]}, "metrics[0]", "dataset 'digits' does not compute 'recall@1000'"),
        (
            {"metrics": [{"metric": "recall@1000", "when": {"dataset": "digits"}}]}, "metrics[0]",
            "dataset 'digits' does not compute 'recall@1000'",
        ),
        (nmi(split="train"), "metrics[0].split", "'nmi' is not computed of training images"),
        (
            nmi(split="test_separated"), "metrics[0].split",
            "'test_separated' is the mean over the models of a cross-validation; add `validation",
        ),
        ({"metrics": ["nmi", {"metric": "nmi", "when": {"dataset": "big"}}]}, "metrics[1]", "'nmi' stands twice"),
        ({"labels": {"los": {"triplet": "T"}}}, "labels.los", "'los' is no axis of this table; did you mean 'loss'?"),
        ({"labels": {"loss": {"triplett": "T"}}}, "labels.loss.triplett", "axis 'loss' has no alternative"),
        ({"labels": {"loss": {"triplet": ["T"]}}}, "labels.loss.triplet", 'expected a text, found ["T"]'),
        ({"labels": {"loss": "T"}}, "labels.loss", "expected a mapping, found 'T'"),
        ({"labels": {"loss": {"triplet": "{los}"}}}, "labels", "no cell has a label for '{los}'; did you mean"),
        ({"titles": {"los": "T"}}, "titles.los", "'los' is no axis of this table; did you mean 'loss'?"),
        ({"titles": {"loss": 3}}, "titles.loss", "expected a text, found 3"),
        ({"std": "yes"}, "std", "expected true, false or a mapping"),
        ({"diverged": ""}, "diverged", "expected at least one character"),
        ({"published": "SEC-T33"}, "published", "there is no published table 'SEC-T33'; did you mean"),
        ({"quoted": [{"of": {"loss": "x"}, "label": "J"}]}, "quoted", "quotes a printed table; name it by `publish"),
        (quoted(of={"loss": "jigsow"}), "quoted[0].of.loss", "SVMax-T5 has no line 'jigsow'; did you mean"),
        (quoted(of={"sampler": "x"}), "quoted[0].of.sampler", "SVMax-T5 has no line 'x'; it has no such axis"),
        (quoted(of={}), "quoted[0].of", "expected a mapping from an axis to"),
        (quoted(of={"loss": "jigsaw"}, label=None), "quoted[0].label", "expected a text, found null"),
        (quoted(of={"loss": "jigsaw"}, bolt=1), "quoted[0].bolt", "there is no key 'bolt' here; did you mean 'bold'?"),
    ]  # fmt: skip
    assert missed((with_wide(small, **table), f"tables.main.{path}", said) for table, path, said in cases) == []


def test_says_what_is_wrong_and_where(small: Small, missed: Missed) -> None:
    cases: Cases = [
        ({"row": []}, ".row", "there is no key 'row' here; did you mean 'rows'?"),
        ({"rows": "loss"}, ".rows", "expected a list, found 'loss'"),
        ({"rows": ["loss"]}, "", "the compare axis 'regularizer' stands neither in rows nor in columns"),
        ({"columns": ["loss"]}, ".columns[0]", "'loss' stands twice"),
        ({"columns": ["seed"]}, ".columns[0]", "there is no compare axis 'seed'; expected one of"),
        ({"columns": ["datset"]}, ".columns[0]", "there is no compare axis 'datset'; did you mean 'dataset'?"),
        ({"columns": ["embeding"]}, ".columns[0]", "there is no compare axis 'embeding'; expected one of 'loss'"),
        ({"metrics": []}, ".metrics", "expected a list of at least one metric, found []"),
        ({"metrics": ["nmi", "nmi"]}, ".metrics[1]", "'nmi' stands twice"),
        ({"metrics": ["recall"]}, ".metrics[0]", ""),
        ({"metrics": ["recall@16"]}, ".metrics[0]", "dataset 'digits' does not compute 'recall@16'; did you mean"),
        ({"metrics": ["nmj"]}, ".metrics[0]", "no metric named 'nmj'; did you mean 'nmi'?"),
        ({"metrics": [3]}, ".metrics[0]", "expected a metric, or a mapping with `metric`, found 3"),
        ({"metrics": [{"label": "x"}]}, ".metrics[0].metric", "is missing"),
        ({"metrics": [{"metric": "nmi", "unit": "cm"}]}, ".metrics[0].unit", "expected 'percent', 'fraction' or"),
        ({"decimals": 7}, ".decimals", "expected at most 6, found 7"),
        ({"bold": ["los"]}, ".bold[0]", "'los' is neither in rows nor in columns; did you mean 'loss'?"),
        ({"bold": "loss"}, ".bold", "expected 'none' or a list of axes"),
        ({"panels": [{"loss": ["triplet"]}]}, ".panels[0].loss", "'loss' is no compare axis in the columns"),
        (
            {"rows": ["loss"], "columns": ["regularizer"], "panels": [{"regularizer": ["non"]}]},
            ".panels[0].regularizer",
            "axis 'regularizer' has no alternative 'non'; did you mean 'none'?",
        ),
    ]
    assert missed((with_table(small, **table), f"tables.main{path}", said) for table, path, said in cases) == []


def test_tune_and_repeat_axes_are_no_rows(small: Small, told: Told) -> None:
    document = small(
        compare={"loss": ["triplet"]}, tune={"embedding": [8, 16]}, repeat={"seed": [0, 1]},
        tables={"t": {"rows": ["loss", "embedding"], "columns": ["seed"], "metrics": ["nmi"]}},
    )  # fmt: skip
    assert told(document) == [
        ("tables.t.rows[1]", "'embedding' is a tune axis; rows and columns are compare axes: 'loss'"),
        ("tables.t.columns[0]", "'seed' is a repeat axis; rows and columns are compare axes: 'loss'"),
    ]


def test_names_of_tables_fit_addresses_and_files(small: Small, told: Told) -> None:
    ((path, message),) = told(small(tables={"a/b": {"metrics": ["nmi"]}}))
    assert path == "tables.a/b"
    assert message.startswith("expected a name of 1 to 64 letters")


BOTH = ["validation", "test"]


def table(small: Small, **given: Any) -> dict[str, Any]:
    select = given.pop("select", {"beside": "test"})
    return small(select=select, tables={"main": {"metrics": ["map@r"], **given}})


def test_errors_of_selections_are_reported(small: Small, missed: Missed) -> None:
    cases: Cases = [
        ({"selections": BOTH, "select": {}}, "selections", "needs `select: {beside: test}`: trainings keep what"),
        ({"selections": ["test"], "select": {}}, "selections", "needs `select: {beside: test}`: trainings keep what"),
        ({"selections": ["test", "test"]}, "selections", "expected each split once, found 'test', 'test'"),
        ({"selections": ["train"]}, "selections[0]", "expected 'validation' or 'test', found 'train'"),
        ({"selections": "test"}, "selections", "expected a list, found 'test'"),
        ({"selection_gap": True}, "selection_gap", "compares the two of `selections: [validation, test]`; add that"),
        ({"selections": ["test"], "selection_gap": True}, "selection_gap", "compares the two of"),
        ({"selections": BOTH, "selection_gap": 1}, "selection_gap", "expected true or false, found 1"),
        (
            {"selections": BOTH, "metrics": ["nmi", {"metric": "norm_var", "split": "train"}]},
            "metrics[1].split",
            "both `selections` have test metrics only, found 'train'",
        ),
    ]
    assert missed((table(small, **given), f"tables.main.{path}", said) for given, path, said in cases) == []
