"""The pages in every state: sound markup, escaped names, and what a person needs to see on them."""

import json
import re

from dashboards import rendering
from dashboards.sweeps import (
    FIGURE_EXPORTS,
    BesideSweep,
    login_link_page,
    login_page,
    problem_page,
    sweep_page,
    sweeps_page,
    trial_page,
)
from orchestrator.views.pages import Page
from orchestrator.views.states import SweepState, TrialState
from orchestrator.views.sweeps import Counts, StepCount, SweepSummary
from orchestrator.views.trials import AttemptView
from tests.dashboards import specimens
from tests.dashboards.markup import Markup, read
from tests.dashboards.specimens import FIGURE, HOSTILE, MLFLOW, NOW, TABLE


def listed(*sweeps: SweepSummary, state: str | None = None, name: str | None = None, cursor: str | None = None) -> str:
    return sweeps_page(Page(items=list(sweeps), next_cursor=cursor), state=state, name=name, now=NOW)


def one_sweep(**more: object) -> str:
    return sweep_page(specimens.sweep(**more), specimens.grid(), BesideSweep({"main": TABLE}), now=NOW)


def one_trial(state: TrialState = TrialState.FINISHED, **more: object) -> str:
    return trial_page(specimens.trial(state, **more), FIGURE, specimens.log(), now=NOW)


# The sweeps


def test_a_list_without_sweeps_says_why() -> None:
    assert "metricsweep submit sweeps/digits.yaml" in read(listed()).text
    filtered = read(listed(state="paused", name=HOSTILE)).text
    assert "metricsweep submit" not in filtered
    assert "in the state paused" in filtered


def test_the_list_shows_state_counts_and_times() -> None:
    page = read(listed(specimens.summary()))
    for said in ("digits", "#7", "running", "about 4 min", "5 min ago", "ada", "4 finished", "1 diverged", "4 waiting"):
        assert said in page.text, said
    assert page.having("time")[0]["title"] == "2026-05-01 11:55:00 UTC"
    assert page.having("svg", class_="bar")[0]["aria-label"].startswith(
        "45 % of 1,200 steps; trials: 4 finished, 1 diverged, 1 failed"
    )


def test_the_filter_keeps_what_was_asked() -> None:
    page = read(listed(state="failed", name='a"b', cursor="c&d"))
    assert page.having("input", name="name")[0]["value"] == 'a"b'
    assert [one["value"] for one in page.having("option") if "selected" in one] == ["failed"]
    assert page.having("a", rel="next")[0]["href"] == "/?state=failed&name=a%22b&cursor=c%26d"


def test_every_state_of_a_sweep_can_be_listed_and_filtered() -> None:
    for state in SweepState:
        page = read(listed(specimens.summary(state)))
        assert page.having("span", class_=f"badge {state}"), state
        assert page.having("option", value=str(state)), state


NOTICE = "no node of the cluster can hold a slot of 64 CPUs; trials of dataset=<sop> wait until such a node joins"


def test_it_is_said_why_trials_wait() -> None:
    page = read(listed(specimens.summary(notice=NOTICE), specimens.summary(id=8)))
    assert page.text.count("some trials wait: ") == 1
    assert [one["title"] for one in page.having("p", class_="error-line")] == [NOTICE]
    page = read(one_sweep(notice=f"{NOTICE}\n{HOSTILE}"))
    assert len(page.having("section", id="notice")) == 1
    assert NOTICE[1:] in page.text
    assert not read(one_sweep()).having("section", id="notice")


# One sweep


def test_the_page_says_what_is_left_to_train() -> None:
    left = ["work: 80 steps", f"hours: about 2 on {HOSTILE}"]
    page = read(sweep_page(specimens.sweep(), specimens.grid(), BesideSweep({"main": TABLE}), left=left, now=NOW))
    assert "Left, work: 80 steps" in page.text
    assert f"Hours: about 2 on {HOSTILE}" in page.text
    assert "Left, " not in read(one_sweep()).text


def test_the_page_of_a_subset_says_of_what() -> None:
    taken = {"only": {"dataset": ["cub200", HOSTILE], "loss": ["triplet"]}, "without": {"seed": ["2"]}}
    page = read(one_sweep(spec=taken))
    assert f"Only dataset: cub200, {HOSTILE}; loss: triplet" in page.text
    assert "Without seed: 2" in page.text


