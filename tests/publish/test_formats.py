import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest

from orchestrator.publish.formats import names, render
from orchestrator.publish.tables.build import build_own
from orchestrator.views.errors import NotFoundError
from tests.publish import sweeps

EXAMPLES = {"rich": sweeps.rich, "svmax": sweeps.svmax, "tiny": sweeps.tiny}
TEXTUAL = ("csv", "html", "json", "latex", "markdown")


def table(example):
    return build_own(EXAMPLES[example](), "main", sweeps.catalog())


def test_the_formats_are_the_files():
    assert names() == ["csv", "html", "json", "latex", "latex_document", "markdown"]


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(NotFoundError, match=r"'docx'; expected one of 'csv', 'html'"):
        render(table("tiny"), "docx")


def test_private_names_are_no_formats():
    with pytest.raises(NotFoundError):
        render(table("tiny"), "__init__")


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", TEXTUAL)
def test_golden(example, name, golden):
    found = render(table(example), name)
    golden(f"{example}.{found.filename.rpartition('.')[2]}", found.content)


@pytest.mark.parametrize("name", names())
def test_files_are_named_after_sweep_and_table(name):
    found = render(table("rich"), name)
    assert re.fullmatch(r"sec-on-digits-7-main\.(csv|html|json|tex|md)", found.filename)
    assert found.media_type.partition(";")[0] in {
        "text/csv",
        "text/html",
        "application/json",
        "application/x-tex",
        "text/markdown",
    }


def test_csv_has_one_line_for_each_cell_and_metric():
    content = render(table("rich"), "csv").content.decode()
    assert content.count("\r\n") == 1 + 18 * 4
    lines = list(csv.DictReader(io.StringIO(content, newline="")))
    diverged = [one for one in lines if one["status"] == "diverged"]
    assert {(one["mean"], one["n"], one["printed"]) for one in diverged} == {("", "", "")}
    chosen = next(
        one for one in lines if (one["loss"], one["regularizer"], one["dataset"]) == ("triplet", "sec", "digits")
    )
    assert (chosen["regularizer.eta"], chosen["candidates"], chosen["n"]) == ("0.5", "3", "3")
    assert float(chosen["mean"]) * 100 == pytest.approx(float(chosen["printed"]), abs=0.005)


def test_json_is_strict_and_unrounded():
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(render(table("rich"), "json").content, parse_constant=refuse)
    assert (content["complete"], content["total"]) == (16, 18)
    cell = content["panels"][0]["rows"][0]["cells"][1]
    assert cell["text"] == f"{cell['value']['mean'] * 100:.2f}"
    low, high = cell["value"]["interval95"]
    assert low < cell["value"]["mean"] < high
    assert {one["status"] for one in content["cells"]} == {"complete", "partial", "failed", "diverged"}


class Grid(HTMLParser):
    """Counts, for each row of each table, the columns it covers with the spans that reach into it."""

    def __init__(self) -> None:
        super().__init__()
        self.widths: list[int] = []
        self.reaching: list[tuple[int, int]] = []  # rows left, columns
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        given = dict(attrs)
        if tag == "tr":
            self.widths.append(sum(columns for _, columns in self.reaching))
            self.reaching = [(rows - 1, columns) for rows, columns in self.reaching if rows > 1]
        elif tag in {"td", "th"}:
            rows, columns = int(given.get("rowspan", 1)), int(given.get("colspan", 1))
            self.widths[-1] += columns
            if rows > 1:
                self.reaching.append((rows - 1, columns))
            assert tag == "td" or given.get("scope") in {"col", "row", "colgroup", "rowgroup"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(("example", "columns"), [("rich", 12), ("svmax", 9), ("tiny", 1)])
def test_html_closes_what_it_opens_and_its_rows_are_equally_wide(example, columns):
    grid = Grid()
    grid.feed(render(table(example), "html").content.decode("ascii"))
    assert grid.open == []
    assert set(grid.widths) == {columns}


def test_markdown_rows_have_equally_many_cells():
    lines = [line for line in render(table("rich"), "markdown").content.decode().splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 9
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {13}
    assert len({len(line) for line in lines}) == 1  # padded: it reads as plain text too
