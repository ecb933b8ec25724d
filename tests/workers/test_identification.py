"""Identification among distractors equals brute force, in any blocks and chunks, and holds no more than these."""

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workers.embeddings import geometry
from workers.evaluation import ties
from workers.evaluation.verification import Identification
from workers.metrics.rank1 import Rank1

IDENTITY = torch.tensor([0, 0, 0, 1, 1, 2, 0, 1, 1, 3, 3])  # one is alone
AMONG = {10: torch.arange(40, 50), 100: torch.arange(100), 1000: torch.arange(1000).flip(0)}  # in lists of their own


def drawn(seed: int, separation: float = 1.0, width: int = 16) -> tuple[Tensor, Tensor]:
    """Probes near their identity's direction, and distractors anywhere."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(4, width, generator=generator)
    probes = separation * directions[IDENTITY] + torch.randn(len(IDENTITY), width, generator=generator)
    return geometry.unit(probes), geometry.unit(torch.randn(1000, width, generator=generator))


def blocks(distractors: Tensor, size: int = 300) -> Iterator[tuple[Tensor, Tensor]]:
    for numbers in torch.split(torch.randperm(len(distractors), generator=torch.Generator().manual_seed(9)), size):
        yield numbers, distractors[numbers]


def found(probes: Tensor, distractors: Tensor, size: int = 300, **more: Any) -> Identification:
    return Identification.of(probes, IDENTITY, blocks(distractors, size), AMONG, **more)


def brute(probes: Tensor, distractors: Tensor, size: int) -> float:
    shares = []
    for one, other in permutations(range(len(IDENTITY)), 2):
        if IDENTITY[one] == IDENTITY[other]:
            mate = float(probes[one] @ probes[other])
            rivals = [float(probes[one] @ distractors[number]) for number in AMONG[size].tolist()]
            slack = ties.tolerance(torch.float32)
            closer = sum(rival > mate + slack for rival in rivals)
            tied = sum(abs(rival - mate) <= slack for rival in rivals)
            shares.append(0.0 if closer else 1 / (1 + tied))
    return sum(shares) / len(shares)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("k", "size"), [("1e1", 10), ("1e2", 100), ("1e3", 1000)])
def test_rank_1_equals_brute_force(seed: int, k: Any, size: int) -> None:
    probes, distractors = drawn(seed)
    value = Rank1(k=k)(found(probes, distractors))
    assert 0 < value <= 1
    assert value == pytest.approx(brute(probes, distractors, size), abs=1e-12)


def test_mates_that_distractors_equal_are_found_by_chance() -> None:
    probes, distractors = drawn(0)
    distractors[[41, 43, 500]] = probes[0]  # as close to probe 0 as nothing else, and to its mates as it is itself
    for k, size in (("1e1", 10), ("1e3", 1000)):
        value = Rank1(k=k)(found(probes, distractors))  # type: ignore[arg-type]
        assert value == pytest.approx(brute(probes, distractors, size), abs=1e-12)
    collapsed = torch.ones_like(probes) / 4
    everywhere = found(collapsed, torch.ones_like(distractors) / 4)
    assert [Rank1(k=k)(everywhere) for k in ("1e1", "1e2")] == pytest.approx([1 / 11, 1 / 101])


@pytest.mark.parametrize(("size", "chunk"), [(1, 1), (7, 50), (300, 64), (1000, 2**25)])
def test_neither_blocks_nor_chunks_matter(size: int, chunk: int) -> None:
    probes, distractors = drawn(2)
    usual, other = found(probes, distractors), found(probes, distractors, size, chunk=chunk)
    for among in AMONG:
        first, second = usual.first(among), other.first(among)
        assert first is not None
        assert second is not None
        assert torch.equal(first, second)


def test_without_a_list_or_a_mate_there_is_no_value() -> None:
    probes, distractors = drawn(0)
    assert math.isnan(Rank1(k="1e6")(found(probes, distractors)))
    alone = Identification.of(probes[:3], torch.arange(3), blocks(distractors), AMONG)
    assert math.isnan(Rank1(k="1e2")(alone))


class _Largest(TorchDispatchMode):
    """Notes the largest number of values that any operation gave."""

    def __init__(self) -> None:
        super().__init__()
        self.values = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.values = max([self.values, *(one.numel() for one in tree_leaves(result) if isinstance(one, Tensor))])
        return result


@pytest.mark.parametrize("collapsed", [False, True])
def test_no_more_is_held_than_a_chunk(collapsed: bool) -> None:
    chunk, block = 2_000, 100  # 11 x 1,000 cosines there are
    probes, distractors = drawn(3)
    if collapsed:
        probes, distractors = torch.ones_like(probes) / 4, torch.ones_like(distractors) / 4
    with _Largest() as largest:
        Identification.of(probes, IDENTITY, blocks(distractors, block), AMONG, chunk=chunk)
    assert largest.values <= chunk
