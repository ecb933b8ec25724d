"""Sound specs: what the JSON schema accepts, how they are stored, and the subset that `only` and `without` take."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import jsonschema
import pytest

from orchestrator.plan.check import check
from orchestrator.plan.edit import excerpt
from orchestrator.plan.grid import expand
from orchestrator.plan.read import NOWHERE, spec_document
from orchestrator.plan.schema import json_schema
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from tests.plan.conftest import DESIGN, DIGITS, Cases, Checked, Missed, Small, Told
from tests.plan.test_figure_layout import SOUND, line, with_figure
from tests.plan.test_layout import AXES, BOTH, table, with_table, with_wide
from workers.catalog import Catalog
from workers.contract import PART_FIELDS

SHOWN = ("compare", "tune", "rules", "slots", "select", "prune", "tables", "figures")
"""Of a stored spec; the recipe is shown by the tests of trials."""
MNIST = {"metric": "nmi", "when": {"dataset": "mnist"}}


def layouts(small: Small) -> dict[str, Any]:
    """Tables, with the descriptions of their metrics, labels and runs."""
    column = {"metric": "recall@1", "label": "R@1", "unit": "fraction", "decimals": 3}
    runs = {"spread": "ci95", "counts": "always", "against": {"regularizer": "none"}, "test": "wilcoxon"}
    judged = {"against": {"regularizer": "none"}, "margin": 0.5, "level": 0.05, "looks": "any", "marks": True}
    somewhere = [
        {"metric": "recall@1000", "when": {"dataset": "big"}},  # digits does not compute it
        {"metric": "nmi", "when": {"optimizer.lr": [0.01]}, "decimals": 1},
        {"metric": "nmi", "when": {"optimizer.lr": [1e-5]}, "decimals": 3},
    ]
    delta = {"metric": "nmi", "delta": {"optimizer.lr": 1e-5}, "signed": True}
    held = {"rows": [], "columns": ["dataset"], "metrics": [{"metric": "nmi", "when": {"dataset": "digits"}}],
            "labels": {"dataset": {"digits": "Digits!"}}}  # fmt: skip
    fixed = {"rows": ["loss", "optimizer"], "columns": ["dataset", "sampler.classes"]}
    labels = {
        "optimizer.lr": {"1e-2": "fast", "0.00001": 1e-05, "": "none"}, "regularizer.eta": {"1": "one"},
        "loss": {"triplet": "T (lr={optimizer.lr})"},
    }  # fmt: skip
    titles = {"loss": "Method", "optimizer.lr": None}
    labelled = with_wide(small, labels=labels, titles=titles, std={"decimals": 3, "unit": "fraction"})
    labelled["recipe"]["regularizer"] = "sec"
    sop = {"label": "SOP", "patch": {"dataset": "sop", "iterations": 12_000, "optimizer": {"lr": 0.1}}}
    axes = {
        "loss": ["triplet", {"name": "triplet", "margin": 0.2}, {"margin": 0.3}],
        "dataset": ["digits", sop], "regularizer": ["none", "svmax", "sec_ema"],
    }  # fmt: skip
    etas = [{"values": [1e-5, 1, 1.5], "when": {"regularizer": "svmax"}},
            {"values": [1], "when": {"regularizer": ["sec_ema"]}}]  # fmt: skip
    rho = {"values": [0.5], "when": {"regularizer": "sec_ema", "regularizer.eta": 1.0}}
    return {
        "axes of every form": small(compare=axes, tune={"regularizer.eta": etas, "regularizer.rho": rho}),
        "no tables": small(compare=AXES), "nothing is compared": small(), "held fixed": small(tables={"t": fixed}),
        "a metric of a form of its own": with_table(small, metrics=["nmi", column]),
        "runs": with_table(small, **runs), "verdicts": with_table(small, verdicts=judged),
        "a median": with_table(small, center="median", spread="std"),
        "against a number": with_wide(small, against={"optimizer.lr": 1e-5}),
        "metrics under some columns": with_wide(small, metrics=somewhere),
        "metrics where the recipe holds an axis": small(tables={"main": held}),
        "a difference": with_wide(small, metrics=["nmi", delta, {"metric": "nmi", "label": "again"}]),
        "labels and titles": labelled | {"tune": {"regularizer.eta": [0.5, 1.0]}},
        "published": with_wide(small, published="SEC-T3"),
        "both selections": table(small, selections=BOTH, selection_gap=True),
    }  # fmt: skip


def figures(small: Small) -> dict[str, Any]:
    """Figures of every kind."""
    spelt = line(labels={"optimizer.lr": {"1.0e-3": "low"}}, when={"optimizer.lr": [0.0010]})
    tuned = {"kind": "line", "metric": "nmi", "x": "optimizer.lr", "colour": "loss"}
    of_test = {"f": {"kind": "curves", "metric": "test/recall@1"}}
    return {
        **{f"figure {number}": with_figure(small, **figure) for number, figure in enumerate([*SOUND, spelt])},
        "a tune axis": small(compare={"loss": ["triplet", "semihard"]}, tune={"optimizer.lr": [1e-3, 1e-2]},
                             figures={"f": tuned}),
        "a curve of the test split": small(select={"metric": "map@r", "split": "test"}, figures=of_test),
    }  # fmt: skip


def subsets(small: Small, design: dict[str, Any]) -> dict[str, Any]:
    """What is left of rules, slots, tables and figures once a part of the trials is taken."""
    rules = [
        {"when": {"loss": ["semihard", "triplet"]}, "patch": {"iterations": 5}},
        {"when": {"regularizer": "svmax"}, "patch": {"embedding": 8}},
    ]
    slots = [{"when": {"regularizer.eta": [0.5, 0.001]}, "cpus": 2}, {"when": {"loss": "semihard"}, "cpus": 3}]
    two = design | {"compare": design["compare"] | {"dataset": ["digits", "mnist"]}}
    main = {
        "rows": ["loss", "regularizer"], "columns": ["dataset"], "against": {"regularizer": "none"},
        "panels": [{"dataset": ["digits"]}, {"dataset": ["mnist"]}], "bold": ["loss", "dataset"],
        "metrics": ["recall@1", MNIST | {"when": {"dataset": ["digits", "mnist"]}}, MNIST | {"metric": "f1"},
                    {"metric": "recall@1", "delta": {"regularizer": "l2"}, "label": "Δ"}],
        "verdicts": {"against": {"regularizer": "none"}, "margin": 1},
        "labels": {"dataset": {"mnist": "MNIST"}, "regularizer": {"l2": "L2", "sec": "SEC {regularizer.eta}"}},
    }  # fmt: skip
    other = {**ROWS, "columns": ["dataset"], "metrics": [MNIST]}
    eta = {"regularizer": ["none", "sec"], "regularizer.eta": [{"values": [0.5, 1.0], "when": {"regularizer": "sec"}}]}
    with_eta = {
        "rows": ["regularizer", "regularizer.eta"], "metrics": ["nmi"], "bold": ["regularizer.eta"],
        "titles": {"regularizer.eta": None, "regularizer": ""}, "labels": {"regularizer": {"sec": "{regularizer.eta}"}},
    }  # fmt: skip
    drawn = {
        "bars": {"kind": "bars", "metric": "nmi", "x": "regularizer", "colour": "regularizer.eta"},
        "line": {"kind": "line", "metric": "nmi", "x": "regularizer.eta", "colour": "regularizer"},
        "some": {"kind": "bars", "metric": "nmi", "x": "regularizer.eta", "when": {"regularizer": "sec"}},
    }
    none = {"only": {"regularizer": "none"}}
    return {
        "rules and slots": design | {"rules": rules, "slots": slots,
                                     "only": {"loss": "triplet", "regularizer": ["none", "sec"]}},
        "tables": two | {"tables": {"main": main, "other": other}, "only": {"dataset": "digits"},
                         "without": {"regularizer": "l2"}},
        "an axis that no trial has": small(compare=eta, tables={"main": with_eta}, figures=drawn) | none,
        "the baseline alone": design | {"tables": {"main": {**ROWS, "against": {"regularizer": "none"}}}} | none,
        "no table": two | {"tables": {"only-mnist": other}, "without": {"dataset": "mnist"}},
        "nothing competes": design | {"prune": "median"} | none,
        "candidates compete": design | {"prune": "median", "only": {"regularizer": "sec"}},
    }  # fmt: skip


def test_stored_specs_equal_their_golden_files(
    small: Small, design: Any, catalog: Catalog, golden: Callable[[str, bytes], None]
) -> None:
    validator = jsonschema.Draft7Validator(json_schema(catalog))
    for name, documents in {
        "layouts": layouts(small), "figures": figures(small), "subsets": subsets(small, design),
    }.items():  # fmt: skip
        told = []
        for title, document in documents.items():
            notes: list[str] = []
            spec = check(document, catalog, notes)
            stored = spec.model_dump(mode="json")
            assert Spec.model_validate(stored) == spec, title
            validator.validate(document)
            kept = {key: stored[key] for key in SHOWN if stored.get(key)}
            told += [f"===== {title}", *notes, json.dumps(kept, indent=1, ensure_ascii=False)]
        golden(f"{name}.txt", "\n".join([*told, ""]).encode())


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def test_every_form_of_the_grammar_satisfies_the_schema(validator: Any) -> None:
    """The test of the golden files validates further forms."""
    cases: list[tuple[str, Any]] = [
        ("compare", {"Method": [{"label": "A", "patch": {"loss": "triplet", "iterations": 5}}]}),
        ("tune", {"optimizer.lr": {"values": [1e-3], "when": {"loss": "triplet"}}}),
        ("repeat", {"validation.fold": [0, 1]}),
        ("rules", [{"when": {"loss": ["triplet"]}, "patch": {"optimizer": {"lr": 0.1}}}]),
        ("tables", {"t": {"rows": ["loss"], "bold": "none", "metrics": ["nmi", {"metric": "f1", "decimals": 1}]}}),
        ("tables", {"t": {"published": "SEC-T3", "missing": "-", "diverged": "degenerate"}}),
        ("compare", {"backbone": [{"name": "frozen", "of": {"name": "resnet18", "pretrained": True}}]}),
        ("compare", {"backbone.of": ["resnet18", {"label": "50", "patch": {"backbone.of": {"name": "resnet50"}}}]}),
        ("slot", {"cpus": 1, "gpus": 0.5}),
        ("search", "grid"),
    ]
    assert [one for one in cases if not validator.is_valid({**spec_document(DESIGN).value, one[0]: one[1]})] == []


def test_wrong_specs_do_not(validator: Any) -> None:
    cases: list[tuple[str, Any]] = [
        ("version", 2), ("name", ""), ("prune", True), ("recipe.losss", "triplet"), ("recipe.backbone", "resnet"),
        ("recipe.backbone", {"name": "small_cnn", "wdith": 3}),
        ("recipe.backbone", {"name": "small_cnn", "width": "wide"}), ("recipe.backbone", {"name": "frozen"}),
        ("recipe.backbone", {"name": "frozen", "of": "resnet"}),
        ("recipe.backbone", {"name": "frozen", "of": {"name": "frozen", "of": "resnet18"}}),
        ("recipe.backbone", {"name": "frozen", "of": {"name": "resnet18", "wdith": 3}}), ("recipe.iterations", 0),
        ("recipe.select", {"metric": "nmi"}), ("compare.loss", []), ("compare.loss", ["proxy_ancor"]),
        ("compare.los", ["triplet"]), ("tune.regularizer.eta", {"low": 0.1}), ("rules", [{"patch": {"iterations": 1}}]),
        ("select", {"split": "train"}), ("slot", {"gpu": 1}), ("search", {"name": "tpee"}),
        ("tables", {"a b": {"metrics": ["nmi"]}}), ("tables", {"a": {"row": ["loss"]}}),
    ]  # fmt: skip
    for path, value in cases:
        document = deepcopy(spec_document(DESIGN).value)
        block, dot, field = path.partition(".")
        if dot:
            document[block][field] = value
        else:
            document[block] = value
        assert not validator.is_valid(document), (path, value)


def test_every_part_is_offered(catalog: Catalog) -> None:
    definitions = json_schema(catalog)["definitions"]
    for kind in PART_FIELDS:
        assert definitions[f"value-{kind}"]["anyOf"][0] == {"enum": catalog.names(kind)}


def test_the_demo_is_that_of_the_readme(catalog: Catalog) -> None:
    spec = check(spec_document(DIGITS.read_bytes()).value, catalog)
    plan = expand(spec, catalog)
    assert (len(plan.cells), len(plan.candidates), plan.trial_count) == (16, 40, 200)
    assert {tuple(cell.labels) for cell in plan.cells} == {("loss", "regularizer")}
    etas = [[one.labels["regularizer.eta"] for one in plan.candidates if one.cell == cell] for cell in (1, 2, 3)]
    assert etas == [["0.01", "0.001", "0.0001"], ["0.25", "0.5", "1.0"], ["0.1", "0.5", "1.0"]]
    table = spec.tables["main"]
    assert (table.rows, table.columns) == (["loss", "regularizer"], ["dataset"])
    names = [getattr(column, "metric", column) for column in table.metrics]
    assert names == ["nmi", "recall@1", "map@r", "norm_var", "s_mu"], "and what regularizers act on"
    recipes = [trial.recipe for trial in plan.trials()]
    assert {recipe.evaluate_every == recipe.iterations for recipe in recipes} == {True}, "the last weights"
    assert {recipe.select.split for recipe in recipes} == {"validation"}, "which chooses eta"
    assert b"# yaml-language-server: $schema=" in DIGITS.read_bytes()


ROWS = {"rows": ["loss", "regularizer"], "metrics": ["recall@1"]}


def planned(spec: Spec, catalog: Catalog) -> list[tuple[dict[str, str], str]]:
    """The labels and the fingerprint of every trial, in order."""
    plan = expand(spec, catalog)
    cells = {one.index: one.labels for one in plan.cells}
    candidates = {(one.cell, one.index): one.labels for one in plan.candidates}
    assert plan.trial_count == sum(1 for _ in plan.trials())
    return [
        ({**cells[one.cell], **candidates[one.cell, one.candidate], **one.repeat_labels}, one.fingerprint)
        for one in plan.trials()
    ]


def test_it_takes_exactly_the_trials_with_these_labels(design: Any, catalog: Catalog) -> None:
    everything = planned(check(design, catalog), catalog)
    for only, without, trials in (
        ({"loss": "triplet"}, {}, 30), ({"loss": ["triplet", "semihard"], "regularizer": "sec"}, {}, 18),
        ({"seed": [0, 1]}, {}, 80), ({"regularizer.eta": ["", 0.001]}, {}, 24), ({"regularizer.eta": ""}, {}, 12),
        ({"regularizer.eta": 0.5}, {}, 24),  # cells without an eta, and those of L2-reg, have none of 0.5
        ({}, {"regularizer.eta": 0.5}, 96),  # the cells without an eta stay
        ({}, {"regularizer.eta": [1e-2, 1e-3, 1e-4]}, 84),  # those of L2-reg do not become such
        ({}, {"regularizer.eta": ""}, 108), ({}, {"loss": "triplet", "seed": 2}, 60),
        ({"regularizer": ["l2", "sec"]}, {"regularizer.eta": [0.25, 0.01, 1e-4]}, 36),
    ):  # fmt: skip
        spec = check(design | {key: given for key, given in (("only", only), ("without", without)) if given}, catalog)
        expected = [
            one
            for one in everything
            if all(one[0].get(axis, NOWHERE) in wanted for axis, wanted in spec.only.items())
            and not any(one[0].get(axis, NOWHERE) in unwanted for axis, unwanted in spec.without.items())
        ]
        assert planned(spec, catalog) == expected
        assert len(expected) == trials, (only, without)
        assert Spec.model_validate(spec.model_dump(mode="json")) == spec, "as it is stored"


def test_labels_stay_though_their_namesakes_go(small: Small, checked: Checked, catalog: Catalog) -> None:
    whole = small(compare={"loss": [{"name": "triplet", "margin": 0.2}, {"name": "triplet", "margin": 0.4}]})
    spec = checked(whole | {"only": {"loss": "triplet margin=0.2"}})
    assert planned(spec, catalog) == planned(checked(whole), catalog)[:1]


def test_what_matches_nothing_is_refused(design: Any, missed: Missed) -> None:
    cases: Cases = [
        ({"only": "loss"}, "only", "expected a mapping from an axis to one or several"),
        ({"only": {}}, "only", "expected a mapping from an axis to one or several"),
        ({"only": {"los": "triplet"}}, "only.los", "there is no axis 'los'; did you mean 'loss'? the axes are 'loss"),
        ({"without": {"zzz": 1}}, "without.zzz", "there is no axis 'zzz'; the axes are 'loss', 'regularizer', "),
        ({"only": {"dataset": "digits"}}, "only.dataset", "'dataset' is no axis: the recipe holds 'digits' for all"),
        ({"only": {"loss": "tripplet"}}, "only.loss", "axis 'loss' has no alternative 'tripplet'; did you mean"),
        ({"only": {"loss": ["triplet", "x9"]}}, "only.loss", "axis 'loss' has no alternative 'x9'; it has 'triplet', "),
        ({"only": {"loss": []}}, "only.loss", "expected a label or a list of labels, found []"),
        ({"only": {"loss": "triplet"}, "without": {"loss": "triplet"}}, "only",
         "no trial is left: only loss 'triplet', without loss 'triplet'"),
        ({"only": {"regularizer": "none", "regularizer.eta": 0.5}}, "only", "no trial is left"),
        ({"without": {"seed": [0, 1, 2]}}, "without", "no trial is left: without seed '0' or '1' or '2'"),
    ]  # fmt: skip
    assert missed((design | part, path, said) for part, path, said in cases) == []


def test_candidates_that_others_would_follow_are_refused(small: Small, told: Told) -> None:
    tune = {"optimizer.lr": [0.1, 0.2]}
    searched = small(compare={"loss": ["triplet"]}, tune=tune, search={"name": "tpe", "trials": 2})
    assert told(searched | {"only": {"optimizer.lr": 0.1}}) == [
        ("only.optimizer.lr", "search 'tpe' draws from 'optimizer.lr'; change the axis itself")
    ]
    filled = small(tune=tune, **{"select.budget": 4})
    assert "fill the cells up again" in told(filled | {"without": {"optimizer.lr": 0.1}})[0][1]


def test_an_adaptive_search_keeps_the_candidates_of_its_cells(small: Small, checked: Checked, catalog: Catalog) -> None:
    tune = {
        "optimizer.lr": {"low": 1e-4, "high": 1e-1},
        "loss.margin": {"low": 0.1, "high": 1, "when": {"loss": "triplet"}},
    }
    whole = small(compare={"loss": ["triplet", "tuplet"]}, tune=tune, search={"name": "tpe", "trials": 5})
    whole["recipe"].pop("loss")
    spec = checked(whole | {"only": {"loss": "tuplet"}})
    assert expand(spec, catalog).trial_count == 5
    assert list(spec.tune) == ["optimizer.lr"]


def test_a_subset_of_what_is_too_much_is_too_much(small: Small, told: Told) -> None:
    """What no trial is left of is found by looking at all of them, so that these must not be too many."""
    many = small(compare={axis: [{"label": at, "patch": {"seed": at}} for at in range(100)] for axis in "abc"})
    assert ("", "the spec asks for 1,000,000 trials; at most 100,000 are allowed") in told(many | {"only": {"a": 1}})


def test_options_are_written_into_the_text() -> None:
    found = excerpt(DESIGN, ["loss=triplet, semihard", "regularizer.eta=1e-3,0.50"], ["seed=2"])
    assert found.startswith(DESIGN.rstrip())
    assert found[len(DESIGN.rstrip()) :].decode().strip().splitlines() == [
        'only: {"loss": ["triplet", "semihard"], "regularizer.eta": [0.001, 0.5]}',
        'without: {"seed": [2]}',
    ]
    assert excerpt(DESIGN, [], []) == DESIGN
    assert excerpt(b"[1]", ["loss=triplet"], []) == b"[1]", "the check refuses it"


def test_an_option_replaces_an_only_and_widens_a_without() -> None:
    text = DESIGN + b"only: {loss: [triplet, semihard], seed: 0}\nwithout: {regularizer: l2}\n"
    found = spec_document(excerpt(text, ["loss=triplet", "loss=semihard"], ["regularizer=sec"])).value
    assert found["only"] == {"loss": ["triplet", "semihard"], "seed": 0}
    assert found["without"] == {"regularizer": ["l2", "sec"]}


def test_labels_may_hold_commas_and_spaces(small: Small) -> None:
    losses = [{"name": "triplet", "margin": 0.2, "squared": True}, {"name": "triplet", "margin": 0.3}, "semihard"]
    text = json.dumps(small(compare={"loss": losses})).encode()
    found = spec_document(
        excerpt(text, ["loss=semihard,triplet margin=0.2, squared=true,triplet margin=0.3"], [])
    ).value
    assert found["only"] == {"loss": ["semihard", "triplet margin=0.2, squared=true", "triplet margin=0.3"]}


def test_wrong_options_are_refused_by_their_name() -> None:
    cases = [
        ("loss", "expected AXIS=LABEL,LABEL"), ("=triplet", "expected AXIS=LABEL,LABEL"),
        ("loss=tripplet", "did you mean 'triplet'? it has 'triplet', 'semihard'"),
        ("los=triplet", "did you mean 'loss'? the axes are"), ("embedding=64", "the recipe holds '64' for all trials"),
    ]  # fmt: skip
    for option, message in cases:
        for way in ("only", "without"):
            with pytest.raises(InvalidSpecError) as refused:
                excerpt(DESIGN, [option] if way == "only" else [], [option] if way == "without" else [])
            assert refused.value.problems[0].path == f"--{way} {option}"
            assert message in refused.value.problems[0].message
