"""`only` and `without`: the subset of a spec that is taken, what is said of it, and what goes with the rest."""

import json
from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.plan.edit import excerpt
from orchestrator.plan.grid import expand
from orchestrator.plan.parse import NOWHERE
from orchestrator.plan.yaml import parse
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from tests.plan.conftest import DESIGN, Cases, Checked, Missed, Small, Told
from workers.catalog import Catalog

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
        ({"only": "loss"}, "only", "expected a mapping from axes to their labels"),
        ({"only": {}}, "only", "expected a mapping from axes to their labels"),
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
    found = parse(excerpt(text, ["loss=triplet", "loss=semihard"], ["regularizer=sec"]))
    assert found["only"] == {"loss": ["triplet", "semihard"], "seed": 0}
    assert found["without"] == {"regularizer": ["l2", "sec"]}


def test_labels_may_hold_commas_and_spaces(small: Small) -> None:
    losses = [{"name": "triplet", "margin": 0.2, "squared": True}, {"name": "triplet", "margin": 0.3}, "semihard"]
    text = json.dumps(small(compare={"loss": losses})).encode()
    found = parse(excerpt(text, ["loss=semihard,triplet margin=0.2, squared=true,triplet margin=0.3"], []))
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
