import csv
import io
import json
import re

import pytest

from orchestrator.publish.formats import names, render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.evidence import judged
from orchestrator.views.errors import NotFoundError
from tests.publish import shapes, sweeps
from tests.publish.test_latex import compiled

EXAMPLES = {"rich": sweeps.rich, "svmax": sweeps.svmax, "tiny": sweeps.tiny}
MEDIA = {"text/csv", "text/html", "application/json", "application/x-tex", "text/markdown"}


def table(example):
    return build(EXAMPLES[example](), "main", sweeps.catalog())


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(NotFoundError, match=r"'docx'; expected one of 'csv', 'html'"):
        render(table("tiny"), "docx")


@pytest.mark.parametrize("example", EXAMPLES)
def test_golden(example, golden):
    built = table(example)
    for name in names():
        found = render(built, name)
        stem, _, ending = found.filename.rpartition(".")
        assert found.media_type.partition(";")[0] in MEDIA
        assert stem == built.file_stem
        if name != "latex_document":
            golden(f"{example}.{ending}", found.content)
    json.loads(render(built, "json").content, parse_constant=pytest.fail)


def everything(numbers):
    """Rows of own, quoted and imported numbers, compared, judged and counted, some diverged, running and not run."""
    quoted = [{"of": {"loss": "semihard", "regularizer": "sec"}, "label": "SHT, SEC", "bold": True}]
    theirs = {"metric": "recall@1", "of": {"dataset": "cub200"}, "mean": 99.1, "std": 0.4, "n": 5}
    imported = {"label": "SEC (lab B)", "source": "=lab_b.csv", "unit": "percent", "numbers": [theirs],
                "against": {"loss": "triplet", "regularizer": "none"}}  # fmt: skip
    layout = {
        "rows": ["loss", "regularizer"], "columns": ["dataset"], "published": "SEC-T3", "quoted": quoted,
        "metrics": ["nmi", {"metric": "recall@1", "over": "Ranks"}, "norm_var",
                    {"metric": "recall@1", "delta": {"regularizer": "none"}, "signed": True}],
        "imported": [imported], "against": {"regularizer": "none"}, "counts": "always", "spread": "ci95",
        "arrows": True, "show_tuned": True, "verdicts": {"margin": 0.5}, "panels": [{"dataset": ["cub200"]}],
    }  # fmt: skip
    fates = {("triplet", "l2"): "diverged", ("semihard", "svmax"): "waiting", ("semihard", "none"): "failed"}
    compare = {"dataset": ("cub200", "cars196"), "loss": ("triplet", "semihard"), "regularizer": sweeps.REGULARIZERS}
    results = sweeps.grid(
        compare, sweeps.spec(tables={"main": layout}), seeds=5, state="running",
        fate=lambda labels, *_: fates.get((labels["loss"], labels["regularizer"]), "ok"),
    )  # fmt: skip
    table = build(results, "main", sweeps.catalog(), numbers=numbers)
    return judged(table, results, ()).shown(marks=True) if numbers == "own" else table


VIEWS = {"published": True, "both": True, "own": False, "difference": False, "verdict": False}
"""Whether each view shows the printed numbers."""


@pytest.mark.parametrize("numbers", VIEWS)
def test_a_table_that_has_everything_is_whole_in_every_view_and_format(numbers):
    built = everything(numbers)
    texts = {name: render(built, name).content.decode() for name in names()}
    for name in ("latex", "markdown"):
        assert ("60.82" in texts[name]) is VIEWS[numbers], name
        assert ("SHT, SEC" in texts[name]) is (numbers == "own"), name  # else own cells show these numbers


@pytest.mark.latex
def test_it_compiles_in_every_view(tmp_path):
    for numbers in VIEWS:
        log = compiled(render(everything(numbers), "latex_document").content, tmp_path)
        assert not re.search(r"^!|LaTeX Warning: (?!Label)|Missing character|Overfull", log, re.MULTILINE), numbers


def test_csv_says_what_json_says():
    wrong = []
    for name, table in shapes.tables().items():
        content = render(table, "csv").content.decode()
        lines = iter(csv.DictReader(io.StringIO(content, newline="")))
        for panel in json.loads(render(table, "json").content)["panels"]:
            for row in panel["rows"]:
                for column, cell in zip(panel["columns"], row["cells"], strict=True):
                    if column["kind"] != "metric" or cell["cell"] is None:
                        continue
                    line = next(lines)
                    labels = {**row["labels"], **column["labels"]}
                    same = all(line[axis] == label for axis, label in labels.items())
                    value = cell["value"]
                    same = same and line["printed"] == (cell["text"] if value else "")
                    same = same and line["mean"] == (repr(value["mean"]) if value else "")
                    same = same and line["metric"] == column["name"]
                    same = same and line["bold"] == str(int(cell["bold"]))
                    wrong += [] if same else [(name, line)]
        wrong += [(name, "more lines", line) for line in lines]
    assert wrong == []
