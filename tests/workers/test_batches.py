"""What stands in a batch: samplers, augmentation against PIL, and what backbones make of bytes."""

import colorsys
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from workers import catalog, registry
from workers.contract import Part
from workers.data import augmentation
from workers.data import augmentation as augmenting
from workers.data.augmentation import IMAGENET, PRESETS, SIGNED, Augment, Preprocess, distorted
from workers.samplers import Sampler
from workers.samplers.balanced import Balanced
from workers.samplers.shuffle import Shuffle

SIZES = torch.tensor([[64, 85], [75, 64], [64, 64], [100, 64], [64, 200]])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(sizes: torch.Tensor = SIZES, smooth: int = 1) -> tuple[torch.Tensor, list[Image.Image]]:
    """Images of noise, as a padded batch and as PIL's."""
    rng = np.random.default_rng(0)
    height, width = sizes.amax(dim=0).tolist()
    batch = torch.full((len(sizes), 3, height, width), 255, dtype=torch.uint8)  # padding must not leak in
    pictures = []
    for into, (h, w) in zip(batch, sizes.tolist(), strict=True):
        coarse = Image.fromarray(rng.integers(0, 256, (-(-h // smooth), -(-w // smooth), 3), np.uint8))
        pictures.append(coarse.resize((w, h)))
        into[:, :h, :w] = torch.from_numpy(np.asarray(pictures[-1]).copy()).permute(2, 0, 1)
    return batch, pictures


def array(image: torch.Tensor) -> np.ndarray:
    """An image [c, h, w] as PIL's arrays are."""
    return image.permute(1, 2, 0).numpy().astype(np.float64)


@pytest.mark.parametrize("side", [24, 57, 90])
def test_crop_resize_and_flip_equal_pil(side: int) -> None:
    batch, pictures = noise()
    drawn = torch.rand(len(batch), 22, generator=seeded(side), dtype=torch.float64)
    boxes = augmenting.random_boxes(SIZES, (0.16, 1.0), (3 / 4, 4 / 3), drawn)
    flipped = torch.tensor([True, False, True, False, True])
    found = augmenting.resized_crop(batch, boxes, flipped, side)
    for number, picture in enumerate(pictures):
        top, left, h, w = (int(place[number]) for place in boxes)
        expected = picture.crop((left, top, left + w, top + h)).resize((side, side), Image.Resampling.BILINEAR)
        if flipped[number]:
            expected = expected.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        off = np.abs(array(found[number]) - np.asarray(expected))
        assert off.max() <= 1.01  # PIL rounds to bytes twice
        assert off.mean() <= 0.35


def naive_box(height: int, width: int, drawn: list[float]) -> list[int]:
    """torchvision's RandomResizedCrop.get_params with the numbers that it would draw."""
    for share, shape in zip(drawn[:10], drawn[10:20], strict=True):
        area = height * width * (0.16 + 0.84 * share)
        ratio = math.exp(math.log(3 / 4) + (math.log(4 / 3) - math.log(3 / 4)) * shape)
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return [int(drawn[20] * (height - h + 1)), int(drawn[21] * (width - w + 1)), h, w]
    w, h = width, height
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * (4 / 3))
    return [(height - h) // 2, (width - w) // 2, h, w]


def test_boxes_equal_a_loop() -> None:
    for sizes in (torch.tensor([[256, 341]]), torch.tensor([[400, 90]]), torch.tensor([[31, 200]])):
        drawn = torch.rand(500, 22, generator=seeded(), dtype=torch.float64)
        boxes = augmenting.random_boxes(sizes.expand(500, 2), (0.16, 1.0), (3 / 4, 4 / 3), drawn)
        height, width = sizes[0].tolist()
        expected = [naive_box(height, width, numbers) for numbers in drawn.tolist()]
        assert torch.stack(list(boxes), dim=1).tolist() == expected


def test_the_same_state_gives_the_same_bits_and_each_image_its_own() -> None:
    batch, _ = noise()
    one = noise(torch.tensor([[64, 64]]))[0].expand(8, -1, -1, -1)
    for preset in PRESETS:
        worker = Augment(preset, stored=64, crop=40)
        first, again, other = (worker.train(batch, seeded(seed), SIZES) for seed in (1, 1, 2))
        assert first.shape == (5, 3, 40, 40)
        assert torch.equal(first, again)
        assert torch.equal(first, other) == (preset == "none")
        assert float(first.min()) >= 0
        assert float(first.max()) <= 255.01
        alone, *others = worker.train(one, seeded())
        equal = [torch.equal(alone, another) for another in others]
        assert any(equal) == (preset in {"none", "flip"}), preset


def test_an_evaluation_cuts_the_centre() -> None:
    batch, pictures = noise()
    found = Augment("crop_flip", stored=64, crop=57).test(batch, SIZES)
    assert found.dtype == torch.uint8
    for image, picture in zip(found, pictures, strict=True):
        width, height = picture.size
        top, left = round((height - 57) / 2), round((width - 57) / 2)  # torchvision's CenterCrop
        assert np.array_equal(array(image), np.asarray(picture.crop((left, top, left + 57, top + 57))))
    dense = batch[:, :, :64, :64]
    assert torch.equal(Augment("none", stored=64).test(dense), dense)
    assert torch.equal(Augment("none", stored=64).train(dense, seeded()), dense)
    assert Augment("crop_flip", stored=64).test(dense[:0], SIZES[:0]).shape == (0, 3, 64, 64)


def test_a_flip_alone_keeps_the_bytes() -> None:
    batch, _ = noise(torch.tensor([[32, 32]] * 64))
    augment = Augment("flip", stored=32)
    found = augment.train(batch, seeded(), torch.tensor([[32, 32]] * 64))
    assert found.dtype == torch.uint8
    same, turned = (
        (found == other).flatten(1).all(dim=1) for other in (augment.test(batch), augment.test(batch).flip(-1))
    )
    assert bool((same | turned).all())
    assert 16 < int(turned.sum()) < 48


def test_sides() -> None:
    assert Augment("crop_flip", stored=256).side == 227
    assert Augment("proxy_anchor", stored=256).side == 224
    assert Augment("crop_flip", stored=128).side == 128  # never more than there is
    assert Augment("simclr", stored=32).side == 32
    assert Augment("none", stored=28).side == 28
    with pytest.raises(ValueError, match="no preset named 'turn'; expected one of none, flip"):
        Augment("turn", stored=256)
    with pytest.raises(ValueError, match="crop: 300 does not fit in images whose shorter side is 256"):
        Augment("none", stored=256, crop=300)
    with pytest.raises(ValueError, match="an image is smaller than the crop of 64 pixels"):
        Augment("none", stored=64).test(torch.zeros(1, 3, 32, 64, dtype=torch.uint8))


# Colours


def colours() -> tuple[torch.Tensor, list[Image.Image]]:
    batch, pictures = noise(torch.tensor([[32, 32]]).expand(3, 2), smooth=4)
    return batch.float(), pictures


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.4])
@pytest.mark.parametrize(
    ("operation", "reference"),
    [
        (augmentation._brightness, ImageEnhance.Brightness),
        (augmentation._contrast, ImageEnhance.Contrast),
        (augmentation._saturation, ImageEnhance.Color),
    ],
)
def test_colours_equal_pil(operation: object, reference: type, factor: float) -> None:
    batch, pictures = colours()
    found = operation(batch, torch.full((len(batch), 1, 1, 1), factor))  # type: ignore[operator]
    for image, picture in zip(found, pictures, strict=True):
        assert np.abs(array(image) - np.asarray(reference(picture).enhance(factor))).max() <= 1.5


@pytest.mark.parametrize("shift", [-0.1, 0.0, 0.07, 0.5])
def test_hues_equal_pythons(shift: float) -> None:
    batch, _ = colours()
    batch[0, :, 0, 0], batch[0, :, 0, 1] = 90.0, torch.tensor([255.0, 0.0, 0.0])  # grey, and a pure colour
    found = augmentation._hue(batch, torch.full((len(batch), 1, 1, 1), shift))
    for image, before in zip(found, batch, strict=True):
        for y, x in ((0, 0), (0, 1), (7, 9), (31, 20)):
            hue, saturation, value = colorsys.rgb_to_hsv(*(before[:, y, x] / 255).tolist())
            expected = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
            assert np.abs(image[:, y, x].numpy() - 255 * np.array(expected)).max() < 1e-2


def test_distortion_by_its_probabilities() -> None:
    batch, _ = colours()
    many = batch[:1].expand(400, -1, -1, -1)
    drawn = torch.rand(400, 10, generator=seeded(), dtype=torch.float64)
    preset = PRESETS["simclr"]
    found = distorted(many, preset, drawn)
    grey = (found[:, 0] == found[:, 1]).flatten(1).all(dim=1)
    assert grey.tolist() == (drawn[:, 9] < 0.2).tolist()
    untouched = (found == many).flatten(1).all(dim=1)
    assert untouched.tolist() == ((drawn[:, 0] >= 0.8) & (drawn[:, 9] >= 0.2)).tolist()
    assert float(found.min()) >= 0
    assert float(found.max()) <= 255.01


def test_the_order_of_the_operations_differs() -> None:
    batch, _ = colours()
    one = torch.tensor([[0.0, 0.9, 0.1, 0.9, 0.9, 0.1, 0.2, 0.3, 0.4, 1.0]], dtype=torch.float64)
    other = one.clone()
    other[0, 5:9] = one[0, 5:9].flip(0)
    preset = augmenting.Preset(crop=0, jitter=0.5)
    assert not torch.allclose(distorted(batch[:1], preset, one), distorted(batch[:1], preset, other), atol=0.5)
    factor = 1 + 0.4 * (2 * 0.9 - 1)
    expected = augmentation._brightness(batch[:1], torch.full((1, 1, 1, 1), factor))
    expected = augmentation._contrast(expected, torch.full((1, 1, 1, 1), 1 + 0.4 * (2 * 0.1 - 1)))
    expected = augmentation._saturation(expected, torch.full((1, 1, 1, 1), factor))
    expected = augmentation._hue(expected, torch.full((1, 1, 1, 1), 0.1 * (2 * 0.9 - 1)))
    assert torch.allclose(distorted(batch[:1], preset, one), expected, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is here")
@pytest.mark.parametrize("preset", PRESETS)
def test_a_gpu_gives_the_same(preset: str) -> None:
    batch, _ = noise()
    worker = Augment(preset, stored=64, crop=40)
    found = worker.train(batch.cuda(), seeded(), SIZES)
    assert found.is_cuda
    assert torch.allclose(found.float().cpu(), worker.train(batch, seeded(), SIZES).float(), atol=0.05)


RED = torch.tensor([255, 0, 51], dtype=torch.uint8)[None, :, None, None].expand(2, 3, 4, 4)  # red, green, blue


def channels(images: torch.Tensor) -> list[float]:
    assert images.dtype == torch.float32
    assert bool((images == images[:1, :, :1, :1]).all())
    return [round(value, 4) for value in images[0, :, 0, 0].tolist()]


def test_what_backbones_make_of_bytes() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(SIGNED(images), images.float().div(127.5).sub(1))
    assert channels(SIGNED(RED)) == [1.0, -1.0, -0.6]
    assert channels(IMAGENET(RED)) == [2.2489, -2.0357, -0.9156]
    caffe = Preprocess(mean=(104.0, 117.0, 128.0), scale=1.0, bgr=True)
    assert channels(caffe(RED)) == [51 - 104, 0 - 117, 255 - 128], "in its own order"
    grey = torch.full((2, 1, 4, 4), 51, dtype=torch.uint8)
    assert channels(Preprocess(mean=(1.0, 2.0, 3.0), scale=51.0, bgr=True)(grey)) == [0.0, -1.0, -2.0]
    assert SIGNED(grey).shape == (2, 1, 4, 4)
    with pytest.raises(ValueError, match="images have 4 channels, expected 1 or 3"):
        IMAGENET(torch.zeros(1, 4, 2, 2, dtype=torch.uint8))


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    per_class=st.integers(1, 6),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 1000),
)
def test_balanced(sizes: list[int], per_class: int, share: float, seed: int) -> None:
    labels = torch.cat([torch.full((size,), label) for label, size in enumerate(sizes)])
    labels = labels[torch.randperm(len(labels), generator=seeded(seed))]
    classes = max(1, int(share * len(sizes)))
    sampler = Balanced(labels, seeded(seed), classes=classes, per_class=per_class)
    for _ in range(3):
        batch = sampler.draw()
        assert batch.shape == (sampler.batch,) == (classes * per_class,)
        blocks = labels[batch].view(classes, per_class)
        assert (blocks == blocks[:, :1]).all()
        assert len(set(blocks[:, 0].tolist())) == classes
        for images, label in zip(batch.view(classes, per_class), blocks[:, 0], strict=True):
            if sizes[int(label)] >= per_class:
                assert len(set(images.tolist())) == per_class


def test_balanced_draws_all_classes_and_images_alike() -> None:
    labels = torch.arange(6).repeat_interleave(10)
    sampler = Balanced(labels, seeded(), classes=2, per_class=3)
    drawn = torch.bincount(torch.cat([sampler.draw() for _ in range(4000)]), minlength=60)
    assert drawn.min() > 0.8 * 400
    assert drawn.max() < 1.2 * 400


@given(count=st.integers(1, 40), share=st.floats(0.01, 1), seed=st.integers(0, 1000))
def test_shuffle_shows_every_image_once_a_pass(count: int, share: float, seed: int) -> None:
    batch = max(1, int(share * count))
    sampler = Shuffle(torch.zeros(count, dtype=torch.int64), seeded(seed), batch=batch)
    for _ in range(3):
        one_pass = torch.cat([sampler.draw() for _ in range(count // batch)]).tolist()
        assert len(set(one_pass)) == len(one_pass) == count // batch * batch


@pytest.mark.parametrize("name", catalog.load().names("sampler"))
@pytest.mark.parametrize("drawn", [0, 1, 2, 5])
def test_a_sampler_goes_on_where_it_was(name: str, drawn: int) -> None:
    labels = torch.arange(4).repeat_interleave(12)
    generator = seeded(1)
    sampler: Sampler = registry.build("sampler", Part(name=name), labels=labels, generator=generator)
    for _ in range(drawn):
        sampler.draw()
    state, place = sampler.state_dict(), generator.get_state()
    expected = [sampler.draw().tolist() for _ in range(4)]
    other = seeded(2)
    again: Sampler = registry.build("sampler", Part(name=name), labels=labels, generator=other)
    again.load_state_dict(state)
    other.set_state(place)
    assert [again.draw().tolist() for _ in range(4)] == expected


def test_what_cannot_be_drawn_is_refused() -> None:
    labels = torch.arange(3).repeat_interleave(2)
    with pytest.raises(ValueError, match="4 classes a batch, but only 3 classes train"):
        Balanced(labels, seeded(), classes=4, per_class=2)
    with pytest.raises(ValueError, match="batch must be 1 to 6"):
        Shuffle(labels, seeded(), batch=7)
