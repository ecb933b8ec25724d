"""Each format is read back and compared with JSON, cell by cell, for tables of every shape."""

import csv
import io
import json
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from orchestrator.publish.formats import render
from tests.publish import shapes

TABLES = shapes.tables()


def known(name):
    """The table as JSON has it."""
    return json.loads(render(TABLES[name], "json").content)


def places(panel) -> Iterator[tuple[list[str], int, dict]]:
    """The headings of each cell's row, the number of its column, and the cell."""
    for row in panel["rows"]:
        for at, cell in enumerate(row["cells"]):
            yield row["headings"], at, cell


def split_rows(name) -> Iterator[list[list[str]]]:
    """By panel, the rows of the Markdown as GitHub reads it: titles first, then each row's texts."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(render(TABLES[name], "markdown").content.decode())
    for token in tokens:
        if token.type == "table_open":
            grid: list[list[str]] = []
        elif token.type == "tr_open":
            grid.append([])
        elif token.type == "inline" and token.level >= 4:
            grid[-1].append("".join(one.content for one in token.children))
        elif token.type == "table_close":
            yield grid


def test_markdown_says_what_json_says():
    wrong = []
    for name in TABLES:
        expected = known(name)
        grids = list(split_rows(name))
        assert len(grids) == len(expected["panels"])
        for panel, grid in zip(expected["panels"], grids, strict=True):
            stub = len(expected["stub"])
            for row, line in zip(panel["rows"], grid[1:], strict=True):
                wrong += [(name, row["headings"], line)] if line[:stub] != row["headings"] else []
                for cell, text in zip(row["cells"], line[stub:], strict=True):
                    shown = cell["text"].replace("-", "−") if cell["value"] else cell["text"]
                    if cell["std_text"]:
                        shown += f" ± {cell['std_text']}"
                    fits = text.startswith(shown) if cell["span"] else not text
                    wrong += [] if fits else [(name, row["headings"], shown, text)]
            titles = [column["title"] for column in panel["columns"]]
            ends = [line.endswith(title) for line, title in zip(grid[0][stub:], titles, strict=True)]
            wrong += [] if all(ends) else [(name, grid[0])]
    assert wrong == []


def test_csv_says_what_json_says():
    wrong = []
    for name in TABLES:
        content = render(TABLES[name], "csv").content.decode()
        lines = iter(csv.DictReader(io.StringIO(content, newline="")))
        for panel in known(name)["panels"]:
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


def tabular_rows(text: str) -> list[list[str]]:
    """The body rows of a tabular with booktabs, cells under a wide one empty."""
    rows = []
    for body in re.findall(r"\\midrule\n(.*?)(?=\\toprule|\\bottomrule)", text, re.DOTALL):
        for line in body.splitlines():
            if not line.endswith(r" \\"):
                continue
            cells = []
            for cell in line.removeprefix("    ").removesuffix(r" \\").split(" & "):
                wide = arguments(cell.strip()) if cell.strip().startswith("\\multicolumn") else []
                cells += [wide[2], *[""] * (int(wide[0]) - 1)] if wide else [cell.strip()]
            rows.append(cells)
    return rows


def arguments(text: str) -> list[str]:
    """The arguments of the command that a text begins with."""
    found, depth, begun = [], 0, 0
    for at, one in enumerate(text):
        depth += (one == "{") - (one == "}")
        if one == "{" and depth == 1:
            begun = at + 1
        elif one == "}" and depth == 0:
            found.append(text[begun:at])
    return found


def plain(cell: str) -> str:
    """The words or the number of a cell of a tabular."""
    bare = re.sub(
        r"\\multirow\{\d+\}\{\*\}|\\makebox\[[^\]]*\]\[l\]\{.*|\\phantom\{[^{}]*\{?[^{}]*\}?\}|\\rlap\{.*?\}", "", cell
    )
    bare = bare.replace("\\_", "_").replace("\\pm$", "±$").replace("$", "").replace("\\ldots{}", "…").replace("--", "–")
    return re.sub(r"\\[a-z]+(\{\})?|[{}]", "", bare).strip()


def test_latex_says_what_json_says():
    wrong = []
    for name in sorted(set(TABLES) - {"svmax"}):
        expected = known(name)
        lines = iter(tabular_rows(render(TABLES[name], "latex").content.decode()))
        above = [""] * len(expected["stub"])
        for panel in expected["panels"]:
            for row in panel["rows"]:
                line = next(lines)
                stub = len(above)
                above = [plain(cell) or above[at] for at, cell in enumerate(line[:stub])]
                wrong += [(name, row["headings"], line)] if above != row["headings"] else []
                for cell, text in zip(row["cells"], line[stub:], strict=True):
                    shown = cell["text"] + (f"±{cell['std_text']}" if cell["std_text"] else "")
                    fits = plain(text).startswith(shown) if cell["span"] else not text
                    bold = "\\textbf" in text
                    wrong += (
                        [] if fits and bold == cell["bold"] else [(name, row["headings"], shown, text, plain(text))]
                    )
        wrong += [(name, "more lines", line) for line in lines]
    assert wrong == []
