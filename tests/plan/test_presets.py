"""The presets in sweeps/: each is sound and has the size that its header and this file say."""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator.plan.check import check
from orchestrator.plan.edit import edited
from orchestrator.plan.grid import Plan, expand
from orchestrator.plan.read import spec_document
from orchestrator.plan.schema import json_schema
from orchestrator.publish.papers import completed_labels, load
from orchestrator.publish.tables import select
from orchestrator.spec.spec import Spec, applies
from tests.workers import published
from workers.catalog import Catalog, complete
from workers.contract import Recipe, Select

SWEEPS = Path(__file__).parents[2] / "sweeps"
FINGERPRINTS = Path(__file__).with_name("fingerprints.json")
DEMOS = {
    "demo", "digits", "omniglot", "cifar10_cpu", "cifar10_gpu", "cub100_cpu", "cub100_frozen", "cub100_losses",
    "cub200_backbones", "cub200_vit", "orl_faces",
}  # fmt: skip
"""Sweeps that show no table of a paper."""


UNPRINTED: dict[str, int] = {
    "sec_f4": 2, "sec_f6": 1,  # the second rate, and the fixed norm
    "sec_c1": 2, "sec_c2": 1, "sec_c3": 4,  # the other half of what the text's claims compare
    "sec_c4": 4,  # without MegaFace
    "sec_q1": 16, "sec_q3": 2, "sec_q4": 7,  # what reviewers ask for
    "svmax_t3": 6,  # those without a regularizer: the printed settings have them as lambda 0
    "svmax_f7": 8,  # MNIST's toy
    "isa_t2": 14,  # MLRC's rows, trained in Proxy-ISA's protocol
    "isa_f2": 1, "isa_f8": 1,  # normalized softmax
    "isa_f11": 1,  # Proxy-NCA at the weighted one's scale
    "isa_f9": 23, "isa_f10": 19,  # all but the values of the text and of the code
}  # fmt: skip
"""Trainings with a setting that no paper prints as a whole."""
UNCOMPARED = {"svmax_t5", "svmax_f3", "svmax_f5"}
"""Presets of tasks whose settings the shared folder does not have."""

EVERY = sorted({path.stem for path in SWEEPS.glob("*.yaml")} - DEMOS)
"""The presets, each of which has a quick variant."""
BOTH = [f"{folder}{name}" for name in EVERY for folder in ("", "quick/")]
FULL = [name for name in EVERY if name != "mlrc"]
"""The presets of the papers' tables and figures, which differ from what a paper did by an option."""


def text(name: str) -> str:
    return (SWEEPS / f"{name}.yaml").read_text(encoding="utf-8")


def header(name: str) -> str:
    """The comment that a file begins with, as one line."""
    lines = text(name).partition("\nversion:")[0].splitlines()
    assert all(line.startswith("#") for line in lines)
    return " ".join(" ".join(line.lstrip("#").split()) for line in lines)


@pytest.fixture(scope="module")
def plans() -> "Plans":
    from workers.catalog import load as catalog

    return Plans(catalog())


