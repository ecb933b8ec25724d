"""The pages of a cell, of listings and of the cluster: what they show, and hostile names escaped."""

from datetime import timedelta
from typing import Any

from api import examples
from api.routes.cluster import EXAMPLE
from dashboards import sweeps
from dashboards.lists import ListingAddress, cluster_page, listing_page
from orchestrator.views.operations import ClusterView
from orchestrator.views.tables import CellView
from orchestrator.views.trials import ListedColumn, ListedRow, Listing
from tests.dashboards.markup import read
from tests.dashboards.specimens import HOSTILE, MLFLOW, NOW


def cell(**more: Any) -> CellView:
    return CellView.model_validate({**examples.CELL, **more})


def test_it_shows_the_way_of_a_number() -> None:
    page = read(sweeps.cell_page(cell()))
    said = ("selected", "70.91 ± 0.40", "60.82", "SEC-T3", "above", "best/validation/map@r", "cpu (AMD EPYC)",
            "5580518a9d")  # fmt: skip
    for word in said:
        assert word in page.text, word
    assert page.having("code", title=examples.CELL["candidates"][0]["trials"][0]["fingerprint"])
    assert page.having("a", href="/trials/40")
    assert page.having("a", href="/v1/sweeps/7/cells/0")


def test_columns_of_published_numbers_are_there_where_there_are_some() -> None:
    number = {name: None if name in {"published", "printed", "source", "difference", "tolerance", "verdict"} else value
              for name, value in examples.CELL["numbers"][0].items()}  # fmt: skip
    heads = [f'<th scope="col">{name}</th>' for name in ("published", "difference", "reproduction")]
    beside, alone = sweeps.cell_page(cell()), sweeps.cell_page(cell(numbers=[number]))
    assert all(head in beside for head in heads)
    assert not any(head in alone for head in heads)
    assert '<th scope="col">printed</th>' in alone


def test_runs_lead_to_mlflow_and_changed_code_is_said() -> None:
    (candidate,) = examples.CELL["candidates"]
    trial = {**candidate["trials"][0], "mlflow_url": MLFLOW, "git_commit": "5580518a9d-dirty"}
    other = {**candidate["trials"][0], "trial": 99}
    lost = {**candidate, "index": 1, "selected": False, "score": None, "std": None, "n": 0, "status": "diverged"}
    lost["trials"] = [other]
    page = read(sweeps.cell_page(cell(candidates=[{**candidate, "trials": [trial]}, lost], mlflow_url=MLFLOW)))
    assert len(page.having("a", href=MLFLOW)) == 2
    assert "changed" in page.text
    assert "diverged, not eligible" in page.text


def test_names_are_escaped() -> None:
    (candidate,) = examples.CELL["candidates"]
    trial = {**candidate["trials"][0], "labels": {HOSTILE: HOSTILE}, "device": HOSTILE, "dataset": HOSTILE}
    hostile = {**candidate, "labels": {HOSTILE: HOSTILE}, "trials": [trial]}
    text = sweeps.cell_page(cell(labels={HOSTILE: HOSTILE}, candidates=[hostile], sweep_name=HOSTILE))
    assert "<script>alert" not in text
    assert "49" not in read(text).text.replace("{{ 7*7 }}", "")


def test_a_cell_without_axes_trials_or_tables() -> None:
    (candidate,) = examples.CELL["candidates"]
    page = read(sweeps.cell_page(cell(labels={}, numbers=[], candidates=[{**candidate, "labels": {}, "trials": []}])))
    for word in ("the only cell", "No table shows this cell", "untuned", "no trials yet"):
        assert word in page.text, word


COLUMNS = [
    ListedColumn(key="loss", name="loss", role="compare", numeric=False, labelled=True),
    ListedColumn(key="regularizer.eta", name="eta", role="tune", numeric=True, labelled=True),
    ListedColumn(key="seed", name="seed", role="repeat", numeric=True, labelled=True),
    ListedColumn(key="best/test/map@r", name="map@r", role="metric", numeric=True, labelled=False),
]


def listed_row(**more: object) -> ListedRow:
    known = {
        "sweep": 7, "sweep_name": "digits", "cell": 1, "candidate": 0, "trial": 41, "repeat": 0, "state": "finished",
        "labels": {"loss": "triplet", "regularizer.eta": "0.5", "seed": "0"}, "diverged": False, "reused": False,
        "finished": 1, "score": 0.5, "seconds": 61.0, "started": NOW, "ended": NOW, "values": {"map@r": None},
    }  # fmt: skip
    return ListedRow.model_validate(known | more)


def listing(*rows: ListedRow, cursor: str | None = None) -> Listing:
    return Listing(items=list(rows), next_cursor=cursor, total=len(rows), metrics=["map@r"])


