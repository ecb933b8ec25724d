"""Samplers: which images stand in their batches, and that they go on where they were."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers import catalog, registry
from workers.contract import Part
from workers.samplers import Sampler
from workers.samplers.balanced import Balanced
from workers.samplers.shuffle import Shuffle


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


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
