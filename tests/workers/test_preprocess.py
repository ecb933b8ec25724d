"""What backbones get: the published conventions on bytes, grey images, sizes, and what cannot be meant."""

import pytest
import torch
from torch.nn import functional

from workers.data.augmentation import IMAGENET, SIGNED, Preprocess

RED = torch.tensor([255, 0, 51], dtype=torch.uint8)[None, :, None, None].expand(2, 3, 4, 4)  # red, green, blue


def channels(images: torch.Tensor) -> list[float]:
    assert images.dtype == torch.float32
    assert bool((images == images[:1, :, :1, :1]).all())
    return [round(value, 4) for value in images[0, :, 0, 0].tolist()]


def test_signed_is_what_every_backbone_got_before_there_was_a_choice() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(SIGNED(images), images.float().div(127.5).sub(1))
    assert channels(SIGNED(RED)) == [1.0, -1.0, -0.6]


def test_imagenet() -> None:
    assert channels(IMAGENET(RED)) == [2.2489, -2.0357, -0.9156]


def test_caffe_turns_the_channels_and_subtracts_means_in_its_own_order() -> None:
    caffe = Preprocess(mean=(104.0, 117.0, 128.0), scale=1.0, bgr=True)
    assert channels(caffe(RED)) == [51 - 104, 0 - 117, 255 - 128]


def test_a_grey_image_gets_the_channels_of_the_mean() -> None:
    grey = torch.full((2, 1, 4, 4), 51, dtype=torch.uint8)
    assert channels(Preprocess(mean=(1.0, 2.0, 3.0), scale=51.0, bgr=True)(grey)) == [0.0, -1.0, -2.0]
    assert SIGNED(grey).shape == (2, 1, 4, 4)


def test_floats_of_an_augmentation_are_taken_as_they_are_and_left_alone() -> None:
    images = torch.rand(2, 3, 4, 4) * 255
    before = images.clone()
    assert torch.allclose(IMAGENET(images)[0, 1], (before[0, 1] / 255 - 0.456) / 0.224)
    assert torch.equal(images, before)


def test_images_of_another_side_are_resized() -> None:
    images = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    larger = Preprocess(mean=(0.0,), scale=1.0, side=12)(images)
    assert torch.allclose(larger, functional.interpolate(images.float(), (12, 12), mode="bilinear"), atol=1e-3)
    same = Preprocess(mean=(0.0,), scale=1.0, side=8)(images)
    assert torch.equal(same, images.float())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": ()}, "0 means and 1 deviations"),
        ({"mean": (1.0,), "std": (1.0, 2.0, 3.0)}, "1 means and 3 deviations"),
        ({"mean": (1.0,), "std": (0.0,)}, "above 0"),
        ({"mean": (1.0,), "scale": 0.0}, "above 0"),
        ({"mean": (1.0,), "side": 0}, "side of 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Preprocess(**options)  # type: ignore[arg-type]


def test_a_wrong_number_of_channels_is_told() -> None:
    with pytest.raises(ValueError, match="images have 4 channels, expected 1 or 3"):
        IMAGENET(torch.zeros(1, 4, 2, 2, dtype=torch.uint8))
