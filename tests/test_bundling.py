"""Sweeps over a real database and the inline engine: packed, made again from the pack, compared, and grown by a row."""

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orchestrator.service import tables
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, DamagedError, InvalidSpecError, NotFoundError
from tests.inline_conductor import conduct, ran
from tests.test_conductor import SPEC, spec

TABLES = {
    "main": {"rows": ["loss"], "columns": [], "metrics": ["map@r", "recall@1"]},
    "tuned": {"rows": ["loss"], "columns": ["dataset"], "metrics": ["map@r"], "show_tuned": True, "std": False,
              "imported": [{"label": "Theirs", "source": "lab B", "unit": "percent", "against": {"loss": "triplet"},
                            "numbers": [{"metric": "map@r", "mean": 65.1, "std": 0.4, "n": 5}]}]},
}  # fmt: skip
RECIPE = {**SPEC["recipe"], "figures": ["norms"]}
FIGURES = {
    "rates": {"kind": "line", "metric": "map@r", "x": "optimizer.lr", "colour": "loss"},
    "lengths": {"kind": "distribution", "data": "norms", "colour": "loss"},
}


@dataclass(frozen=True)
class Packed:
    """A finished sweep with two tables and two figures, one of them without data, and its bundle."""

    settings: Settings
    service: Service
    sweep: int
    path: Path


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packed]:
    home = tmp_path_factory.mktemp("packed")
    given = Settings(home=home, engine="inline", train="tests.run.trainings:scripted", lease_seconds=5)
    opened = Service.open(given)
    number = opened.submissions.submit(spec(tables=TABLES, figures=FIGURES, recipe=RECIPE)).id
    conduct(given)
    path = home / "out.zip"
    with opened.bundles.make(number) as made:
        path.write_bytes(made.read())
    yield Packed(given, opened, number, path)
    opened.close()


@pytest.fixture
def bundle(packed: Packed, tmp_path: Path) -> Path:
    return Path(shutil.copy(packed.path, tmp_path / "out.zip"))


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None], *, honest: bool = False) -> Path:
    """The same archive with other content; `honest`: the manifest is mended to fit."""
    files = contents(path)
    change(files)
    if honest:
        manifest = json.loads(files["manifest.json"])
        manifest["files"] = {
            name: {"sha256": hashlib.sha256(one).hexdigest(), "bytes": len(one)}
            for name, one in files.items()
            if name != "manifest.json"
        }
        files["manifest.json"] = json.dumps(manifest).encode()
    changed = path.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, one in files.items():
            archive.writestr(name, one)
    return changed


def test_a_bundle_holds_everything(packed: Packed, bundle: Path) -> None:
    of, sweep = packed.service, packed.sweep
    files = contents(bundle)
    manifest = json.loads(files["manifest.json"])
    assert set(files) == {*manifest["files"], "manifest.json"}
    for name, said in manifest["files"].items():
        assert said == {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}, name
    formats = {one["format"] for one in manifest["made"]}
    assert {"latex", "markdown", "html", "csv", "json"} <= formats
    assert {one["table"] for one in manifest["made"]} == set(TABLES)
    for one in manifest["made"]:
        assert files[one["file"]] == of.tables.render(sweep, one["table"], one["format"]).content, one["file"]
    assert files["spec.yaml"].decode() == of.sweeps.get(sweep).text
    assert json.loads(files["spec.json"]) == of.sweeps.get(sweep).spec
    assert {one["format"] for one in manifest["figures"] if one["figure"] == "rates"} == {
        "json", "svg", "png", "csv"
    }  # fmt: skip
    assert manifest["trials"] == {"finished": 8}
    assert manifest["made_with"]["pyarrow"]
    trials = pq.read_table(io.BytesIO(files["data/trials.parquet"])).to_pylist()
    metrics = pq.read_table(io.BytesIO(files["data/metrics.parquet"])).to_pylist()
    assert len(trials) == 8
    for row in trials:
        view = of.trials.get(row["trial"])
        assert (json.loads(row["recipe"]), row["fingerprint"]) == (view.recipe, view.fingerprint)
        assert row["data_hash"] == view.recipe["pins"]["manifest"]
        assert {one["key"]: one["value"] for one in metrics if one["trial"] == row["trial"]} == view.metrics
    cells = pq.read_table(io.BytesIO(files["data/cells.parquet"])).to_pylist()
    assert cells[1] == {"cell": 1, "labels": [("loss", "semihard")]}


