"""Which blocks of a grid run together, and which of their warps run in step.

These are numbers only: what the warps hold (registers, memory) is in `cohort` and
`batch`, which are built on the classes here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array

Mask = Array | None  # which lanes are on; None: all of them
Dim3 = tuple[int, int, int]
LANES = 32  # PTX ISA: WARP_SZ
WARPGROUP = 4  # PTX ISA "Asynchronous Warpgroup Level Matrix Instructions": warps
LANE_BIT = np.uint32(1) << np.arange(LANES, dtype=np.uint32)  # of a member mask


def live(mask: Array) -> Mask | bool:
    """None if all lanes are on, False if none is, else the mask itself."""
    if mask.all():
        return None
    return mask if mask.any() else False


def compact(mask: Array) -> Array:
    """The mask once for all blocks, if it is the same in all."""
    return mask[:1] if len(mask) > 1 and (mask == mask[0]).all() else mask


def block_coordinates(number: int, grid: Dim3) -> Dim3:
    """`%ctaid` of a block by its number, x fastest."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


@dataclass(frozen=True)
class Shape:
    """The sizes of a launch: of its grid and its clusters in blocks, and of a block.

    is_explicit: whether the kernel or the launch asks for clusters

    Blocks of a cluster see each other's shared memory and have common barriers, so that
    the machine takes a *cluster* for one block: with the warps of all of its blocks,
    rank after rank, and their shared memory. In a launch without clusters each block
    is one.
    """

    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    is_explicit: bool = False

    @property
    def threads(self) -> int:
        """Those of a block."""
        return math.prod(self.block)

    @property
    def ranks(self) -> int:
        """The blocks of a cluster."""
        return math.prod(self.cluster)

    @property
    def clusters(self) -> Dim3:
        """How many there are."""
        x, y, z = (n // c for n, c in zip(self.grid, self.cluster, strict=True))
        return x, y, z

    @property
    def warps(self) -> int:
        """Those of a block.

        Where clusters have several blocks, none shares a warpgroup with the next one:
        there are up to three warps without lanes.
        """
        warps = -(-self.threads // LANES)
        return warps if self.ranks == 1 else -(-warps // WARPGROUP) * WARPGROUP

    def block_at(self, number: int, rank: int) -> Dim3:
        """`%ctaid` of the block of that rank in cluster `number` of the grid."""
        first = block_coordinates(number, self.clusters)
        inside = block_coordinates(rank, self.cluster)
        sizes = zip(first, self.cluster, inside, strict=True)
        x, y, z = (one * size + place for one, size, place in sizes)
        return x, y, z

    def place_of(self, number: int) -> tuple[int, int]:
        """The number of the cluster, and the rank in it, of block `number`."""
        block = block_coordinates(number, self.grid)
        pairs = [divmod(n, c) for n, c in zip(block, self.cluster, strict=True)]
        (x, i), (y, j), (z, k) = pairs
        (p, q, _), (u, v, _) = self.clusters, self.cluster
        return x + p * (y + q * z), i + u * (j + v * k)


class Names:
    """What messages call the blocks and warps of some clusters."""

    def __init__(self, numbers: Array, shape: Shape):
        self.numbers, self.shape = numbers, shape

    def block(self, index: int, warp: int = 0) -> Dim3:
        """`%ctaid` of the block that has this warp of the cluster at `index`."""
        return self.shape.block_at(int(self.numbers[index]), warp // self.shape.warps)

    def warp(self, warp: int) -> int:
        """Its number in its block."""
        return warp % self.shape.warps

    def warp_seen_from(self, index: int, warp: int, other: int) -> str:
        """The number of the warp `other`, with its block if that is not `warp`'s."""
        number, block = self.warp(other), self.block(index, other)
        is_near = block == self.block(index, warp)
        return str(number) if is_near else f"{number} of block {block}"

    def listed(self, index: int, warps: Sequence[int]) -> str:
        """`block (x, y, z) warps 0, 1`, and the same of each other block."""
        by_block: dict[Dim3, list[str]] = {}
        for warp in warps:
            by_block.setdefault(self.block(index, warp), []).append(
                str(self.warp(warp))
            )
        named = [f"block {b} warps {', '.join(w)}" for b, w in by_block.items()]
        return " and ".join(named)


class BlockSet:
    """The clusters `numbers` of a grid (x fastest), which run together.

    `blocks` is how many there are, `warps` how many warps each has, `block_warps` those
    of one of its blocks, `ranks` how many blocks; see `Shape`.
    """

    def __init__(self, numbers: Array, launch: Shape):
        self.numbers = numbers
        self.marks = (numbers + 1).astype(np.int32)  # 0 is left for "no block"
        self.launch = launch
        self.names = Names(numbers, launch)
        self.blocks = len(numbers)
        self.ranks = launch.ranks
        self.block_warps = launch.warps
        self.warps = self.ranks * self.block_warps

    def by_block(self, x: Array) -> Array:
        """(n, warps, ...) as (n * ranks, block_warps, ...)."""
        return x if self.ranks == 1 else x.reshape(-1, self.block_warps, *x.shape[2:])

    def by_warp(self, x: Array) -> Array:
        """(n * ranks,), one for each block, as (n, warps); without clusters (n, 1)."""
        if self.ranks == 1:
            return x[:, None]
        return x.reshape(-1, self.ranks).repeat(self.block_warps, axis=1)


class WarpRange:
    """The warps [first_warp, first_warp + warps) of every block of a set."""

    def __init__(self, block_set: BlockSet, first_warp: int, warps: int):
        self.block_set = block_set
        self.blocks = block_set.blocks
        self.first_warp, self.warps = first_warp, warps
        self.span = slice(first_warp, first_warp + warps)
        self._numbers: dict[Dim3, dict[str, Array]] = {}

    def numbers(self, shape: Dim3) -> dict[str, Array]:
        """The block, the warp and the lane of each entry of a flattened register.

        shape: (1|blocks, 1|warps, lanes); of what has one warp that is the first
        """
        found = self._numbers.get(shape)
        if found is None:
            block, warp, lane = np.indices(shape).reshape(3, -1)
            found = {"block": block, "warp": warp + self.first_warp, "lane": lane}
            self._numbers[shape] = found
        return found

    def numbers_in_block(self) -> Array:
        """The number of each warp in its block, (warps,)."""
        span = np.arange(self.first_warp, self.first_warp + self.warps)
        return span % self.block_set.block_warps

    def ranks(self) -> Array:
        """The rank in its cluster of each warp's block, (warps,)."""
        span = np.arange(self.first_warp, self.first_warp + self.warps)
        return span // self.block_set.block_warps

    def threads(self) -> Array:
        """The number in its block of each thread, (1, warps, 32)."""
        first = self.numbers_in_block() * LANES
        return (first[:, None] + np.arange(LANES))[None]

    def lanes_in_block(self) -> Mask:
        """All lanes, but for a last warp that the block does not fill."""
        inside = self.threads() < self.block_set.launch.threads
        return None if inside.all() else inside
