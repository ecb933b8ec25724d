from dataclasses import replace

from orchestrator.publish.labels import axis_title, choice_label, metric_title
from orchestrator.publish.tables import compare
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.caption import budget
from tests.publish import sweeps
from workers.catalog import load


def caption(outcomes, **show):
    return build_own(outcomes, "main", sweeps.catalog(), **show).caption


def test_it_says_what_a_reader_needs_to_trust_the_numbers():
    assert caption(sweeps.digits()) == (
        "sec-on-digits: Loss × Regularizer on Digits. Test metrics, mean ± standard deviation over 3 seeds (0, 1, 2). "
        "NMI, F1, R@1 and MAP@R in percent. Best checkpoint of each training and best candidate of each cell chosen by "
        "MAP@R on the validation split. Selection budget: 1 candidate for None; 3 for L2, SEC, SVMax. "
        "Bold: best mean per loss."
    )


def test_a_caption_of_ones_own_keeps_the_facts():
    table = {**sweeps.digits().spec["tables"]["main"], "caption": "Norms matter"}
    found = caption(sweeps.digits(tables={"main": table}))
    assert found.startswith("Norms matter. Test metrics, mean ± standard deviation over 3 seeds")
    assert "Selection budget" in found


FROZEN = {"name": "frozen", "of": {"name": "mobilenet_v2", "weights": "w.pt"}}


def test_a_frozen_backbone_is_said():
    given = sweeps.digits()
    outcomes = replace(given, spec={**given.spec, "recipe": {**given.spec["recipe"], "backbone": FROZEN}})
    said = "The backbone is frozen: head and loss are trained on features of MobileNetV2."
    assert said in build_own(outcomes, "main", load()).caption
    assert "frozen" not in build_own(given, "main", load()).caption
    rules = [{"when": {"loss": ["triplet"], "regularizer": ["sec"]}, "patch": {"backbone": FROZEN}}]
    found = build_own(replace(given, spec={**given.spec, "rules": rules}), "main", load()).caption
    assert "In Triplet / SEC the backbone is frozen: head and loss are trained on features of MobileNetV2." in found


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
        return compare.merged(several, "main", load()).caption

    told = "The backbone is frozen: head and loss are trained on features of MobileNetV2."
    assert told in caption(FROZEN, FROZEN)
    assert told not in caption(FROZEN, {"name": "small_cnn"})
    found = caption(FROZEN, {"name": "small_cnn"}, rows=["loss", "regularizer"])
    assert told not in found
    assert "The sweeps also differ in backbone (1: frozen, 2: small_cnn)" in found
    found = caption(FROZEN, {**FROZEN, "of": {"name": "resnet18", "weights": "w.pt"}})
    assert told not in found
    assert "The sweeps also differ in backbone.of (1: mobilenet_v2, 2: resnet18)" in found


def test_columns_of_a_metric_by_a_rule_of_its_own_say_so():
    table = sweeps.digits().spec["tables"]["main"]
    metrics = ["recall@1", "recall_sec@1", {"metric": "recall_sec@2", "label": "R@2"}]
    outcomes = sweeps.digits(tables={"main": {**table, "metrics": metrics}})
    said = "SEC R@1 and R@2 by the rule of SEC's code, where a tie is a hit."
    assert said in build_own(outcomes, "main", load()).caption
    plain = sweeps.digits(tables={"main": {**table, "metrics": ["recall@1"]}})
    assert "rule" not in build_own(plain, "main", load()).caption


def test_it_says_by_which_clustering_nmi_and_f1_are():
    def said(*metrics):
        table = {**sweeps.digits().spec["tables"]["main"], "metrics": list(metrics)}
        return build_own(sweeps.digits(tables={"main": table}), "main", load()).caption

    faiss = "NMI and F1 of clusters by faiss's k-means (one random start, 20 iterations)."
    sec = "NMI and F1 of clusters by k-means as in SEC's code (k-means++, the tightest of 10 starts)."
    assert faiss in said("nmi", "recall@1", "f1")
    assert sec in said("nmi_sec", "f1_sec", "recall@1")
    assert "faiss" not in said("nmi_sec", "f1_sec", "recall@1")
    assert "clusters" not in said("recall@1")


def test_selection_on_test_is_said_loudly():
    assert "Selected on the TEST split" in caption(sweeps.digits(select={"metric": "map@r", "split": "test"}))