def test_the_same_content_gives_the_same_bytes(packed: Packed, bundle: Path) -> None:
    with packed.service.bundles.make(packed.sweep) as again:
        assert again.read() == bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_table_is_rebuilt_to_the_byte(bundle: Path) -> None:
    report = tables.rebuild(bundle)
    assert report.identical
    made = [one for one in report.made if one.file.startswith("tables/")]
    assert len(made) == 2 * len({one.format for one in made})
    assert report.versions == {}
    one = tables.rebuild(bundle, "main", "latex")
    assert [(each.table, each.format) for each in one.made] == [("main", "latex")]
    assert one.made[0].content == contents(bundle)["tables/main/own/latex.tex"]
    with pytest.raises(NotFoundError, match="its tables: main, tuned"):
        tables.rebuild(bundle, "mian")


def test_changed_missing_and_added_files_are_named(bundle: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        for name in ("tables/main/own/latex.tex", "data/metrics.parquet", "spec.json"):
            files[name] = files[name][:-3] + b"9" + files[name][-2:]
        del files["spec.yaml"]
        files["more.txt"] = b"more"

    with pytest.raises(DamagedError) as refused:
        tables.rebuild(rewritten(bundle, change))
    for problem in ("changed: ", "missing: spec.yaml", "added: more.txt", "latex.tex", "metrics.parquet", "spec.json"):
        assert problem in str(refused.value)


def test_a_table_that_its_data_do_not_give_differs(bundle: Path) -> None:
    """Who changes a number and mends the manifest is found out by the data."""

    def change(files: dict[str, bytes]) -> None:
        text = files["tables/main/own/csv.csv"].decode()
        files["tables/main/own/csv.csv"] = text.replace("1.05", "9.05").encode()

    report = tables.rebuild(rewritten(bundle, change, honest=True))
    wrong = [one for one in report.made if not one.identical]
    assert [one.file for one in wrong] == ["tables/main/own/csv.csv"]
    assert "line 2" in wrong[0].difference
    assert "9.05" in wrong[0].difference


def test_a_path_out_of_the_archive_is_refused(bundle: Path) -> None:
    for name in ("../evil", "/etc/evil", "a/../../evil", "c:\\evil", ".hidden", "a//b"):
        with pytest.raises(DamagedError, match="leads out of it"):
            tables.rebuild(rewritten(bundle, lambda files, n=name: files.update({n: b""}), honest=True))  # type: ignore[misc]


def test_what_is_no_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    for content in (b"", b"PK nonsense", bundle.read_bytes()[:5000]):
        path = tmp_path / "no.zip"
        path.write_bytes(content)
        with pytest.raises(DamagedError, match="not a bundle"):
            tables.rebuild(path)
    unlisted = rewritten(
        bundle, lambda files: files.update({"manifest.json": files["manifest.json"].replace(b'"made"', b'"tables"')})
    )
    with pytest.raises(DamagedError):
        tables.rebuild(unlisted)
    for name, content in {"data/trials.parquet": b"PAR1", "spec.json": b"[]", "catalog.json": b"{}"}.items():
        with pytest.raises(DamagedError):
            tables.rebuild(rewritten(bundle, lambda files, n=name, c=content: files.update({n: c}), honest=True))  # type: ignore[misc]


def test_an_archive_that_unpacks_to_too_much_is_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.publish.bundle.contents.MOST_BYTES", 10_000)
    with pytest.raises(DamagedError, match="at most"):
        tables.rebuild(bundle)


def test_a_sweep_that_waits_or_failed_in_part_can_be_packed(
    service: Service, settings: Settings, tmp_path: Path
) -> None:
    rates = {"optimizer.lr": [0.5, 0.25, 0.01]}
    queued = service.submissions.submit(spec(tune=rates)).id
    for state in ("queued", "failed"):
        path = tmp_path / f"{state}.zip"
        with service.bundles.make(queued) as made:
            path.write_bytes(made.read())
        report = tables.rebuild(path)
        assert report.identical, [one.difference for one in report.made]
        assert report.head.state == state
        conduct(settings)


def test_one_table_of_two_sweeps(service: Service, settings: Settings) -> None:
    first = service.submissions.submit(spec()).id
    later = ran(service, settings, spec(name="later", compare={"loss": ["semihard", "normalized_npair"]}))
    table = json.loads(service.tables.compare([first, later], None, "merge", "json").content)
    (panel,) = table["panels"]
    assert [row["labels"]["loss"] for row in panel["rows"]] == ["triplet", "semihard", "normalized_npair"]
    assert all(cell["value"]["n"] == 2 for row in panel["rows"] for cell in row["cells"])
    sources, clashes = table["notes"]
    assert f"sweep {first} (rates): Triplet, Semihard triplet; sweep {later} (later): Normalized" in sources
    assert clashes == f"In 1 cell that several sweeps have the first of the sweeps {first}, {later} stands."
    with pytest.raises(ConflictError, match="different sweeps"):
        service.tables.compare([first, first], None, "merge", "json")
    with pytest.raises(ConflictError, match="two sweeps, not 3"):
        service.tables.compare([first, later, 3], None, "difference", "json")
    with pytest.raises(NotFoundError, match="no table named 'mian'; did you mean 'main'"):
        service.tables.compare([first, later], "mian", "merge", "json")


def test_sweeps_that_select_differently(service: Service, settings: Settings) -> None:
    """Refused in one table; side by side the caption says it, and what else is not the same."""
    first = service.submissions.submit(spec()).id
    recipe = {**SPEC["recipe"], "iterations": 12}
    other = service.submissions.submit(
        spec(name="on-test", recipe=recipe, select={"metric": "map@r", "split": "test"})
    ).id
    conduct(settings)
    with pytest.raises(ConflictError, match="select differently"):
        service.tables.compare([first, other], "main", "merge", "json")
    table = json.loads(service.tables.compare([first, other], "main", "difference", "json").content)
    assert "SELECT DIFFERENTLY" in " ".join(table["notes"])
    assert f"iterations ({first}: 10; {other}: 12)".replace(";", ",") in " ".join(table["notes"])


TABLE = {
    "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "spread": "ci95", "covers": "both",
    "verdicts": {"against": {"loss": "triplet"}},
}  # fmt: skip
CHANGES = {"tune": {}, "repeat": {"seed": [0, 1, 2, 3]}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Settings, int]]:
    given = Settings(
        home=tmp_path_factory.mktemp("queried"), engine="inline", train="tests.run.queried:train", lease_seconds=5
    )
    service = Service.open(given)
    number = service.submissions.submit(spec(tables={"main": TABLE}, **CHANGES)).id
    conduct(given)
    yield service, given, number
    service.close()


