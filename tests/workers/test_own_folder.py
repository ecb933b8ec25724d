"""What is easily got wrong in a folder of own parts is said with the file and with what would be right."""

from pathlib import Path

import pytest

from workers.catalog import PartSourceError, load
from workers.catalog.source import OFFERED
from workers.contract import FOLDERS, KINDS

PART = 'class Mine:\n    """A part."""\n\n    def __init__(self, {arguments}) -> None: ...\n'


def write(folder: Path, file: str, arguments: str = "*, margin: float = 0.2") -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PART.replace("{arguments}", arguments))
    return folder


def test_what_is_offered_is_known_of_every_kind_and_is_all_that_parts_ask_for() -> None:
    assert set(OFFERED) == set(KINDS)
    asked = {kind: {ask for entry in load().of(kind) for ask in entry.asks} for kind in KINDS}
    assert {kind: asks - {*OFFERED[kind]} for kind, asks in asked.items()} == {kind: set() for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_hyper_parameter_before_the_star_is_named_with_its_file(kind: str, tmp_path: Path) -> None:
    folder = write(tmp_path, f"{FOLDERS[kind]}/mine.py", "margin: float = 0.2, *, other: int = 1")
    with pytest.raises(PartSourceError) as caught:
        load(folder)
    said = str(caught.value)
    assert said.startswith(f"{folder}/{FOLDERS[kind]}/mine.py: `margin` stands before the `*`")
    assert "a hyper-parameter stands behind the `*`: `def __init__(self, *, margin: ...)`" in said


def test_what_the_trainer_offers_stays_before_the_star(tmp_path: Path) -> None:
    with pytest.raises(PartSourceError, match=r"`margin` stands .*`def __init__\(self, dim, \*, margin: ...\)`"):
        load(write(tmp_path, "losses/mine.py", "dim: int, margin: float = 0.2"))


MISSPELT = {
    "loss": "losses", "lossses": "losses", "Losses": "losses", "dataset": "datasets", "data": "datasets",
    "regulariser": "regularizers", "backbone": "backbones", "metric": "metrics", "eta_schedule": "eta_schedules",
}  # fmt: skip


def test_a_misspelt_folder_of_parts_is_named_with_the_right_one(tmp_path: Path) -> None:
    for name, right in MISSPELT.items():
        for arguments in ("*, margin: float = 0.2", "margin: float = 0.2"):
            folder = write(tmp_path / name / str(len(arguments)), f"{name}/mine.py", arguments)
            with pytest.raises(PartSourceError, match=rf"{folder}/{name}: .*did you mean '{right}'\?"):
                load(folder)


def test_the_folder_of_one_kind_is_not_that_of_own_parts(tmp_path: Path) -> None:
    write(tmp_path, "losses/mine.py")
    with pytest.raises(PartSourceError, match=f"name the one above, {tmp_path}"):
        load(tmp_path / "losses")


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "losses/mine.py")
    write(tmp_path, "_data/mine.py")
    write(tmp_path, "tests/test_mine.py")
    write(tmp_path, "common/mine.py")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "readers.py").write_text("def read(path):\n    return path\n")
    assert "mine" in load(tmp_path).names("loss")