def test_a_sweep_in_every_state_offers_what_can_be_done() -> None:
    for state in SweepState:
        page = read(one_sweep(state=state, started=NOW, ended=NOW))
        ended = state in {SweepState.FINISHED, SweepState.FAILED, SweepState.CANCELLED}
        actions = {form["action"] for form in page.having("form")}
        assert ("/sweeps/7/cancel" in actions) is not ended, state
        assert ("/sweeps/7/retry" in actions) is (state != SweepState.QUEUED), state
        assert bool(page.having("main", data_refresh="3")) is not ended, state
        without_scripts = page.having("meta", http_equiv="refresh")
        assert [one["content"] for one in without_scripts] == ([] if ended else ["10"]), state
        whole = Markup(one_sweep(state=state, counts=Counts(finished=12)))
        assert not whole.having("form", action="/sweeps/7/retry"), "nothing failed"
    unborn = one_sweep(state=SweepState.FAILED, counts=Counts(), error="no such part")
    assert read(unborn).having("form", action="/sweeps/7/retry")
    assert "no such part" in unborn


def test_a_queued_sweep_says_what_it_waits_for() -> None:
    queued = specimens.sweep(
        SweepState.QUEUED, counts=Counts(), eta_seconds=None, steps=StepCount(unit="trials", total=12)
    )
    page = read(sweep_page(queued, [], BesideSweep(), now=NOW))
    assert "expands it to 12 trials" in page.text
    assert page.having("svg", class_="bar")[0]["aria-label"] == "0 % of 12 trials; trials: 12 waiting"


def test_a_sweep_leads_to_its_trials_tables_and_runs() -> None:
    page = read(one_sweep(mlflow_url=MLFLOW))
    places = {one["href"] for one in page.having("a")}
    assert {f"/trials/{number}" for number in range(1, 7)} <= places
    formats = ("latex", "markdown", "csv", "json")
    assert {f"/v1/sweeps/7/tables/main?format={one}" for one in formats} <= places
    assert MLFLOW in places
    assert "61.04" in page.text
    assert "name: digits" in page.text


def test_a_square_says_its_state_without_its_colour() -> None:
    page = read(one_sweep())
    squares = [one for one in page.having("a") if one.get("class", "").startswith("sq ")]
    assert [one["title"] for one in squares] == [
        f"trial {number}, repeat {1 + (number - 1) % 3}: {state}" for number, state in enumerate(TrialState, 1)
    ]
    for number, state in enumerate(TrialState, 1):
        assert f"trial {number}, repeat {1 + (number - 1) % 3}: {state}" in page.text


def test_problems_stand_before_the_tables() -> None:
    problems = [specimens.problem(number, "ValueError: five") for number in range(1, 9)]
    problems.append(specimens.problem(9, "NaN", TrialState.FINISHED))
    text = one_sweep(problems=problems)
    page = read(text)
    assert text.index('id="problems"') < text.index('id="table-1"') < text.index('id="grid"')
    assert page.text.count("ValueError: five") == 1
    assert "8 trials" in page.text
    assert "3 more" in page.text
    assert {one.log for one in problems} <= {one["href"] for one in page.having("a")}
    assert "problems" not in {one.get("id") for one in read(one_sweep()).having("section")}


def test_a_huge_sweep_or_cell_stays_a_page() -> None:
    huge = specimens.grid(cells=1_200, candidates=2, repeats=5)
    page = read(sweep_page(specimens.sweep(total=12_000), huge, BesideSweep(), now=NOW))
    assert sum(one.get("class", "").startswith("sq ") for one in page.having("a")) == 2_000
    assert "10,000 trials more in 1,000 cells are not drawn" in page.text
    assert page.having("a", href="/v1/sweeps/7/grid")
    page = read(sweep_page(specimens.sweep(), specimens.grid(1, 3_000, 1), BesideSweep(), now=NOW))
    assert "1,000 trials more are not drawn" in page.text


# One trial