def test_they_come_from_the_storage_into_verdicts_and_tables(home: tuple[Service, Settings, int]) -> None:
    service, _, number = home
    found = service.tables.verdicts(number)
    one, other = found.comparisons
    assert (found.covers, one.word, one.pairs, one.queries, one.classes) == ("both", "better", 4, 300, 12)
    assert other.reason.endswith("kept no scores per query of map@r")
    assert service.tables.verdicts(number, covers="seeds").comparisons[0].queries is None
    page = service.tables.html(number, "main", compared=True)
    assert "4 seeds x 300 queries of 12 classes" in page
    latex = service.tables.render(number, "main", "latex").content.decode()
    assert "half the 95 \\% Student-t interval over other seeds and other test queries" in latex


def test_a_bundle_makes_the_same_without_the_storage(home: tuple[Service, Settings, int], tmp_path: Path) -> None:
    service, settings, number = home
    with service.bundles.make(number) as made:
        (tmp_path / "a.zip").write_bytes(made.read())
    kept = sorted(settings.storage.glob("*/*/queries.npz"))
    assert len(kept) == 8
    hidden = [path.rename(path.with_suffix(".gone")) for path in kept]
    again = tables.rebuild(tmp_path / "a.zip")
    assert again.identical
    assert any(one.numbers == "verdicts" for one in again.made)
    restarted = Service.open(settings)  # `service` still caches its verdicts
    (one, _) = restarted.tables.verdicts(number).comparisons
    restarted.close()
    assert one.word == "untested"
    assert "is not in the storage any more" in one.reason
    for path in hidden:
        path.rename(path.with_suffix(".npz"))


def test_a_spec_that_covers_queries_needs_a_mean_over_them(home: tuple[Service, Settings, int]) -> None:
    service, _, _ = home
    for changes, message in (
        ({"metrics": ["nmi"]}, "needs a metric that is a mean over queries, such as 'recall@1'"),
        ({"covers": "classes"}, "covers"),
    ):
        with pytest.raises(InvalidSpecError) as error:
            service.submissions.submit(spec(tables={"main": {**TABLE, **changes}}, **CHANGES))
        assert any(message in f"{one.path} {one.message}" for one in error.value.problems)
