"""Folders of images: what is read of them and what is passed over, and what each image becomes."""

import hashlib
import os
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, features

from tests.workers import trees
from tests.workers.test_workers_main import own_scratch as own_scratch  # noqa: PLC0414 - a fixture
from workers.__main__ import main
from workers.catalog import Finding, Need, load, need_of, usual_needs
from workers.contract import DataDamagedError, DataMissingError, Part, Place, Progress, Recipe
from workers.data import images, published_weights
from workers.data.class_folders import ClassFolders, class_folders, suffixes
from workers.data.decoded import decoded
from workers.data.download import BY_HAND, SOURCES
from workers.data.inspection import inspect
from workers.data.pictures import MOST_PIXELS, Form, Picture, RefusedError, eight_bit, shown
from workers.data.published_weights import PublishedWeights
from workers.train import train


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Four classes of three different images."""
    folder = tmp_path / "data" / "pets"
    for shade, name in enumerate("abcd"):
        for number in range(3):
            trees.picture(folder / name / f"{number}.jpg", 60 * shade + 10 * number)
    return folder


def counts(found: ClassFolders) -> dict[str, int]:
    return {name: len(images) for name, images in found.classes.items()}


VERIFY = ["data", "verify", "image_folder", "--set", "folder=pets", "--set", "side=8", "--data"]
WHOLE = {"a": 3, "b": 3, "c": 3, "d": 3}


def test_whatever_pillow_reads_here_is_an_image(pets: Path) -> None:
    image = Image.open(pets / "c/0.jpg")
    for number, suffix in enumerate((".jfif", ".JPE", ".avif" if features.check("avif") else ".webp")):
        image.save(pets / f"c/{number}{suffix}", "JPEG" if number < 2 else None)
        (pets / f"c/{number}.jpg").unlink()
    assert class_folders(pets) == (class_folders(pets).classes, ())
    assert counts(class_folders(pets)) == WHOLE
    assert {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".webp", ".tif", ".gif", ".pgm"} <= suffixes()


def leave(path: Path) -> None:
    """An image that is none of a class."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path, "JPEG")


@pytest.mark.parametrize(("left", "note"), [
    (["a/@eaDir/0.jpg/THUMB_M.jpg", "b/@eaDir/x.jpg"], "2 entries of a NAS or an operating system: a/@eaDir, b"),
    (["__MACOSX/a/._0.jpg", "a/Thumbs.db"], "2 entries of a NAS or an operating system: __MACOSX, a/Thumbs.db"),
    (["a/.AppleDouble/0.jpg", "a/._0", ".thumbnails/0.jpg"], "3 hidden files or folders: .thumbnails, a/.Apple"),
    (["d/IMG_1.HEIC", "d/2.heic"], "2 images in formats that are not read (.heic 2): d/2.heic, d/IMG_1.HEIC; save"),
    (["a/notes.txt", "b/list"], "2 files that are not images (.txt 1, no suffix 1): a/notes.txt, b/list"),
    (["x.jpg"], "1 image that lies in no class folder: x.jpg"),
])  # fmt: skip
def test_skipped_files_are_reported_with_the_reason(pets: Path, left: list[str], note: str) -> None:
    for name in left:
        leave(pets / name)
    found = class_folders(pets)
    assert counts(found) == WHOLE
    (said,) = found.notes
    assert said.startswith(f"passed over {note}")


def test_a_folder_without_images_is_reported_as_no_class(pets: Path) -> None:
    (pets / "empty").mkdir()
    leave(pets / "phone/1.heic")
    notes = class_folders(pets).notes
    assert notes[-1] == "2 folders are not classes, since they have no image that can be read: empty, phone"