class Plans:
    """Each preset checked and expanded once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.of = cache(self._of)

    def _of(self, name: str) -> Plan:
        return expand(check(spec_document(text(name).encode()).value, self.catalog), self.catalog)


def test_every_preset_is_sound_and_plans_the_trainings_on_record(plans: Plans) -> None:
    """With other fingerprints, finished trainings would be repeated."""
    recorded = json.loads(FINGERPRINTS.read_text(encoding="utf-8"))
    files = {path.relative_to(SWEEPS).with_suffix("").as_posix() for path in SWEEPS.rglob("*.yaml")}
    assert files == {*BOTH, *DEMOS}
    wrong: list[Any] = []
    for name in {*BOTH, *recorded}:
        plan = plans.of(name)
        if plan.spec.search.adaptive:
            seen = [f"{number} {recipe.fingerprint}" for number, recipe in plan.outlines()]
        else:
            seen = [trial.fingerprint for trial in plan.trials()]
            wrong += [(name, "a training stands for two")] if len({*seen}) != plan.trial_count else []
        found = {"trainings": len(seen), "sha256": hashlib.sha256("\n".join(seen).encode()).hexdigest()}
        wrong += [(name, found)] if recorded.get(name) != found else []
    assert wrong == []


def test_headers_and_the_page_of_presets_have_the_size_of_each(plans: Plans) -> None:
    page = (SWEEPS.parent / "docs" / "presets.md").read_text(encoding="utf-8")
    wrong = []
    sizes = {}
    for name in BOTH:
        said, plan = header(name), plans.of(name)
        sizes[name] = (len(plan.cells), plan.candidate_count, plan.trial_count)
        words = ["What:", "Size:", "Run:", f"sweeps/{name}.yaml", "yaml-language-server: $schema="]
        words += ["Needs:"] if "/" not in name else []
        words += ["Open: "] if name in FULL else []
        wrong += [(name, word) for word in words if word not in said]
        for number, noun in ((len(plan.cells), "cells"), (plan.trial_count, "trials")):
            wrong += [] if re.search(rf"\b({number}|{number:,}) {noun}\b", said) else [(name, f"{number} {noun}")]
    for name in EVERY:
        both = r" \| ".join(" / ".join(map(str, sizes[one])) for one in (name, f"quick/{name}"))
        wrong += [] if re.search(rf"^\| `{name}` \|.*\| {both} \|$", page, re.MULTILINE) else [(name, both)]
    assert wrong == []


def test_presets_select_by_validation_or_give_a_reason_and_quick_variants_have_their_layout(plans: Plans) -> None:
    def layouts(spec: Spec) -> Any:
        tables = {key: (one.rows, one.columns, len(one.panels or ())) for key, one in spec.tables.items()}
        return tables, {key: (one.kind, one.data) for key, one in spec.figures.items()}

    wrong = []
    for name in EVERY:
        full = plans.of(name).spec
        honest = full.select.split == "validation" or "test split" in header(name)
        wrong += [] if name == "mlrc" or (honest and len(full.repeat["seed"][0].choices) >= 3) else [name]
        wrong += [] if full.tables or full.figures else [(name, "shows nothing")]
        wrong += [] if layouts(full) == layouts(plans.of(f"quick/{name}").spec) else [f"quick/{name}"]
    assert wrong == []


@pytest.mark.parametrize("name", ["sec_t3", "sec_t4", "sec_f5", "svmax_t5", "svmax_f5", "isa_t2"])
def test_the_habit_of_the_papers_is_an_option_away(plans: Plans, name: str) -> None:
    split = "last" if name == "svmax_t5" else "test"  # its one measure is taken at the end
    habit = edited(text(name).encode(), ["recipe.validation=none", f"select.split={split}"])
    assert (
        expand(check(spec_document(habit).value, plans.catalog), plans.catalog).trial_count
        == plans.of(name).trial_count
    )


def identity(recipe: Recipe, catalog: Catalog) -> str:
    """What a recipe trains, whatever its seed, what is drawn or measured of it, and what chooses its checkpoint."""
    rest = {"seed": 0, "figures": [], "metrics": [], "select": Select()}
    return complete(recipe.model_copy(update=rest), catalog).fingerprint


def test_settings_are_those_that_the_papers_print(plans: Plans, shared: Path) -> None:
    recipes = published.every(shared / "published").values()
    printed_settings = {identity(Recipe.model_validate(recipe), plans.catalog) for recipe in recipes}
    habit = ["recipe.validation=none", "select.split=test", "repeat.seed=[0]"]
    strange = {}
    for name in {*FULL} - UNCOMPARED:
        plan = expand(check(spec_document(edited(text(name).encode(), habit)).value, plans.catalog), plans.catalog)
        strange[name] = sum(identity(one.recipe, plans.catalog) not in printed_settings for one in plan.trials())
    assert {name: count for name, count in strange.items() if count} == UNPRINTED


CLUSTERED = {"nmi", "nmi@geometric", "nmi_sec", "f1", "f1_sec"}


def test_every_preset_measures_by_the_protocol_of_its_paper(plans: Plans) -> None:
    """Which clustering NMI and F1 are of, network, crop and distance: in tables, claims and trainings."""
    wrong = []
    for name in BOTH:
        plan = plans.of(name)
        paper = {"sec": "SEC-T3", "reb": "REB-T2", "svmax": "SVMax-T1", "isa": "ISA-T4"}.get(
            name.rpartition("/")[2].partition("_")[0]
        )
        if paper is None:  # MLRC's protocol, whose every number is one of faiss's clustering or of none
            continue
        firsts = [trial for trial in plan.trials() if not trial.repeat and not trial.candidate]
        shown = {f"claim: {metric}" for metric in re.findall(r"metric: \w+/(\S+)", header(name))}
        for key, table in plan.spec.tables.items():
            protocol = load(table.published or paper).protocol
            columns = {one if isinstance(one, str) else one.metric for one in table.metrics}
            shown |= {f"{key}: {column}" for column in columns}
            if table.published:
                expected = {m.removeprefix("delta:") for m in load(table.published).metrics}
                missing = {protocol.metric.get(one, one) for one in expected} - columns
                wrong += [f"{name}: {key} lacks {one}" for one in missing]
                for trial in firsts:
                    recipe = trial.recipe.model_dump(mode="json")
                    for path, label in protocol.recipe.items():
                        here = recipe.get(path)
                        if str(here.get("name") if isinstance(here, dict) else here) != label:
                            wrong.append(f"{name}: {key} has {path} {here}, the paper {label}")
        allowed = {load(paper).protocol.metric.get(one, one) for one in ("nmi", "f1")}
        wrong += [f"{name}: {one}" for one in shown if one.split(": ")[1] in CLUSTERED - allowed]
        raw = {trial.recipe.distance for trial in firsts} != {"cosine"}
        if raw is not name.endswith("svmax_t4"):
            wrong.append(f"{name}: ranks by {'the Euclidean distance' if raw else 'the cosine'}")
    assert sorted(set(wrong)) == []


def test_an_editor_has_nothing_to_mark() -> None:
    validator = jsonschema.Draft7Validator(json_schema())
    found = {
        name: [one.message for one in validator.iter_errors(spec_document(text(name).encode()).value)]
        for name in [*BOTH, *DEMOS]
    }
    assert {name: errors for name, errors in found.items() if errors} == {}


def test_mlrc_is_mlrcs_protocol(plans: Plans) -> None:
    plan = plans.of("mlrc")
    spec, outlines = plan.spec, list(plan.outlines())
    assert (spec.search.name, spec.search.trials, spec.search.reproduce) == ("gp", 50, 10)
    assert (spec.select.metric, spec.select.split, len(spec.repeat["seed"][0].choices)) == ("map@r", "validation", 1)
    folds = {getattr(recipe.validation, "folds", 1) for _, recipe in outlines}
    assert sum(trials for trials, _ in outlines) * folds.pop() == 4_320, "9 losses x 2 data sets x (50 + 10) x 4 models"
    assert not folds
    shapes = {(recipe.sampler.options["classes"], recipe.sampler.options["per_class"]) for _, recipe in outlines}
    assert shapes == {(8, 4), (32, 1)}
    for recipe in (recipe for _, recipe in outlines):
        assert (recipe.optimizer.name, recipe.optimizer.options["lr"], recipe.embedding) == ("rmsprop", 1e-6, 128)
        assert (recipe.evaluate_every, recipe.patience) == (200, 9)
    spans = [group.span for axis in spec.tune.values() for group in axis]
    assert not [span for span in spans if span is None or span.whole], "no range draws whole numbers only"
    assert {one.low * 1e-6 for one in spans[:1] if one} == {1e-6}
    assert {one.high * 1e-6 for one in spans[:1] if one} == {1.0}


def test_mlrc_is_compared_with_what_was_quoted_from_it(plans: Plans) -> None:
    plan = plans.of("mlrc")
    spec = plan.spec.model_dump(mode="json")
    table = load("ISA-T2")
    quoted = {cell.labels["loss"]: 0 for cell in plan.cells}
    for name in spec["tables"]:
        wanted = select.layout_of(spec, name)
        for cell in plan.cells:
            labels = completed_labels(spec, cell.labels, table, plans.catalog)
            columns = [
                column
                for column in wanted.metric_columns
                if applies(column.when, labels) and select.printed_number(table, labels, column.name)
            ]
            assert not any(column.separated for column in columns)
            quoted[cell.labels["loss"]] += len(columns) if wanted.published else 0
    own = {"searched proxy_anchor", "searched proxy_isa"}  # single models in the paper
    assert quoted == {loss: 0 if loss in own else 4 for loss in quoted}