def test_a_trial_in_every_state_offers_what_can_be_done() -> None:
    for state in TrialState:
        page = read(one_trial(state))
        assert page.having("span", class_=f"badge {state}"), state
        active = state in {TrialState.WAITING, TrialState.RUNNING}
        assert bool(page.having("main", data_refresh="3")) is active, state
        again = page.having("form", action="/sweeps/7/retry")
        assert bool(again) is (state in {TrialState.FAILED, TrialState.CANCELLED}), state
        cancel = page.having("form", action="/sweeps/7/cancel")
        assert bool(cancel) is active, state
        assert bool(page.having("input", name="trial", value="5")) is bool(again or cancel), state


def test_a_trial_says_that_its_numbers_are_of_older_versions() -> None:
    page = read(one_trial(TrialState.FAILED, outdated=["metric 'map' (version 1, now 2)"]))
    assert "Older versions" in page.text
    assert "Numbers changed since it was planned: metric 'map' (version 1, now 2)." in page.text
    assert "starts anew, since numbers changed" in page.text
    anew = read(one_trial(TrialState.WAITING, replaced=[{"training": "t-1", "step": 10, "total_steps": 20}]))
    assert "What it had trained before is not used: step 10 of 20 of training t-1." in anew.text
    assert "Older versions" not in anew.text


def test_a_trial_shows_what_is_known_of_it() -> None:
    page = read(one_trial(reused=True, reused_from=3, score=0.53, best_step=40, seconds=75.0, mlflow_url=MLFLOW))
    for said in (
        "best checkpoint", "0.5000", "not a number", "−2.000e-07", "0.5300 (validation/map@r)", "step 40 of 100",
        "1 min 15 s", "triplet margin 0.2", "torch 2.6", "slot-0", "2 min", "step 1 step 2", "f" * 64,
    ):  # fmt: skip
        assert said in page.text, said
    places = {one["href"] for one in page.having("a")}
    assert {"/sweeps/7", "/sweeps/7/cells/1", "/trials/3", MLFLOW, "/v1/trials/5/logs"} <= places


def test_a_trial_says_how_it_ended() -> None:
    page = read(one_trial(TrialState.FAILED, error="ValueError: no", trace="Traceback\n  line 1"))
    assert "ValueError: no" in page.text
    assert "Traceback line 1" in page.text
    why = "pruned after evaluation 2: validation/map@r 0.31; its best is 0.31, the median of 5 peers 0.45"
    assert why in read(one_trial(TrialState.PRUNED, reason=why)).text
    page = read(one_trial(diverged=True))
    assert page.having("span", class_="badge diverged")
    assert not page.having("section", id="error")


def test_a_trial_that_has_not_begun() -> None:
    waiting = specimens.trial(TrialState.WAITING, attempts=[], metrics={}, step=0, total_steps=0, provenance={})
    page = read(trial_page(waiting, None, specimens.log("", complete=False), now=NOW))
    assert "No points yet." in page.text
    assert not page.having("script", type="application/json")


