"""The pages in every state: sound markup, escaped names, all that a person reads and presses; and the style sheet."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from api import examples
from api.routes.cluster import EXAMPLE
from dashboards import rendering
from dashboards import sweeps as pages
from dashboards.lists import ListingAddress, cluster_page, listing_page
from dashboards.sweeps import trial_page
from orchestrator.publish.figures.pages import usage
from orchestrator.views.accounts import Allowed
from orchestrator.views.evidence import ResolutionBudget, VerdictsView
from orchestrator.views.operations import ClusterView
from orchestrator.views.pages import Page
from orchestrator.views.states import SweepState, TrialState
from orchestrator.views.sweeps import Counts, StepCount, SweepSummary
from orchestrator.views.tables import CellView
from orchestrator.views.trials import AttemptView, ListedColumn, ListedRow, Listing
from tests.dashboards import specimens
from tests.dashboards.markup import read
from tests.dashboards.specimens import FIGURE, HOSTILE, MLFLOW, NOW, TABLE
from workers.catalog import Problem

NOTICE = "no node of the cluster can hold a slot of 64 CPUs; trials of dataset=<sop> wait until such a node joins"
VIEWER = Allowed(False, False, "viewers may not change anything")
COLUMNS = [
    ListedColumn(key="loss", name="loss", role="compare", numeric=False, labelled=True),
    ListedColumn(key="regularizer.eta", name="eta", role="tune", numeric=True, labelled=True),
    ListedColumn(key="seed", name="seed", role="repeat", numeric=True, labelled=True),
    ListedColumn(key="best/test/map@r", name="map@r", role="metric", numeric=True, labelled=False),
]


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "datetime", specimens.Noon)


def listed(*sweeps: SweepSummary, state: str | None = None, name: str | None = None, cursor: str | None = None) -> str:
    return pages.sweeps_page(Page(items=list(sweeps), next_cursor=cursor), state=state, name=name)


def one_sweep(
    grid: Any = (), tables: Any = None, resolution: Any = None, left: Any = (), cells: int = 0, **more: Any
) -> str:
    return pages.sweep_page(specimens.sweep(**more), grid, tables or {}, resolution=resolution, left=left, cells=cells)


def one_trial(state: TrialState = TrialState.FINISHED, figure: Any = None, files: Any = (), **more: object) -> str:
    return trial_page(specimens.trial(state, **more), figure, specimens.log(), files=files)


def cell(**more: Any) -> str:
    return pages.cell_page(CellView.model_validate({**examples.CELL, **more}))


def listed_row(**more: object) -> ListedRow:
    known = {
        "sweep": 7, "sweep_name": "digits", "cell": 1, "candidate": 0, "trial": 41, "repeat": 0, "state": "finished",
        "labels": {"loss": "triplet", "regularizer.eta": "0.5", "seed": "0"}, "diverged": False, "reused": False,
        "finished": 1, "score": 0.5, "seconds": 61.0, "started": NOW, "ended": NOW, "values": {"map@r": None},
    }  # fmt: skip
    return ListedRow.model_validate(known | more)


def listing(*rows: ListedRow, cursor: str | None = None, name: str | None = None, **address: Any) -> str:
    found = Listing(items=list(rows), next_cursor=cursor, total=len(rows), metrics=["map@r"])
    return listing_page(ListingAddress(**address), found, COLUMNS, sweep_name=name)


def cluster(**more: Any) -> str:
    return cluster_page(ClusterView.model_validate(EXAMPLE | more))


def lists_of_sweeps() -> dict[str, str]:
    return {
        "none": listed(),
        "none of a filter": listed(state="paused", name="x"),
        "a page of a filter": listed(specimens.summary(), state="failed", name='a"b', cursor="c&d"),
        "one waits": listed(specimens.summary(notice=NOTICE), specimens.summary(id=8)),
        "every state": listed(*(specimens.summary(state, id=number) for number, state in enumerate(SweepState, 1))),
    }


def sweeps() -> dict[str, str]:
    causes = [specimens.problem(number, f"ValueError: {number} of 0x{number}f\nmore") for number in range(1, 9)]
    problems = [*causes, specimens.problem(9, "NaN", TrialState.FINISHED)]
    subset = {"only": {"dataset": ["cub200", "sop"], "loss": ["triplet"]}, "without": {"seed": ["2"]}}
    unborn = {"counts": Counts(), "eta_seconds": None, "steps": StepCount(unit="trials", total=12)}
    return {
        **{state: one_sweep(state=state, started=NOW, ended=NOW) for state in SweepState},
        "with cells": one_sweep(specimens.grid(repeats=5), {"main": TABLE}, cells=2),
        "nothing failed": one_sweep(state=SweepState.FINISHED, counts=Counts(finished=12)),
        "not expanded": one_sweep(state=SweepState.QUEUED, **unborn),
        "not expanded, and failed": one_sweep(state=SweepState.FAILED, counts=Counts(), error="no such part"),
        "none trains": one_sweep(counts=Counts(waiting=1, finished=11)),
        "some wait": one_sweep(notice=f"{NOTICE}\nand more"),
        "work is left": one_sweep(left=["work: 80 steps", "hours: about 2 on H100"]),
        "a subset": one_sweep(spec=subset),
        "problems": one_sweep(problems=problems),
        "figures and runs": one_sweep(figures=["main", "norms"], mlflow_url=MLFLOW),
        "seeds are added": one_sweep(resolution=specimens.resolution()),
    }


def one_statistics(verdicts: VerdictsView | None = None, *, name: str = "digits", **more: Any) -> str:
    sweep = specimens.sweep(SweepState.FINISHED, spec={"repeat": {"seed": []}}, name=name)
    budget = ResolutionBudget(hours=2, seeds=12)
    return pages.statistics_page(sweep, verdicts, budget, **more)


def statistics() -> dict[str, str]:
    ended = specimens.resolution("ended")
    after = [ended.after[0], ended.after[0].model_copy(update={"summary": "equal"})]
    twice = ended.model_copy(update={"before": [ended.before[0]] * 2, "after": after})
    resolutions = {"going": specimens.resolution(), "ended": ended, "by two selections": twice}
    found = specimens.verdicts()
    return {
        "no table": one_statistics(),
        "nothing is compared": one_statistics(found.model_copy(update={"comparisons": []})),
        "a first round": one_statistics(found, planned=specimens.resolution()),
        "refused": one_statistics(found, refused="the spec repeats by no seed"),
        "a viewer": one_statistics(found, planned=specimens.resolution(), may=VIEWER),
        **{f"resolution {name}": one_statistics(found, resolution=one) for name, one in resolutions.items()},
    }


def extension(label: str = "triplet", name: str = "digits", **more: Any) -> str:
    spec = {"compare": {"loss": [{"choices": [{"label": label}], "when": {label: [label]}}]}}
    return pages.extension_page(specimens.sweep(spec=spec, name=name), {"compare.loss[0]": label}, **more)


def extensions() -> dict[str, str]:
    return {
        "planned": extension(planned=["2 of its trials are new"], text="name: digits"),
        "wrong": extension(problems=[Problem("compare.loss[1]", "no loss named 'tripel'")]),
        "refused": extension(refused="the sweep is about to be deleted"),
        "a viewer": extension(may=VIEWER),
    }


def trials() -> dict[str, str]:
    asked = {"cpus": 4.0, "gpus": 0.5, "memory_gb": 16.0, "resources": {"a100": 1.0}, "stall_minutes": 60.0,
             "retries": 1}  # fmt: skip
    attempts = [
        AttemptView(
            number=1, uid="a1", state="lost", slot="slot:4:0.5", requested=asked, host="lab", started=NOW, ended=NOW,
            reason="slot lost",
        ),
        AttemptView(number=2, uid="a2", state="running", slot="slot:1", requested={"cpus": 1.0, "gpus": "auto"},
                    started=NOW, resumed_from="u1/1/last.pt"),
    ]  # fmt: skip
    files = [specimens.figure_file(), specimens.figure_file("panels.png", "image/png")]
    waiting = specimens.trial(TrialState.WAITING, attempts=[], metrics={}, step=0, total_steps=0, provenance={})
    return {
        **{state: one_trial(state) for state in TrialState},
        "outdated": one_trial(TrialState.FAILED, outdated=["metric 'map' (version 1, now 2)"]),
        "replaced": one_trial(
            TrialState.WAITING, replaced=[{"training": "t-1", "step": 10, "total_steps": 20}], outdated=[]
        ),
        "reused": one_trial(reused=True, reused_from=3, score=0.53, best_step=40, seconds=75.0, mlflow_url=MLFLOW),
        "an error": one_trial(TrialState.FAILED, error="ValueError: no", trace="Traceback\n  line 1"),
        "a reason": one_trial(TrialState.PRUNED, reason="pruned after evaluation 2: the median of 5 peers 0.45"),
        "diverged": one_trial(diverged=True),
        "not begun": trial_page(waiting, None, specimens.log("", complete=False)),
        "with a figure": one_trial(figure=FIGURE),
        "files and attempts": one_trial(files=files, attempts=attempts),
    }


def cells() -> dict[str, str]:
    (candidate,), (first, *_) = examples.CELL["candidates"], examples.CELL["numbers"]
    published = ("published", "printed", "source", "difference", "tolerance", "verdict")
    changed = {**candidate["trials"][0], "mlflow_url": MLFLOW, "git_commit": "5580518a9d-dirty"}
    lost = {**candidate, "index": 1, "selected": False, "score": None, "std": None, "n": 0, "status": "diverged"}
    lost["trials"] = [{**candidate["trials"][0], "trial": 99}]
    return {
        "with a published number": cell(),
        "without": cell(numbers=[{**first, **dict.fromkeys(published)}]),
        "runs and changed code": cell(candidates=[{**candidate, "trials": [changed]}, lost], mlflow_url=MLFLOW),
        "the only one": cell(labels={}, numbers=[], candidates=[{**candidate, "labels": {}, "trials": []}]),
    }


def listings() -> dict[str, str]:
    means = listed_row(repeat=None, trials=3, finished=2, deviations={"score": 0.01, "map@r": 0.02},
                       values={"map@r": 0.4})  # fmt: skip
    problem = "no column `los`; did you mean 'loss'?"
    chosen = {"where": "a<b", "sort": "-score", "columns": ("map@r",), "plot": "heat", "sweep": 7}
    return {
        "trials": listing(listed_row(), listed_row(trial=42, state="failed", score=None), sort="-map@r"),
        "chosen": listing(listed_row(), cursor="abc", name="digits", **chosen),
        "a wrong filter": listing_page(ListingAddress(where="los:x"), None, COLUMNS, problem=problem),
        "candidates": listing(means, of="candidates", sort="-score"),
    }


def clusters() -> dict[str, str]:
    (slot, *_), (node, *_) = EXAMPLE["slots"], EXAMPLE["nodes"]
    left = {**node, "alive": False, "seen": (NOW - timedelta(hours=2)).isoformat()}
    return {
        "busy": cluster(),
        "empty": cluster(nodes=[], slots=[], queue=[], conducted=False, heartbeat_seconds=None),
        "without GPUs": cluster(slots=[{**slot, "usage": {**slot["usage"], "gpus": None}}]),
        "silent": cluster(slots=[{**slot, "usage": None}]),
        "without slots": cluster(slots=[]),
        "left": cluster(nodes=[left]),
    }


def test_pages_equal_their_golden_files(golden: Callable[[str, bytes], None]) -> None:
    for made in (lists_of_sweeps, sweeps, statistics, extensions, trials, cells, listings, clusters):
        text = "".join(f"===== {name}\n{read(page).outline}\n" for name, page in made().items())
        golden(f"{made.__name__}.txt", text.encode())


def test_a_huge_sweep_or_cell_stays_a_page() -> None:
    page = read(
        one_sweep(specimens.grid(cells=1_200, candidates=2, repeats=5), cells=1_200, counts=Counts(waiting=12_000))
    )
    assert sum(one.get("class", "").startswith("sq ") for one in page.having("a")) == 2_000
    assert "10,000 trials more in 1,000 cells are not drawn" in page.text
    assert page.having("a", href="/v1/sweeps/7/grid")
    page = read(one_sweep(specimens.grid(1, 3_000, 1), cells=1, counts=Counts(waiting=3_000)))
    assert "1,000 trials more are not drawn" in page.text


def test_the_figure_reaches_the_script_whole() -> None:
    text = one_trial(figure=FIGURE)
    found = re.search(r'<script type="application/json" id="figure">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == {key: FIGURE[key] for key in ("concat", "datasets")}
    assert read(text).having("div", data_figure="figure")[0]["data-script"] == "/static/vega.js?v=v6.1.0"
    assert "https://" not in text


def test_a_long_log_shows_its_end() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    page = read(trial_page(specimens.trial(), None, specimens.log(text)))
    assert "line 999" in page.text
    assert "line 799" not in page.text
    assert "The last 200 lines" in page.text
    long = specimens.log("x" * 65_536).model_copy(update={"offset": 262_144})
    longest = read(trial_page(specimens.trial(), None, long))
    assert "log from its start" in longest.text
    assert "The last 1 line" in longest.text


def hostile_pages() -> dict[str, str]:
    named = {"loss": HOSTILE, HOSTILE: "x"}
    hard = {"name": HOSTILE, "actor": HOSTILE, "error": HOSTILE}
    problems = [specimens.problem(1, HOSTILE).model_copy(update={"labels": named})]
    subset = {"only": {"dataset": ["cub200", HOSTILE]}}
    trial = specimens.trial(
        TrialState.FAILED, sweep_name=HOSTILE, labels=named, error=HOSTILE, trace=HOSTILE, metrics={HOSTILE: 1.0},
        recipe={HOSTILE: {"name": HOSTILE, HOSTILE: [HOSTILE]}}, provenance={HOSTILE: HOSTILE}, fingerprint=HOSTILE,
    )  # fmt: skip
    (candidate,) = examples.CELL["candidates"]
    run = {**candidate["trials"][0], "labels": {HOSTILE: HOSTILE}, "device": HOSTILE, "dataset": HOSTILE}
    chosen = {**candidate, "labels": {HOSTILE: HOSTILE}, "trials": [run]}
    row = listed_row(labels={"loss": HOSTILE, HOSTILE: HOSTILE}, note=HOSTILE, tags=[HOSTILE], sweep_name=HOSTILE)
    slot, queued = EXAMPLE["slots"][0], EXAMPLE["queue"][0]
    trains = {**slot["trains"], "sweep_name": HOSTILE, "labels": {HOSTILE: HOSTILE}}
    usage = {**slot["usage"], "gpus": [{**slot["usage"]["gpus"][0], "name": HOSTILE}]}
    return {
        "sweeps": listed(specimens.summary(**hard), name=HOSTILE, cursor=HOSTILE),
        "no sweeps": listed(name=HOSTILE),
        "sweep": one_sweep(
            specimens.grid(2, 2, 3, labels=named), {HOSTILE: TABLE}, specimens.resolution(label=HOSTILE),
            [f"hours: about 2 on {HOSTILE}"], text=HOSTILE, problems=problems, notice=HOSTILE, spec=subset, **hard,
        ),
        "statistics": one_statistics(
            specimens.verdicts(HOSTILE), name=HOSTILE, planned=specimens.resolution(label=HOSTILE), refused=HOSTILE,
            resolution=specimens.resolution("ended", label=HOSTILE),
        ),
        "extension": extension(
            HOSTILE, HOSTILE, planned=[HOSTILE], text=HOSTILE, problems=[Problem(HOSTILE, HOSTILE)], refused=HOSTILE
        ),
        "trial": trial_page(trial, FIGURE, specimens.log(HOSTILE)),
        "cell": cell(labels={HOSTILE: HOSTILE}, candidates=[chosen], sweep_name=HOSTILE),
        "listing": listing(row, name=HOSTILE, where=HOSTILE, x=HOSTILE, plot="scatter"),
        "wrong listing": listing_page(ListingAddress(where=HOSTILE), None, COLUMNS, problem=HOSTILE),
        "cluster": cluster(
            nodes=[{**EXAMPLE["nodes"][0], "host": HOSTILE}],
            slots=[{**slot, "host": HOSTILE, "trains": trains, "usage": usage}],
            queue=[{**queued, "name": HOSTILE, "actor": HOSTILE, "notice": HOSTILE}],
        ),
        "login": rendering.render("login.html", message=HOSTILE, query="", provider=HOSTILE, logs_out=True),
        "login link": rendering.render(
            "login_link.html", code=HOSTILE, then="/", query="", name=HOSTILE, current=HOSTILE
        ),
        "problem": rendering.render("problem.html", status=422, title=HOSTILE, lines=[HOSTILE, HOSTILE]),
    }  # fmt: skip


def test_hostile_names_are_text_on_pages_that_are_whole() -> None:
    for name, text in hostile_pages().items():
        page = read(text)
        assert not page.having("img"), name
        assert "<script>" not in text, name
        assert HOSTILE in page.text, name
        loaded = [one["src"] for one in page.having("script") if "src" in one]
        loaded += [one["href"] for one in page.having("link")]
        for address in loaded:
            assert rendering.static(address.removeprefix("/static/").partition("?")[0]), address
            assert "?v=" in address


def style() -> str:
    return (rendering.static("style.css") or b"").decode()


def schemes() -> dict[str, dict[str, str]]:
    light, dark = (
        dict(re.findall(r"--([\w-]+):\s*(#\w{6})", block)) for block in re.findall(r":root {(.*?)}", style(), re.DOTALL)
    )
    return {"light": light, "dark": light | dark}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_text_and_shapes_have_the_contrast_that_wcag_asks_for() -> None:
    """All possible pairs: axe checks only those that a page shows."""
    inks = ("text", "muted", "accent", "alert", "best")
    pairs = [(ink, ground, 4.5) for ink in inks for ground in ("page", "raised", "soft", "alert-page", "mild-page")]
    pairs += [("accent-text", "accent", 4.5), ("page", "alert", 4.5)]
    pairs += [(edge, "raised", 3) for edge in ("finished", "running", "failed", "diverged-edge", "waiting")]
    pairs += [("sign", filled, 4.5) for filled in ("failed", "diverged")]  # their signs are dark on them
    poor = [
        (scheme, *pair)
        for scheme, colours in schemes().items()
        for pair in pairs
        if contrast((colours | {"sign": "#14171a"})[pair[0]], colours[pair[1]]) < pair[2]
    ]
    assert poor == []


def test_every_kind_has_a_shape() -> None:
    for kind in {*rendering.KINDS, *SweepState}:
        assert f".sq.{kind}" in style(), kind


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name in ("style.css", "refresh.js", "figure.js", "sweep_figures.js", "icon.svg"):
        text = (rendering.static(name) or b"").decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(|eval\(|new Function", text), name


def test_paper_is_neither_dark_nor_a_phone() -> None:
    """A page of A4 is 718 pixels wide between its margins, and the screen may be dark."""
    for sheet in ("style.css", "listing.css", "catalog.css", "submit.css"):
        rules = re.findall(r"@media ([^{]+) {", (rendering.static(sheet) or b"").decode())
        assert [one for one in rules if "screen" not in one and ("width" in one or "color-scheme" in one)] == [], sheet


def test_a_trial_shows_its_usage_and_first_the_settings_that_were_chosen() -> None:
    figure = usage({"system/memory": [(1.5, 0.25), (3.0, 0.75)]}, "Usage")
    defaults = {"loss": {"margin": 0.1}, "iterations": None, "select": {"metric": "map@r", "split": "validation"}}
    text = trial_page(specimens.trial(), None, specimens.log(), usage=figure, defaults=defaults)
    assert "0.2 (default 0.1)" in text
    assert text.index('id="recipe-chosen" open') < text.index('<details id="recipe-table"><summary>')
    assert '<th scope="row">Memory (GiB)</th><td>0.5</td><td>0.75</td>' in text
    assert '"seconds": 1.5' in text
