"""Counting: an image beside its tiles, the loss of both, and probes of each convolution."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import adaptive_avg_pool2d
from torchvision.models import alexnet

from tests.workers import naive_pairs
from tests.workers.inputs import part, random_batch
from tests.workers.recipes import begun, completed, problems, run
from workers.backbones import averaged
from workers.backbones.alexnet import Alexnet
from workers.tasks.counting import Counting

RAW: dict[str, Any] = {
    "task": {"name": "counting", "probe_epochs": 1, "probe_at": [], "probe_batch": 64},
    "dataset": "digits_halves",
    "backbone": {"name": "small_cnn", "widths": [4, 4, 4, 4, 4]},
    "head": {"name": "fc", "relu": True},
    "embedding": 8,
    "loss": "rep_cnt",
    "sampler": {"name": "shuffle", "batch": 8},
    "optimizer": {"name": "adam", "lr": 0.001},
    "iterations": 2,
    "evaluate_every": 2,
}


def counting(folder: Path, **changes: Any) -> Counting:
    task = begun(completed({**RAW, **changes}), folder).task
    assert isinstance(task, Counting)
    return task


def test_an_image_is_seen_at_half_its_side_beside_its_four_quarters(tmp_path: Path) -> None:
    task = counting(tmp_path)
    task.model.eval()
    images = torch.randint(0, 256, (3, 1, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    whole, total = task.counted(images)
    for at, image in enumerate(images.float()):
        small = torch.stack([image[:, y : y + 2, x : x + 2].mean() for y in (0, 2, 4, 6) for x in (0, 2, 4, 6)])
        torch.testing.assert_close(whole[at], task.model(small.view(1, 1, 4, 4))[0])
        tiles = [image[None, :, y : y + 4, x : x + 4] for y in (0, 4) for x in (0, 4)]
        torch.testing.assert_close(total[at], sum(task.model(tile)[0] for tile in tiles))
    assert (whole >= 0).all()


def test_equation_19_is_the_first_term_alone() -> None:
    embeddings, labels = random_batch(3)
    near = naive_pairs.rep_cnt(embeddings, labels, margin=0)
    assert part("loss", "rep_cnt", contrast=False)(embeddings, labels).item() == pytest.approx(near, rel=1e-9)
    whole, tiles = embeddings[:2], embeddings[2:4]
    plain = part("loss", "rep_cnt", contrast=False, squared=False)
    found = plain(torch.cat([whole, tiles]), torch.tensor([0, 1, 0, 1])).item()
    assert found == pytest.approx((whole - tiles).norm(dim=1).sum().item() / 2, rel=1e-9)


def test_maps_are_averaged_as_adaptive_pooling_does() -> None:
    for height, width, side in ((7, 7, 3), (63, 63, 12), (2, 3, 6), (31, 30, 7)):
        maps = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(averaged(maps, side), adaptive_avg_pool2d(maps, side))


def test_alexnet_has_its_fully_connected_layers_and_the_maps_of_five_convolutions(tmp_path: Path) -> None:
    ours = Alexnet(3, 224, tmp_path, connected=True).eval()
    theirs = alexnet(weights=None).eval()
    whole = {f"net.{key}": value for key, value in theirs.state_dict().items()}
    ours.load_state_dict({key: value for key, value in whole.items() if not key.startswith("net.classifier.6.")})
    images = torch.randn(2, 3, 160, 160, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(theirs.classifier[6](ours(images)), theirs(images), rtol=1e-4, atol=1e-5)
        found = ours.convolved(images)
        assert [*found] == ["conv1", "conv2", "conv3", "conv4", "conv5"]
        torch.testing.assert_close(found["conv5"], theirs.features[:12](images))
    assert (ours.features, Alexnet(3, 224, tmp_path).features) == (4096, 256)


def test_what_cannot_be_counted_is_refused_before_training(tmp_path: Path) -> None:
    changes: dict[str, Any]
    for changes, path, said in (
        ({"loss": "triplet"}, "loss", "'counting' compares an image with its tiles, which loss 'triplet' does not"),
        ({"sampler": "balanced"}, "sampler", "draws by classes, but task 'counting' looks at tiles of images"),
        ({"sampler": {"name": "shuffle", "batch": 1}}, "sampler.batch", "expected at least 2 for task 'counting'"),
        ({"task": "retrieval"}, "loss", "which task 'retrieval' does not make; take 'counting'"),
        ({"dataset": "digits"}, "dataset", "judges features by classes that a probe has learned"),
    ):
        assert said in problems({**RAW, **changes})[path]
    for changes, said in (
        ({"crop": 7}, "images of 7 pixels have no halves"),
        ({"backbone": {"name": "small_cnn", "widths": [4, 4]}}, "5 convolutions, and the backbone lacks conv3"),
        ({"backbone": "resnet18", "crop": 8}, "5 convolutions, and the backbone lacks conv1"),
    ):
        with pytest.raises(ValueError, match=said):
            counting(tmp_path, **changes)


def test_a_metric_without_its_k_is_measured_at_the_end_too(tmp_path: Path) -> None:
    result, _ = run(completed({**RAW, "metrics": ["linear_top1"], "select": {"metric": "linear_top1"}}), tmp_path)
    assert result.metrics["last/test/linear_top1"] == result.metrics["last/test/linear_top1@conv5"]
