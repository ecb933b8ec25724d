"""The page of a listing: what was chosen is in its addresses, and what people typed is text on it."""

from dashboards.listing import ListingAddress, listing_page
from orchestrator.views.listings import ListedColumn, ListedRow, Listing
from tests.dashboards.markup import read
from tests.dashboards.specimens import HOSTILE, NOW

COLUMNS = [
    ListedColumn(key="loss", name="loss", role="compare", numeric=False, labelled=True),
    ListedColumn(key="regularizer.eta", name="eta", role="tune", numeric=True, labelled=True),
    ListedColumn(key="seed", name="seed", role="repeat", numeric=True, labelled=True),
    ListedColumn(key="best/test/map@r", name="map@r", role="metric", numeric=True, labelled=False),
]


def row(**more: object) -> ListedRow:
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
        ListingAddress(sort="-map@r"), listing(row(), row(trial=42, state="failed", score=None)), COLUMNS
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
    page = listing_page(asked, listing(row(), cursor="abc"), COLUMNS, sweep_name="digits")
    assert "cursor=abc" in page
    assert 'data-plot="/v1/plots/heat?where=a%3Cb&amp;of=trials&amp;sweep=7"' in page


def test_what_people_typed_is_text() -> None:
    hostile = row(labels={"loss": HOSTILE, HOSTILE: HOSTILE}, note=HOSTILE, tags=[HOSTILE], sweep_name=HOSTILE)
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
    one = row(repeat=None, trials=3, finished=2, deviations={"score": 0.01, "map@r": 0.02}, values={"map@r": 0.4})
    page = listing_page(ListingAddress(of="candidates", sort="-score"), listing(one), COLUMNS)
    assert "2 of 3" in page
    assert "± 0.0100" in page
