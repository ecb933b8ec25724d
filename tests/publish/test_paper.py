"""A published table by itself: what a client sees of it, and as a file."""

import csv
import io
import re

import pytest

from orchestrator.publish.paper import FORMATS, render, summary, view
from orchestrator.publish.papers import load, names
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import PublishedView


def test_every_number_is_shown() -> None:
    for table in map(load, names()):
        shown = view(table)
        assert [one.printed for one in shown.numbers] == [one.printed for one in table.numbers]
        assert summary(table).count == len(table.numbers) == shown.count
        rows = [line for line in render(table, "markdown").content.decode().splitlines() if line.startswith("|")][2:]
        cells = [cell.strip().strip("*").replace("\\", "") for row in rows for cell in row.split("|")]
        for number in table.numbers:
            cells.remove(number.printed)


def test_bold_is_none_where_it_is_not_known() -> None:
    assert {one.bold for one in view(load("SVMax-T1")).numbers} == {None}
    assert {one.bold for one in view(load("SEC-T3")).numbers} == {True, False}


def test_what_a_reader_must_know_stands_below() -> None:
    text = render(load("ISA-T2"), "markdown").content.decode()
    assert "**68.1±0.3**" in text
    assert "Quoted from MLRC (inferred): margin, proxy_nca" in text
    assert "- C21: " in text
    assert "is not known" in render(load("SVMax-T3"), "markdown").content.decode()


def test_csv_is_the_file_and_json_the_view() -> None:
    table = load("SEC-T2")
    lines = list(csv.DictReader(io.StringIO(render(table, "csv").content.decode(), newline="")))
    assert lines[1]["f1"] == "*26.50*"
    assert lines[0]["regularizer.eta"] == ""
    rendered = render(table, "json")
    assert PublishedView.model_validate_json(rendered.content) == view(table)
    assert (rendered.filename, rendered.media_type) == ("sec-t2.json", "application/json")


def test_another_format_needs_a_layout() -> None:
    with pytest.raises(NotFoundError, match=re.escape(f"formats: {', '.join(FORMATS)}")):
        render(load("SEC-T2"), "latex")
