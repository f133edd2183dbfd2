"""Which lanes make an access, and where: the flat form of an address register.

Registers are arrays that broadcast to (blocks, warps, 32). An access flattens them to
one entry per active lane. When neither the offset nor the mask depends on the block,
one entry stands for that lane in *every* block of the batch (`per_block` is False);
this is what keeps shared memory and its race shadow cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator.cohort import Cohort

Array = np.ndarray
Mask = Array | None
LANES = 32  # PTX ISA: WARP_SZ


def live(mask: Array) -> Mask | bool:
    """None if all lanes are on, False if none is, else the mask itself."""
    if mask.all():
        return None
    return mask if mask.any() else False


class Lanes:
    """The active lanes of one access by a cohort.

    `shape` is (1 or blocks, warps, lanes of a warp); `index` holds the active entries
    of the flattened shape, or None for all; `offset` has one int64 per active entry.
    """

    __slots__ = ("cohort", "index", "offset", "shape")

    def __init__(
        self,
        cohort: Cohort,
        shape: tuple[int, int, int],
        index: Array | None,
        offset: Array,
    ):
        self.cohort = cohort
        self.shape = shape
        self.index = index
        self.offset = offset

    @classmethod
    def of(cls, cohort: Cohort, value: Array, mask: Mask, width: int = LANES) -> Lanes:
        """The lanes that `mask` leaves on, with their entries of `value`."""
        blocks = value.shape[0]
        if mask is None:
            shape = (blocks, cohort.warps, width)
            return cls(cohort, shape, None, np.broadcast_to(value, shape).reshape(-1))
        shape = (max(blocks, mask.shape[0]), cohort.warps, width)
        index = np.flatnonzero(np.broadcast_to(mask, shape))
        return cls(
            cohort, shape, index, np.broadcast_to(value, shape).reshape(-1)[index]
        )

    @classmethod
    def compact(cls, cohort: Cohort, value: Array, mask: Mask) -> Lanes:
        """Like `of`, with one entry for all lanes (warps) that share a value.

        For reads of memory that does not tell its readers apart; `warp` and `lane`
        then give the first of them.
        """
        if mask is not None:
            return cls.of(cohort, value, mask)
        return cls(cohort, value.shape, None, value.reshape(-1))

    @property
    def per_block(self) -> bool:
        return self.shape[0] > 1

    def pick(self, value: Array) -> Array:
        """The entries of a register for the active lanes; shape (entries,)."""
        flat = np.broadcast_to(value, self.shape).reshape(-1)
        return flat if self.index is None else flat[self.index]

    def pick_blocks(self, value: Array) -> Array:
        """Like `pick`, but (blocks, entries) when one entry stands for every block."""
        if self.per_block:
            return self.pick(value)
        shape = (self.cohort.blocks, *self.shape[1:])
        flat = np.broadcast_to(value, shape).reshape(shape[0], -1)
        return flat if self.index is None else flat[:, self.index]

    def place(self, entries: Array) -> Array:
        """A register from (entries,) or (blocks, entries); lanes off read 0."""
        blocks = self.cohort.blocks if entries.ndim == 2 else self.shape[0]
        shape = (blocks, *self.shape[1:])
        if self.index is None:
            return entries.reshape(shape)
        lead = entries.shape[:-1]
        out = np.zeros(
            (*lead, self.shape[0] * self.shape[1] * self.shape[2]), entries.dtype
        )
        out[..., self.index] = entries
        return out.reshape(shape)

    def subset(self, keep: Array) -> Lanes | None:
        """The entries whose register `keep` is true; None if there are none."""
        if keep.shape[0] > 1 and not self.per_block:
            return self.widened().subset(keep)
        chosen = np.flatnonzero(self.pick(keep))
        if not chosen.size:
            return None
        index = chosen if self.index is None else self.index[chosen]
        return Lanes(self.cohort, self.shape, index, self.offset[chosen])

    def widened(self) -> Lanes:
        """The same lanes with an entry of their own in every block."""
        if self.per_block or self.cohort.blocks == 1:
            return self
        blocks = self.cohort.blocks
        shape = (blocks, *self.shape[1:])
        index = None
        if self.index is not None:
            step = self.shape[1] * self.shape[2]
            index = (np.arange(blocks)[:, None] * step + self.index).reshape(-1)
        return Lanes(self.cohort, shape, index, np.tile(self.offset, blocks))

    def _position(self) -> Array:
        if self.index is not None:
            return self.index
        return np.arange(self.shape[0] * self.shape[1] * self.shape[2])

    def block(self) -> Array:
        """Index in the batch of each entry's block (0 if it stands for every block)."""
        return self._position() // (self.shape[1] * self.shape[2])

    def warp(self) -> Array:
        """The warp of each entry, numbered in its block."""
        shape = self.shape
        if self.index is None and shape[:2] == (1, self.cohort.warps):
            return self.cohort.warp_of(shape[2])
        return self.cohort.first_warp + self._position() // shape[2] % shape[1]

    def lane(self) -> Array:
        """The lane of each entry (for ldmatrix: the lane that gives the address)."""
        shape = self.shape
        if self.index is None and shape[:2] == (1, self.cohort.warps):
            return self.cohort.lane_of(shape[2])
        return self._position() % shape[2]