def test_rows_have_their_axes_and_metrics_as_columns() -> None:
    page = listing_page(
        ListingAddress(sort="-map@r"), listing(listed_row(), listed_row(trial=42, state="failed", score=None)), COLUMNS
    )
    assert page.count('aria-sort="descending"') == 1
    assert '<th scope="row"><a href="/trials/41">41</a></th>' in page
    assert "1 min 1 s" in page
    assert "2 trials" in page


def test_addresses_keep_what_was_chosen() -> None:
    asked = ListingAddress(where="a<b", sort="-score", columns=("map@r",), plot="heat", sweep=7)
    assert asked.kept() == "/sweeps/7/trials?where=a%3Cb&sort=-score&plot=heat&columns=map%40r"
    assert asked.sorted_by("score").count("sort=score") == 1
    assert ListingAddress().kept() == "/trials"
    page = listing_page(asked, listing(listed_row(), cursor="abc"), COLUMNS, sweep_name="digits")
    assert "cursor=abc" in page
    assert 'data-plot="/v1/plots/heat?where=a%3Cb&amp;of=trials&amp;sweep=7"' in page


def test_what_people_typed_is_text() -> None:
    hostile = listed_row(labels={"loss": HOSTILE, HOSTILE: HOSTILE}, note=HOSTILE, tags=[HOSTILE], sweep_name=HOSTILE)
    asked = ListingAddress(where=HOSTILE, x=HOSTILE, plot="scatter")
    for page in (
        listing_page(asked, listing(hostile), COLUMNS, sweep_name=HOSTILE),
        listing_page(ListingAddress(where=HOSTILE), None, COLUMNS, problem=HOSTILE),
    ):
        assert not read(page).having("img")
        assert "<script>alert" not in page


def test_a_wrong_filter_stays_and_says_why() -> None:
    page = listing_page(ListingAddress(where="los:x"), None, COLUMNS, problem="no column `los`; did you mean 'loss'?")
    assert 'value="los:x"' in page
    assert 'aria-invalid="true"' in page
    assert "did you mean" in page


def test_candidates_have_means_and_deviations() -> None:
    one = listed_row(
        repeat=None, trials=3, finished=2, deviations={"score": 0.01, "map@r": 0.02}, values={"map@r": 0.4}
    )
    page = listing_page(ListingAddress(of="candidates", sort="-score"), listing(one), COLUMNS)
    assert "2 of 3" in page
    assert "± 0.0100" in page


def cluster(**more: Any) -> str:
    return cluster_page(ClusterView.model_validate(EXAMPLE | more), now=NOW)


def test_it_says_who_uses_what() -> None:
    text = read(cluster()).text
    for said in (
        "1 node, 1 slot, 1 of them training; conductor heard 3 s ago",
        "4 of 16 CPUs", "0.5 of 1 GPU", "21.4 of 59.6 GB", "load 5.2 on 16 CPUs", "4 CPUs, 0.5 GPU",
        "trial 93 of sec-on-digits #7", "step 120 of 300", "2.89 GB", "2.4 CPUs busy",
        "NVIDIA A100-SXM4-40GB", "7.6 of 39.6 GB", "63% busy",
        "52 trials wait: 40 for a free slot, 12 for a machine that has its data", "ada@lab", "no machine has cub200",
    ):  # fmt: skip
        assert said in text, said


def test_what_is_not_there_is_said() -> None:
    empty = read(cluster(nodes=[], slots=[], queue=[], conducted=False, heartbeat_seconds=None)).text
    for said in ("No node is there", "There is no slot", "Nothing waits", "No conductor holds the lease"):
        assert said in empty, said
    without = {**EXAMPLE["slots"][0], "usage": {**EXAMPLE["slots"][0]["usage"], "gpus": None}}
    assert "none" in read(cluster(slots=[without])).text
    silent = {**EXAMPLE["slots"][0], "usage": None}
    assert "not told yet" in read(cluster(slots=[silent])).text
    assert "told once a slot is there" in read(cluster(slots=[])).text
    left = {**EXAMPLE["nodes"][0], "alive": False, "seen": (NOW - timedelta(hours=2)).isoformat()}
    assert "1 node that left" in read(cluster(nodes=[left])).text


def test_names_of_the_cluster_are_text() -> None:
    slot, queued = EXAMPLE["slots"][0], EXAMPLE["queue"][0]
    trains = {**slot["trains"], "sweep_name": HOSTILE, "labels": {HOSTILE: HOSTILE}}
    gpus = [{**slot["usage"]["gpus"][0], "name": HOSTILE}]
    made = cluster(
        nodes=[{**EXAMPLE["nodes"][0], "host": HOSTILE}],
        slots=[{**slot, "host": HOSTILE, "trains": trains, "usage": {**slot["usage"], "gpus": gpus}}],
        queue=[{**queued, "name": HOSTILE, "actor": HOSTILE, "notice": HOSTILE}],
    )
    assert "<script>alert" not in made
    assert "<img" not in made
    assert "{{ 7*7 }}" in read(made).text