def test_so_is_a_choice_of_candidates_by_their_last_test_metric():
    outcomes = sweeps.digits(select={"metric": "map@r", "split": "last"})
    assert "Candidates selected on the TEST split" in caption(outcomes)
    assert "Last checkpoint of each training" in caption(outcomes)
    spec = sweeps.spec(select={"metric": "map@r", "split": "last"})
    nothing_tuned = sweeps.grid({"loss": ("triplet",)}, spec)
    assert "TEST" not in caption(nothing_tuned)


def test_an_incomplete_table_says_so():
    assert "Incomplete: 16 of 18 cells are finished." in caption(sweeps.rich())
    assert "Incomplete" not in caption(sweeps.digits())


def test_candidates_that_were_not_eligible_are_noted():
    notes = build_own(sweeps.rich(), "main", sweeps.catalog()).notes
    assert len(notes) == 1
    assert "Omniglot / Semihard triplet / SEC" in notes[0]


def test_early_stopping_is_said_with_its_rule_and_is_no_exception():
    def fate(labels, candidate, repeat):
        return "pruned" if labels["regularizer"] == "sec" and candidate == 1 and repeat else "ok"

    compare = {"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}
    table = build_own(sweeps.grid(compare, sweeps.spec(prune={"name": "asha"}), fate=fate), "main", sweeps.catalog())
    assert "Hopeless candidates stopped early by asynchronous successive halving, judged by MAP@R on the validation " \
        "split: 2 of 8." in table.caption  # fmt: skip
    assert table.notes == ()
    assert "Incomplete" not in table.caption
    tested = sweeps.spec(prune={"name": "asha"}, select={"metric": "map@r", "split": "last"})
    assert "judged by MAP@R on the TEST split" in caption(sweeps.grid(compare, tested))


def test_unequal_numbers_of_repeats_are_said():
    outcomes = sweeps.digits()
    fewer = tuple(one for one in outcomes.trials if not (one.cell == 0 and one.repeat == 2))
    found = caption(replace(outcomes, trials=fewer))
    assert "unequal numbers of repeats: n = 3 in 15 cells; n = 2 in Triplet / None." in found


def test_one_seed_has_no_deviation_to_speak_of():
    spec = sweeps.spec()
    found = caption(sweeps.grid({"loss": ("triplet", "semihard")}, spec, seeds=1))
    assert "Test metrics of a single run (seed 0)." in found
    assert "±" not in found
    assert "Selection budget" not in found


def test_without_deviations_only_the_mean_is_named():
    table = {**sweeps.digits().spec["tables"]["main"], "std": False, "unit": "fraction", "bold": "none"}
    found = caption(sweeps.digits(tables={"main": table}))
    assert "Test metrics, mean over 3 seeds (0, 1, 2)." in found
    assert "percent" not in found
    assert "Bold" not in found


def test_the_budget_is_put_in_the_fewest_words():
    for counts, words in (
        ([1, 1, 1, 1], ""), ([], ""), ([3, 3, 3, 3], "Selection budget: 3 candidates in every cell."),
        ([1, 3, 1, 3], "Selection budget: 1 candidate for x; 3 for y."),
        ([2, 2, 5, 5], "Selection budget: 2 candidates for a; 5 for b."),
        ([1, 3, 7, 3], "Selection budget: 1 to 7 candidates a cell."),
    ):  # fmt: skip
        cells = [{"loss": loss, "regularizer": other} for loss in "ab" for other in "xy"][: len(counts)]
        assert budget(dict(enumerate(cells)), dict(enumerate(counts)), lambda axis, label: label) == words


def test_axes_have_titles():
    titles = {
        "loss": "Loss", "regularizer.eta": "η", "optimizer.lr": "lr", "optimizer.weight_decay": "Weight decay",
        "sampler.per_class": "Per class",
    }  # fmt: skip
    assert {axis: axis_title(axis) for axis in titles} == titles


def test_the_real_catalog_gives_the_papers_names():
    parts = load()
    assert [metric_title(one, parts) for one in ("recall@1", "recall@1000", "map@r", "nmi", "f1")] == [
        "R@1", "R@1000", "MAP@R", "NMI", "F1",
    ]  # fmt: skip
    assert choice_label("loss", "triplet", parts) == "Triplet"
    assert choice_label("regularizer", "sec", parts) == "SEC"
    assert choice_label("dataset", "SOP", parts) == "SOP"
    assert choice_label("loss.margin", "triplet", parts) == "triplet"
    assert metric_title("of_mine@5", parts) == "of mine@5"