def test_links_to_files_and_to_folders_count(pets: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (pets / "b").rename(store)
    (pets / "b").symlink_to(store)
    (pets / "c").rename(tmp_path / "inner")
    (pets / "c").mkdir()
    (pets / "c/inner").symlink_to(tmp_path / "inner")
    (pets / "d/0.jpg").rename(tmp_path / "0.jpg")
    (pets / "d/0.jpg").symlink_to(tmp_path / "0.jpg")
    assert (counts(class_folders(pets)), class_folders(pets).notes) == (WHOLE, ())


def test_links_in_circles_end_and_count_nothing_twice(pets: Path) -> None:
    (pets / "a/up").symlink_to(pets)
    (pets / "a/self").symlink_to(pets / "a")
    (pets / "b/root").symlink_to("/")
    (pets / "c/inner").mkdir()
    (pets / "c/0.jpg").rename(pets / "c/inner/0.jpg")
    (pets / "c/other").symlink_to(pets / "c/inner")
    found = class_folders(pets)
    assert counts(found) == WHOLE
    assert found.notes == (
        "passed over 4 folders that were read already or lie above: a/self, a/up, b/root, ...",
    )  # fmt: skip


def test_links_that_lead_nowhere_are_missing_images(pets: Path) -> None:
    for name in ("b/2.jpg", "d/0.jpg", "d/1.jpg", "d/2.jpg"):
        (pets / name).unlink()
        (pets / name).symlink_to(f"/nowhere/{name}")
    with pytest.raises(DataMissingError) as raised:
        class_folders(pets)
    assert f"4 links lead nowhere, the first is {pets}/b/2.jpg (to /nowhere/b/2.jpg)" in str(raised.value)
    assert "of d nothing else is there" in str(raised.value)
    (pets / "d/0.jpg").unlink()
    (pets / "d/0.jpg").symlink_to(pets / "d/0.jpg")
    with pytest.raises(DataMissingError, match="4 links lead nowhere"):
        class_folders(pets)


def test_halves_that_are_taken_for_classes_are_doubted(pets: Path) -> None:
    (pets / "a").rename(pets / "train")
    (pets / "b").rename(pets / "Test")
    (said,) = class_folders(pets).notes
    assert "Test, train are used as classes" in said
    assert "such as pets/Test" in said


def same(pets: Path) -> None:
    shutil.copy(pets / "a/1.jpg", pets / "d/twin.jpg")


def test_verify_the_node_and_the_training_log_say_it(
    pets: Path, tmp_path: Path, own_scratch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(pets / "a/1.heic")
    same(pets)
    passed = "passed over 1 image in a format that is not read (.heic 1): a/1.heic"
    shared = f"warning: 1 image of the test classes is in the training classes too, such as {pets}/d/twin.jpg"
    assert main([*VERIFY, str(pets.parent)]) == 0
    said = capsys.readouterr().out
    assert [line in said for line in (passed, shared)] == [True, True], said
    part = Part.model_validate({"name": "image_folder", "folder": "pets", "side": 8})
    (found,) = inspect([Need(dataset=part)], pets.parent, tmp_path / "scratch")
    assert (found.state, passed in found.message, shared in found.message) == ("ok", True, True)
    recipe = Recipe.model_validate({
        "dataset": part, "backbone": {"name": "small_cnn", "width": 4}, "embedding": 4, "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 2, "per_class": 2}, "iterations": 1, "select": {"split": "last"},
    })  # fmt: skip
    log: list[Progress] = []
    train(recipe, Place(pets.parent, tmp_path / "scratch", tmp_path / "out"), log.append)
    lines = "".join(one.log for one in log)
    expected = ("data: 6 images of 2 classes train, 7 images of 2 classes test", f"data: {passed}", f"data: {shared}")
    assert [line in lines for line in expected] == [True] * 3, lines


def test_a_pack_says_which_images_are_in_both_splits(tmp_path: Path) -> None:
    image = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    np.savez(tmp_path / "birds.npz", image=image[[0, 1, 2, 0]], label=[0, 0, 1, 1])
    (found,) = inspect([Need(dataset=Part.model_validate({"name": "packed", "file": "birds.npz"}))], tmp_path, tmp_path)
    assert f"such as image 3 of {tmp_path}/birds.npz, which is image 0 of" in found.message


def test_names_that_are_not_utf_8_are_classes_and_can_be_printed(pets: Path, own_scratch: None) -> None:
    old = os.fsencode(pets) + b"/caf\xe9"
    os.rename(pets / "a", old)  # noqa: PTH104 - bytes
    assert "caf\\xe9" in counts(class_folders(pets))
    assert main([*VERIFY, str(pets.parent)]) == 0


RAMP = np.tile(np.arange(256, dtype=np.uint8), (4, 1))


def in_mode(mode: str) -> Image.Image:
    """A ramp from black to white in a mode of Pillow."""
    grey = Image.fromarray(RAMP)
    if mode.startswith("I;16"):
        deep = (RAMP.astype(np.uint16) * 257).astype(">u2" if mode == "I;16B" else "<u2")
        return Image.frombytes(mode, grey.size, deep.tobytes())
    if mode == "LAB":
        profiles = [ImageCms.createProfile(space) for space in ("sRGB", "LAB")]  # type: ignore[arg-type]
        lab = ImageCms.profileToProfile(grey.convert("RGB"), profiles[0], profiles[1], outputMode="LAB")
        assert lab is not None
        return lab
    if mode in {"La", "PA", "RGBa"}:
        return grey.convert({"La": "LA", "PA": "P", "RGBa": "RGBA"}[mode]).convert(mode)
    return grey.convert("RGB").convert(mode) if mode in {"CMYK", "HSV", "RGBX", "YCbCr"} else grey.convert(mode)


def test_every_mode_of_pillow_keeps_its_levels_or_is_refused() -> None:
    faults = []
    for mode in Image.MODES:
        for wanted in ("RGB", "L"):
            try:
                levels = np.asarray(eight_bit(in_mode(mode), wanted))  # type: ignore[arg-type]
            except RefusedError as refused:
                if mode not in {"F", "I"} or f"mode {mode} " not in str(refused):
                    faults.append(f"{mode} as {wanted}: {refused}")
                continue
            grey = levels if wanted == "L" else levels.mean(axis=2)
            most = 255 if mode == "1" else 2  # which has two levels
            if mode in {"F", "I"} or np.abs(grey.astype(float) - RAMP).max() > most or len(np.unique(grey)) < 2:
                faults.append(f"{mode} as {wanted}: {np.unique(grey).tolist()[:5]}")
    assert faults == []


def test_what_is_transparent_lies_on_white() -> None:
    drawn = Image.merge("LA", (Image.new("L", (256, 4)), Image.fromarray(255 - RAMP)))  # black that fades out
    palette = Image.fromarray(RAMP).convert("P")
    palette.info["transparency"] = 0
    for image in (drawn, drawn.convert("RGBA"), drawn.convert("La"), drawn.convert("RGBA").convert("RGBa")):
        assert np.abs(np.asarray(eight_bit(image, "L")).astype(int) - RAMP).max() <= 1, image.mode
    assert np.asarray(eight_bit(palette, "L"))[0, :3].tolist() == [255, 1, 2]
    hidden = Image.fromarray(RAMP).convert("RGBA")
    hidden.putalpha(0)
    with pytest.raises(RefusedError, match="transparent everywhere"):
        eight_bit(hidden, "RGB")


def test_16_bits_are_scaled_by_the_range_of_their_format(tmp_path: Path) -> None:
    deep = RAMP.astype(np.uint16) * 257
    Image.fromarray(deep).save(tmp_path / "deep.png")
    Image.fromarray(deep).save(tmp_path / "deep.tif")
    (tmp_path / "deep.pgm").write_bytes(b"P5 256 4 65535\n" + deep.astype(">u2").tobytes())
    for name in ("deep.png", "deep.tif", "deep.pgm"):
        into = np.zeros((3, 4, 256), np.uint8)
        Form("keep").decode(Picture(tmp_path / name), into)
        assert np.array_equal(into[0], RAMP), name
    faint = Image.fromarray(RAMP.astype(np.uint16))  # 8 bits in 16, which would all be black
    with pytest.raises(RefusedError, match="values from 0 to 255"):
        eight_bit(faint, "RGB")


def test_a_mode_without_a_range_is_refused_by_name(tmp_path: Path) -> None:
    Image.fromarray(RAMP.astype(np.float32)).save(tmp_path / "float.tif")
    Image.fromarray(RAMP.astype(np.int32)).save(tmp_path / "whole.tif")
    files = [Picture(tmp_path / name) for name in ("float.tif", "whole.tif")]
    with pytest.raises(DataDamagedError) as raised:
        decoded("two", files, Form("square", 8), tmp_path / "scratch")
    assert f"{files[0]} has the mode F (floating-point numbers)" in str(raised.value)
    assert str(files[1]) in str(raised.value)
    assert "save it with 8 or 16 bits" in str(raised.value)


def test_an_orientation_is_applied_where_the_form_says_so(tmp_path: Path) -> None:
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8, 0] = 255  # red on the left
    faults = []
    for suffix in ("png", "webp", "tif", "jpg"):
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            path = tmp_path / f"{orientation}.{suffix}"
            Image.fromarray(pixels).save(path, exif=exif, **({"lossless": True} if suffix == "webp" else {}))
            sideways = orientation > 4
            plain, upright = Form("keep"), Form("keep", upright=True)
            if suffix != "tif" and plain.shape(Picture(path)) != (8, 16):  # PIL always turns a TIFF
                faults.append(f"{path.name}: turned where it was not asked for")
            shape = upright.shape(Picture(path))
            into = np.zeros((3, *shape), np.uint8)
            upright.decode(Picture(path), into)
            first = into[0, :4] if sideways else into[0, :, :4]
            red = {1: True, 2: False, 3: False, 4: True, 5: True, 6: True, 7: False, 8: False}[orientation]
            if shape != ((16, 8) if sideways else (8, 16)) or (first.mean() > 127) != red:
                faults.append(f"{path.name}: {shape}, {first.mean()}")
    assert faults == []


def png(path: Path, width: int, height: int) -> Picture:
    """A PNG that declares so many black and white pixels and holds a row of them."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes(1 + (width + 7) // 8)))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b""))
    return Picture(path)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_an_image_of_too_many_pixels_is_refused_by_its_header(tmp_path: Path) -> None:
    bombs = [png(tmp_path / "bomb.png", 60_000, 60_000), png(tmp_path / "large.png", 20_000, 20_000)]
    for bomb in bombs:
        with pytest.raises(DataDamagedError) as raised:
            decoded("bomb", [bomb], Form("square", 8), tmp_path / "scratch")
        assert str(bomb) in str(raised.value)
        assert f"more than the {MOST_PIXELS:,}" in str(raised.value)
    good = png(tmp_path / "good.png", 14_000, 14_000)
    assert Form("shorter", 16).shape(good) == (16, 16), "196 megapixels are within the limit"
    thin = png(tmp_path / "thin.png", 1_000_000, 1)
    with pytest.raises(DataDamagedError, match=r"1000000x1 pixels, which `resize` to 512 would make 512000000x512"):
        decoded("thin", [thin], Form("shorter", 512), tmp_path / "scratch")


def test_names_that_are_not_utf_8_and_long_names_are_read(tmp_path: Path) -> None:
    old = tmp_path / os.fsdecode(b"caf\xe9.png")
    Image.new("RGB", (8, 8)).save(old)
    assert shown(old) == f"{tmp_path}/caf\\xe9.png"
    decoded("長い名前のフォルダー" * 8, [Picture(old)], Form("keep"), tmp_path / "scratch")
    old.write_bytes(b"no image")
    with pytest.raises(DataDamagedError, match=r"caf\\xe9.png cannot be read"):
        decoded("old", [Picture(old)], Form("keep"), tmp_path / "scratch")


CATALOG = load()


def need(name: str, **options: object) -> Need:
    found = need_of(part(name, **options), Part(name="mlp"), CATALOG)
    assert found is not None
    return found


def finding(one: Need, root: Path) -> Finding:
    """What is found, without the content and the counts."""
    (found,) = inspect([one], root, root / "scratch")
    return found.model_copy(update={"content": {}, "counts": {}})


def part(name: str, **options: object) -> Part:
    return Part.model_validate({"name": name, **options})


def test_what_a_training_needs(tmp_path: Path) -> None:
    digits, resnet = part("digits"), part("resnet50", weights="r.pth")
    assert need_of(digits, part("mlp"), CATALOG) is None
    assert need_of(digits, part("resnet50", pretrained=False), CATALOG) is None
    assert need("cub200", side=128, resize="square") == need("cub200"), "however images are decoded"
    assert need("cub200", official=False) != need("cub200")
    assert need("cub200").key == need("cub200", official=True).key == "019a8925dfd633df"
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "mine.py").write_text("class Mine:\n    def __init__(self, root): ...\n")
    assert need_of(part("mine"), part("mlp"), load(tmp_path)) is None, "own parts are not looked into"
    timm = part("timm_model", architecture="resnet18", pretrained=True, pool="avg")
    for dataset, backbone, message in (
        (part("cub200", side=64), part("mlp"), "cub200"),
        (part("packed", file="birds.npz"), part("mlp"), "packed file=birds.npz"),
        (part("cub200", official=False), resnet, "cub200 official=false with weights r.pth"),
        (digits, resnet, "weights r.pth"),
        (part("sop"), part("resnet50", pretrained=True), "sop with pretrained resnet50"),
        (digits, timm, "pretrained timm_model architecture=resnet18"),
        (digits, part("resnet50", pretrained=True, pool="max"), "pretrained resnet50"),
    ):
        assert str(need_of(dataset, backbone, CATALOG)) == message


def test_an_empty_root_lacks_every_data_set_and_the_finding_names_the_root(tmp_path: Path) -> None:
    for one in (one for one in usual_needs(CATALOG) if one.dataset):
        found = finding(one, tmp_path)
        assert found.state == "missing", one
        assert str(tmp_path) in found.message
        assert "METRICSWEEP_DATA" in found.message
        assert one.dataset is not None
        assert ("data fetch" in found.message) == (one.dataset.name in SOURCES)
        assert one.dataset.name in SOURCES or BY_HAND[one.dataset.name] in found.message


def test_a_data_set_with_other_counts_is_wrong_unless_a_part_of_it_is_meant(tmp_path: Path) -> None:
    trees.cub(tmp_path)
    found = finding(need("cub200"), tmp_path)
    assert found.state == "wrong"
    assert "train has 9 images, expected 5,864" in found.message
    assert finding(need("cub200", official=False), tmp_path) == Finding()


def test_nothing_is_decoded_and_a_hash_is_compared_once_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.cub(tmp_path)
    other = need("cub200", official=False, content="sha256:" + 64 * "0")
    assert finding(other, tmp_path) == Finding(), "nobody has decoded it yet"
    assert not [path for path in (tmp_path / "scratch" / "decoded").rglob("*") if path.is_file()]
    whole = images.load(part("cub200", official=False), tmp_path, tmp_path / "scratch")
    monkeypatch.setattr("workers.data.decoded.digest", None)  # as much as photographs are is not hashed anew
    found = finding(other, tmp_path)
    assert (found.state, "expected sha256:0000" in found.message) == ("wrong", True)
    right = need("cub200", official=False, content=images.content_hash(whole))
    assert finding(right, tmp_path) == Finding()


def test_a_pack_with_other_content_is_wrong(tmp_path: Path) -> None:
    image = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    np.savez(tmp_path / "birds.npz", image=image, label=np.array([0, 0, 1, 1]))
    assert finding(need("packed", file="birds.npz"), tmp_path) == Finding()
    found = finding(need("packed", file="birds.npz", content="sha256:" + 64 * "0"), tmp_path)
    assert (found.state, "expected sha256:0000" in found.message) == ("wrong", True)
    planned = need("packed", file="birds.npz").model_copy(update={"content": {"data": "sha256:" + 64 * "0"}})
    found = finding(planned, tmp_path)
    assert (found.state, "expected sha256:00000000)" in found.message) == ("wrong", True), found.message
    np.savez(tmp_path / "omniglot28.npz", image=np.zeros((4, 28, 28), np.uint8), label=np.arange(4), split=np.eye(4)[0])
    assert finding(need("omniglot"), tmp_path).state == "wrong"


def test_what_is_wrong_with_a_recipe_is_left_to_the_training(tmp_path: Path) -> None:
    trees.class_folders(tmp_path / "birds", {"a": 2, "b": 3})
    assert finding(need("image_folder", folder="birds", train_classes=7), tmp_path) == Finding()


def test_weights_are_looked_at_and_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(path: str) -> Finding:
        found = need_of(part("digits"), part("resnet50", weights=path), CATALOG)
        assert found is not None
        return finding(found, tmp_path)

    missing = looked("r-00000000.pth")
    assert (missing.state, "METRICSWEEP_DATA" in missing.message) == ("missing", True)
    (tmp_path / "r-00000000.pth").write_bytes(b"weights")
    wrong = looked("r-00000000.pth")
    assert (wrong.state, "expected 00000000" in wrong.message) == ("wrong", True)
    name = f"r-{hashlib.sha256(b'weights').hexdigest()[:8]}.pth"
    (tmp_path / name).write_bytes(b"weights")
    os.utime(tmp_path / name, (0, 0))  # the hash of a file that was written just now is not kept
    assert looked(name) == Finding()
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert looked(name) == Finding()


class TestPretrained:
    """The weights that `pretrained: true` loads, where the network is away."""

    STORED, LOADED = Need(stored=part("resnet18")), Need(pretrained=part("resnet18"))

    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishedWeights:
        """A published file of this test, which is nowhere."""
        digest = hashlib.sha256(b"weights").hexdigest()
        file = PublishedWeights(f"resnet18-{digest[:8]}.pth", "resnet18", ("http://127.0.0.1:9/nobody",))
        monkeypatch.setattr(published_weights, "FILES", (file,))
        monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))
        return file

    def test_they_are_found_by_their_hash(self, file: PublishedWeights, tmp_path: Path) -> None:
        for place, state in (("cache/hub/checkpoints", "missing"), ("weights", "wrong")):
            path = tmp_path / place / file.name
            path.parent.mkdir(parents=True)
            path.write_bytes(b"weights")
            assert finding(self.STORED, tmp_path) == finding(self.LOADED, tmp_path) == Finding()
            path.write_bytes(b"others")
            assert finding(self.LOADED, tmp_path).state == state

    def test_an_error_says_how_to_get_missing_weights(self, file: PublishedWeights, tmp_path: Path) -> None:
        found = finding(self.LOADED, tmp_path)
        assert found.state == "missing"
        where = f"looked in {tmp_path / 'weights'} and {tmp_path / 'cache/hub/checkpoints'}"
        assert found.message.startswith(
            f"{file.name} is missing: {where}, and nobody gives it (http://127.0.0.1:9/nobody: "
        )
        assert "refused); run `metricsweep weights fetch resnet18` where there is a network, and put" in found.message

    def test_the_hub_of_timm_is_named_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: True)
        one = need_of(part("digits"), part("timm_model", architecture="resnet18", pretrained=True), CATALOG)
        assert one is not None
        found = finding(one, tmp_path)
        assert found.message.startswith(f"model.safetensors of timm/resnet18.a1_in1k is missing: looked in {tmp_path}")
        assert "(HF_HUB_OFFLINE is set)" in found.message
