"""Which blocks of a grid run together, and which of their warps run in step.

These are numbers only: what the warps hold (registers, memory) is in `cohort` and
`batch`, which are built on the classes here.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array

Mask = Array | None  # which lanes are on; None: all of them
Dim3 = tuple[int, int, int]
LANES = 32  # PTX ISA: WARP_SZ
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


class BlockSet:
    """The blocks `numbers` of a grid (x fastest), which run together.

    `blocks` is how many there are; `threads` and `warps` are those of one block.
    """

    def __init__(self, numbers: Array, grid: Dim3, block: Dim3):
        self.numbers = numbers
        self.marks = (numbers + 1).astype(np.int32)  # 0 is left for "no block"
        self.grid, self.block = grid, block
        self.blocks = len(numbers)
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // LANES)

    def coordinates(self, index: int) -> Dim3:
        """`%ctaid` of the block at `index` of the set."""
        return block_coordinates(int(self.numbers[index]), self.grid)


class WarpRange:
    """The warps [first_warp, first_warp + warps) of every block of a set."""

    def __init__(self, block_set: BlockSet, first_warp: int, warps: int):
        self.block_set = block_set
        self.blocks = block_set.blocks
        self.first_warp, self.warps = first_warp, warps
        self.span = slice(first_warp, first_warp + warps)
        self._warp_of: dict[int, Array] = {}
        self._lane_of: dict[int, Array] = {}

    def warp_of(self, width: int) -> Array:
        """The warp of each of `width` lanes of every warp, flat."""
        found = self._warp_of.get(width)
        if found is None:
            span = np.arange(self.first_warp, self.first_warp + self.warps)
            found = self._warp_of[width] = np.repeat(span, width)
        return found

    def lane_of(self, width: int) -> Array:
        """The lane of each of `width` lanes of every warp, flat."""
        found = self._lane_of.get(width)
        if found is None:
            found = self._lane_of[width] = np.tile(np.arange(width), self.warps)
        return found

    def lanes_in_block(self) -> Mask:
        """All lanes, but for a last warp that the block does not fill."""
        first = self.first_warp * LANES
        thread = first + np.arange(self.warps * LANES).reshape(1, self.warps, LANES)
        inside = thread < self.block_set.threads
        return None if inside.all() else inside