def test_the_figure_reaches_the_script_whole_and_its_last_values_stand_in_for_it() -> None:
    text = one_trial()
    page = read(text)
    found = re.search(r'<script type="application/json" id="figure">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == {key: FIGURE[key] for key in ("concat", "datasets")}
    assert page.having("div", data_figure="figure")[0]["data-script"] == "/static/vega.js?v=v6.1.0"
    assert "https://" not in text
    assert "Loss 20 not a number 2" in page.text
    assert "30 1.235e+04 1" in page.text
    assert "open" in page.having("details", id="last-values")[0], "a script closes it once the figure is drawn"


def test_a_long_log_shows_its_end() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    page = read(trial_page(specimens.trial(), None, specimens.log(text), now=NOW))
    assert "line 999" in page.text
    assert "line 799" not in page.text
    assert "The last 200 lines" in page.text
    long = specimens.log("x" * 65_536).model_copy(update={"offset": 262_144})
    longest = read(trial_page(specimens.trial(), None, long, now=NOW))
    assert "log from its start" in longest.text
    assert "The last 1 line" in longest.text


# All of them


def hostile_pages() -> dict[str, str]:
    named = {"loss": HOSTILE, HOSTILE: "x"}
    hard = {"name": HOSTILE, "actor": HOSTILE, "error": HOSTILE}
    problems = [specimens.problem(1, HOSTILE).model_copy(update={"labels": named})]
    sweep = specimens.sweep(text=HOSTILE, problems=problems, **hard)
    trial = specimens.trial(
        TrialState.FAILED, sweep_name=HOSTILE, labels=named, error=HOSTILE, trace=HOSTILE, metrics={HOSTILE: 1.0},
        recipe={HOSTILE: {"name": HOSTILE, HOSTILE: [HOSTILE]}}, provenance={HOSTILE: HOSTILE}, fingerprint=HOSTILE,
    )  # fmt: skip
    grid = specimens.grid(2, 2, 3, labels=named)
    tables = BesideSweep({HOSTILE: TABLE}, resolution=specimens.resolution(label=HOSTILE))
    return {
        "sweeps": listed(specimens.summary(**hard), name=HOSTILE, cursor=HOSTILE),
        "sweep": sweep_page(sweep, grid, tables, now=NOW),
        "trial": trial_page(trial, FIGURE, specimens.log(HOSTILE), now=NOW),
        "login": login_page(HOSTILE),
        "login link": login_link_page(HOSTILE, "/", HOSTILE, HOSTILE),
        "problem": problem_page(422, HOSTILE, f"{HOSTILE}\n{HOSTILE}"),
    }


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


def test_only_static_files_are_given() -> None:
    for name in ("", ".", "..", "../pages.py", "page.html", "/etc/passwd", "style.css/", "nope.js"):
        assert rendering.static(name) is None, name


# Figures


def test_a_sweep_shows_its_figures_and_exports_them() -> None:
    page = read(one_sweep(figures=["main", "norms"]))
    (drawn, norms) = page.having("div", class_="paper")
    assert drawn["data-drawn"] == "/v1/sweeps/7/figures/main?format=json"
    assert "data-keep" in drawn
    assert norms["id"] == "paper-2"
    exports = [one["href"] for one in page.having("a") if "/figures/main" in one.get("href", "")]
    assert exports == [f"/v1/sweeps/7/figures/main?format={name}" for name in FIGURE_EXPORTS]
    assert page.having("img", src="/v1/sweeps/7/figures/norms?format=svg", loading="lazy")  # without scripts
    assert any("sweep_figures.js" in one.get("src", "") for one in page.having("script"))
    assert "sweep_figures.js" not in one_sweep()


def test_a_trial_links_the_files_of_its_figures() -> None:
    found = [specimens.figure_file(), specimens.figure_file("panels.png", "image/png")]
    page = read(trial_page(specimens.trial(), FIGURE, specimens.log(), found, now=NOW))
    assert [one["href"] for one in page.having("a") if "/figures/" in one.get("href", "")] == [
        "/v1/trials/5/figures/norms.npz", "/v1/trials/5/figures/panels.png", "/v1/trials/5/figures/panels.png",
    ]  # fmt: skip
    assert page.having("img", src="/v1/trials/5/figures/panels.png", alt="panels.png")
    assert "norms.npz 1 KiB" in page.text
    assert "Figure files" not in read(one_trial()).text


def test_the_attempts_of_a_trial_say_where_with_what_when_and_why() -> None:
    asked = {"cpus": 4.0, "gpus": 0.5, "memory_gb": 16.0, "resources": {"a100": 1.0}, "stall_minutes": 60.0,
             "retries": 1}  # fmt: skip
    attempts = [
        AttemptView(
            number=1, uid="a1", state="lost", slot="slot:4:0.5", asked=asked, host="lab", started=NOW, ended=NOW,
            reason="slot lost",
        ),
        AttemptView(number=2, uid="a2", state="running", slot="slot:1", asked={"cpus": 1.0, "gpus": "auto"},
                    started=NOW, resumed_from="u1/1/last.pt"),
    ]  # fmt: skip
    text = read(one_trial(attempts=attempts)).text
    for said in (
        "lost", "slot:4:0.5", "4 CPUs, 0.5 GPU, 16 GB, 1 a100", "lab", "slot lost", "1 CPU, GPU where there is one",
        "u1/1/last.pt", "started", "ended",
    ):  # fmt: skip
        assert said in text, said
