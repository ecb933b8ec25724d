"""Images as bytes: every mode keeps what it shows or is refused, and so is what takes too much memory."""

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from workers.contract import DataDamagedError
from workers.data.decoded import decoded
from workers.data.pictures import MOST_PIXELS, Form, Picture, RefusedError, eight_bit, shown

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
    with pytest.raises(DataDamagedError, match=r"1000000x1 pixels, which a shorter side of 512 makes 512000000x512"):
        decoded("thin", [thin], Form("shorter", 512), tmp_path / "scratch")


def test_names_that_are_not_utf_8_and_long_names_are_read(tmp_path: Path) -> None:
    old = tmp_path / os.fsdecode(b"caf\xe9.png")
    Image.new("RGB", (8, 8)).save(old)
    assert shown(old) == f"{tmp_path}/caf\\xe9.png"
    decoded("長い名前のフォルダー" * 8, [Picture(old)], Form("keep"), tmp_path / "scratch")
    old.write_bytes(b"no image")
    with pytest.raises(DataDamagedError, match=r"caf\\xe9.png cannot be read"):
        decoded("old", [Picture(old)], Form("keep"), tmp_path / "scratch")
