"""Numbers of a table as macros: their names, the file that LaTeX reads, and a paper that is checked against records."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.publish.formats import render
from orchestrator.publish.macros import macro_names, macros_of, read, written
from orchestrator.publish.tables.build import build
from orchestrator.service.offline import ManuscriptReport, check
from orchestrator.views.errors import ConflictError, DamagedError, NotFoundError
from orchestrator.views.evidence import MacrosView
from orchestrator.views.runs import SweepResults
from tests.publish import sweeps
from tests.publish.test_latex import compiled

LAYOUT = {"rows": ["loss"], "columns": [], "metrics": ["recall@1", "norm_var"]}
PAPER = r"""\documentclass{article}
\input{numbers}
\begin{document}
Triplet reaches \msMainTripletRecallAtOne{} \msMainTripletRecallAtOne[interval] % \msMainTripletNormVar
over \msMainTripletRecallAtOne[seeds] seeds: \msMainTripletRecallAtOne[all], std \msMainTripletRecallAtOne[std].
\end{document}
"""


def results(seeds: int = 3, **given: object) -> SweepResults:
    return sweeps.grid({"loss": ("triplet", "semihard")}, sweeps.spec(tables={"main": LAYOUT}), seeds=seeds, **given)  # type: ignore[arg-type]


def table(given: SweepResults | None = None, prefix: str = "ms") -> MacrosView:
    return macros_of(given or results(), "uid-7", "main", sweeps.catalog(), prefix)


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    (tmp_path / "numbers.tex").write_text(written(table()))
    (tmp_path / "paper.tex").write_text(PAPER)
    return tmp_path / "paper.tex"


def checked(paper: Path, today: MacrosView | None = None) -> ManuscriptReport:
    return check(paper, lambda of: today or table())


def test_names_are_letters_and_each_its_own() -> None:
    assert macro_names("ms", [("main", "l2", "1e-4", "recall@1"), ("main", "L2", "1e-4", "recall@1")]) == [
        "msMainLTwoOneEMinusFourRecallAtOne", "msMainLTwoOneEMinusFourRecallAtOneXA",
    ]  # fmt: skip
    assert macro_names("ms", [("è", "nmi_sec", "0.5")]) == ["msENmiSecZeroPointFive"]
    assert macro_names("ms", [("中",), ("文",)]) == ["ms", "msXA"]
    with pytest.raises(ConflictError, match="LaTeX macros cannot begin with 'm2'"):
        table(prefix="m2")


def test_a_number_has_value_interval_deviation_and_seeds() -> None:
    first, second = table().numbers[:2]
    assert (first.name, first.labels, first.seeds) == ("msMainTripletRecallAtOne", {"loss": "triplet"}, 3)
    low, high = (float(one) for one in first.interval.strip("[]").split(","))
    # t(0.975, 2) = 4.3027
    assert (high - low) / 2 == pytest.approx(4.3027 * float(first.std) / 3**0.5, abs=0.01)
    assert float(first.value) == pytest.approx((low + high) / 2, abs=0.01)
    assert float(second.value) < 1, "norms are no percents"
    alone = table(results(seeds=1)).numbers[0]
    assert (alone.interval, alone.std, alone.seeds) == ("one run", "one run", 1)
    failed = table(results(fate=lambda labels, candidate, repeat: "failed")).numbers[0]
    assert (failed.interval, failed.seeds) == ("no number", 0)


@pytest.mark.latex
def test_latex_reads_the_file(paper: Path) -> None:
    compiled(paper.read_bytes(), paper.parent)
    wrong = paper.read_text().replace("[seeds]", "[sedes]")
    with pytest.raises(AssertionError, match="msMainTripletRecallAtOne has no sedes"):
        compiled(wrong.encode(), paper.parent)
    twice = paper.read_text().replace("\\input{numbers}", "\\input{numbers}\\input{numbers}")
    with pytest.raises(AssertionError, match="is there already"):
        compiled(twice.encode(), paper.parent)


def test_a_file_reads_back_as_it_was_written(paper: Path) -> None:
    text = (paper.parent / "numbers.tex").read_text()
    found = read(Path("numbers.tex"), text)
    assert found is not None
    assert [one for _, one in found.numbers.values()] == table().numbers
    assert (found.address.uid, found.address.table, found.edited) == ("uid-7", "main", frozenset())
    line, _ = found.numbers["msMainTripletRecallAtOne"]
    assert text.splitlines()[line - 1].startswith("\\ms@number{msMainTripletRecallAtOne}")
    assert read(Path("paper.tex"), PAPER) is None
    with pytest.raises(DamagedError, match=r"numbers.tex, line \d+: the macros cannot be read"):
        read(Path("numbers.tex"), text.replace('"metric"', '"metrik"', 1))


def test_a_paper_that_agrees(paper: Path) -> None:
    report = checked(paper)
    assert (report.agrees, report.files, report.used, report.numbers) == (True, 1, 1, 4), "a comment prints nothing"


def test_a_number_that_changed_is_found_where_it_is_printed(paper: Path) -> None:
    report = checked(paper, table(results(seeds=5)))
    assert not report.agrees
    (printed,) = [one for one in report.disagreements if one.used]
    assert printed.name == "msMainTripletRecallAtOne"
    assert "seeds: 3 in the paper, 5 now" in printed.message
    assert printed.used[0] == f"{paper}:4"
    assert len(report.disagreements) == 4, "what is not printed is told, too"


def test_a_metric_of_two_splits_is_two_numbers(paper: Path) -> None:
    layout = {**LAYOUT, "metrics": ["norm_mean", {"metric": "norm_mean", "split": "train"}]}
    given = sweeps.grid({"loss": ("triplet",)}, sweeps.spec(tables={"main": layout}), seeds=3)
    norms = {"best/test/norm_mean": 3.0, "best/train/norm_mean": 7.0}
    given = replace(given, trials=tuple(replace(one, values={**one.values, **norms}) for one in given.trials))
    (paper.parent / "numbers.tex").write_text(written(table(given)))
    paper.write_text(PAPER.replace("RecallAtOne", "NormMean"))
    assert [one.value for one in table(given).numbers] == ["3.00", "7.00"]
    assert len({one.name for one in table(given).numbers}) == 2
    assert checked(paper, table(given)).disagreements == ()


def test_what_is_gone_edited_foreign_or_undefined_is_found(paper: Path) -> None:
    numbers = paper.parent / "numbers.tex"
    text = numbers.read_text()
    given = results()
    fewer = replace(
        given, cells=given.cells[1:], candidates=given.candidates[1:],
        trials=tuple(one for one in given.trials if one.cell),
    )  # fmt: skip
    assert checked(paper, table(fewer)).disagreements[0].message == "the table has no such number any more"
    value = table().numbers[0].value
    numbers.write_text(text.replace(f"AtOne}}{{{value}}}", "AtOne}{99.99}", 1))
    edited = checked(paper)
    assert [(one.message, bool(one.used)) for one in edited.disagreements] == [("its line was edited by hand", True)]
    numbers.write_text(text.replace("uid-7", "uid-8"))
    assert "is another one there: its id is uid-7, not uid-8" in checked(paper).disagreements[0].message
    numbers.write_text(text)
    paper.write_text(PAPER.replace("std \\msMainTriplet", "std \\msMainTriplett"))
    assert checked(paper).disagreements[0].message == "no file of macros defines it"
    assert not checked(paper).agrees


def test_names_that_no_file_can_have_and_braces_that_never_close_are_harmless(paper: Path) -> None:
    for name in ("a" * 5_000, "../" * 3_000, "a\0b", "~", " "):
        paper.write_text(PAPER + f"\\input{{{name}}}\n")
        assert checked(paper).agrees, name
    paper.write_text(PAPER + "\\input{" * 300_000)
    assert checked(paper).agrees


def test_what_is_no_paper_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no LaTeX file"):
        checked(tmp_path / "none.tex")
    (tmp_path / "plain.tex").write_text("\\documentclass{article}")
    with pytest.raises(ConflictError, match="includes neither a macro file"):
        checked(tmp_path / "plain.tex")
    (tmp_path / "spec.yaml").write_text("version: 1")
    with pytest.raises(ConflictError, match="a spec is checked by `metricsweep submit --dry-run"):
        checked(tmp_path / "spec.yaml")
    with pytest.raises(NotFoundError):
        macros_of(results(), "uid-7", "mian", sweeps.catalog())


def test_a_number_below_zero_has_a_minus(paper: Path) -> None:
    view = table()
    first = view.numbers[0].model_copy(update={"value": "-1.50", "interval": "[-2.00, 4e-9]"})
    view = view.model_copy(update={"numbers": [first]})
    text = written(view)
    minus = r"\ensuremath{-}"
    assert f"{{{minus}1.50}}{{{{[}}{minus}2.00, 4e-9]}}" in text
    found = read(paper, text)
    assert found is not None
    assert not found.edited
    edited = read(paper, text.replace("1.50}", "1.51}"))
    assert edited is not None
    assert edited.edited == {first.name}


WHOLE = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["recall@1", "norm_var"]}


def whole(
    seeds: int = 3, losses: tuple[str, ...] = ("triplet", "semihard"), name: str = "sec_on-digits", **given: object
) -> str:
    compare = {"loss": losses, "regularizer": ("none", "sec"), "dataset": ("digits", "omniglot")}
    spec = sweeps.spec(tables={"main": WHOLE}, name=name)
    made = sweeps.grid(compare, spec, seeds=seeds, **given)  # type: ignore[arg-type]
    return render(build(made, "main", sweeps.catalog()), "latex").content.decode()


@pytest.fixture
def tabled(tmp_path: Path) -> Path:
    (tmp_path / "main_table.tex").write_text(whole())
    (tmp_path / "paper.tex").write_text("\\input{main_table}\\include{paper}\\input main_table\n% \\input{none}\n")
    return tmp_path / "paper.tex"


def of_tables(paper: Path, today: str) -> ManuscriptReport:
    return check(paper, lambda of: table(), lambda sweep, name: today)


def test_a_table_taken_in_whole_agrees_or_says_which_cells_do_not(tabled: Path) -> None:
    same = of_tables(tabled, whole())
    assert (same.agrees, same.tables, same.files, same.disagreements) == (True, 1, 0, ())
    text = whole()
    number = re.search(r"Triplet.* & (\d\d\.\d\d)", text)
    assert number is not None
    changed = of_tables(tabled, text.replace(number[1], "12.34"))
    assert not changed.agrees
    (one,) = changed.disagreements
    line = next(at for at, line in enumerate(text.splitlines(), 1) if number[1] in line)
    assert one.where == f"{tabled.parent / 'main_table.tex'}:{line}"
    assert one.message.startswith("Triplet None, R@1: ")
    assert f"{number[1]}±" in one.message
    assert "12.34±" in one.message


def test_added_and_removed_rows_and_other_sweeps_are_reported(tabled: Path) -> None:
    def said(today: str) -> list[str]:
        return [one.message for one in of_tables(tabled, today).disagreements]

    fewer = said(whole(losses=("triplet",)))
    assert [one for one in fewer if "no such row" in one] == [
        "Semihard triplet None: the table has no such row any more",
        "Semihard triplet SEC: the table has no such row any more",
    ]
    (tabled.parent / "main_table.tex").write_text(whole(losses=("triplet",)))
    assert "Semihard triplet SEC: a row of the table that the paper lacks" in said(whole())
    other = said(whole(name="another"))
    assert other == ["sweep 7 is another one there: its name is another, not sec\\_on-digits"]

    def away(sweep: int, name: str) -> str:
        raise NotFoundError(f"no sweep {sweep}, {name}")

    (gone,) = check(tabled, lambda of: table(), away).disagreements
    assert gone.message == "its table is not there: no sweep 7, main"


def test_a_cell_that_diverged_since_is_reported(tabled: Path) -> None:
    def fate(labels: dict[str, str], candidate: int, repeat: int) -> str:
        return "diverged" if labels == {"loss": "triplet", "regularizer": "none", "dataset": "digits"} else "ok"

    found = [one.message for one in of_tables(tabled, whole(fate=fate)).disagreements]
    assert any("Triplet None, R@1: " in one and one.endswith("diverged now") for one in found)


def test_what_lies_outside_of_the_papers_folder_is_not_read(tabled: Path) -> None:
    folder = tabled.parent / "paper"
    folder.mkdir()
    paper = folder / "paper.tex"
    (folder / "link.tex").symlink_to(tabled.parent / "main_table.tex")
    paper.write_text("\\input{../main_table}\\input{link}\\input{inside}")
    (folder / "inside.tex").write_text(whole())
    report = of_tables(paper, whole())
    assert (report.tables, sorted(report.outside)) == (1, ["../main_table.tex", "link.tex"])
