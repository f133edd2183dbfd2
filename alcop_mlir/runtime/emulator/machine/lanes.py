"""Which lanes make an access, and where: the flat form of an address register.

Registers are arrays that broadcast to (blocks, warps, 32). An access flattens them to
one entry per active lane. When neither the offset nor the mask depends on the block,
one entry stands for that lane in *every* block of the batch (`per_block` is False);
this is what keeps shared memory and its race shadow cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask, WarpRange
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


def spread(value: Array, shape: tuple[int, ...]) -> Array:
    """`np.broadcast_to`, which takes its time, where there is something to do."""
    return value if value.shape == shape else np.broadcast_to(value, shape)


def _flat(value: Array, shape: tuple[int, ...]) -> Array:
    """The entries of what broadcasts to `shape`, in a row."""
    if value.shape == shape:
        return value.reshape(-1)
    out = np.empty(shape, value.dtype)  # sooner than a view that reshape copies
    out[...] = value
    return out.reshape(-1)


@dataclass(slots=True, eq=False)
class Lanes:
    """The active lanes of one access by the warps of `owner`: `size` bytes each.

    `shape` is (1 or blocks, warps, lanes of a warp); `index` holds the active entries
    of the flattened shape, or None for all; `offset` has one int64 per active entry,
    from the start of its memory or of the global window; `ins` is who makes it.
    """

    owner: WarpRange
    shape: tuple[int, int, int]
    index: Array | None
    offset: Array
    size: int
    ins: Instruction

    @classmethod
    def of(
        cls,
        owner: WarpRange,
        offset: Array,
        mask: Mask,
        size: int,
        ins: Instruction,
        width: int = LANES,
    ) -> Lanes:
        """The lanes that `mask` leaves on, with their entries of a register."""
        blocks = offset.shape[0] if mask is None else max(offset.shape[0], len(mask))
        shape = (blocks, owner.warps, width)
        flat = _flat(offset, shape)
        if mask is None:
            return cls(owner, shape, None, flat, size, ins)
        index = np.flatnonzero(spread(mask, shape))
        return cls(owner, shape, index, flat[index], size, ins)

    @classmethod
    def compact(
        cls, owner: WarpRange, offset: Array, mask: Mask, size: int, ins: Instruction
    ) -> Lanes:
        """Like `of`, with one entry for all lanes (warps) that share a value.

        For reads of memory that does not tell its readers apart; `warp` and `lane`
        then give the first of them.
        """
        if mask is not None:
            return cls.of(owner, offset, mask, size, ins)
        return cls(owner, offset.shape, None, offset.reshape(-1), size, ins)

    @property
    def per_block(self) -> bool:
        """Whether every block has entries of its own."""
        return self.shape[0] > 1

    def pick(self, value: Array) -> Array:
        """The entries of a register for the active lanes; shape (entries,)."""
        flat = _flat(value, self.shape)
        return flat if self.index is None else flat[self.index]

    def pick_blocks(self, value: Array) -> Array:
        """Like `pick`, but (blocks, entries) when one entry stands for every block."""
        if self.per_block:
            return self.pick(value)
        shape = (self.owner.blocks, *self.shape[1:])
        flat = spread(value, shape).reshape(shape[0], -1)
        return flat if self.index is None else flat[:, self.index]

    def place(self, entries: Array) -> Array:
        """A register from (entries,) or (blocks, entries); lanes off read 0."""
        blocks = self.owner.blocks if entries.ndim == 2 else self.shape[0]
        shape = (blocks, *self.shape[1:])
        if self.index is None:
            return entries.reshape(shape)
        out = np.zeros((*entries.shape[:-1], math.prod(self.shape)), entries.dtype)
        out[..., self.index] = entries
        return out.reshape(shape)

    def only(self, chosen: Array) -> Lanes:
        """The entries whose numbers are in `chosen`."""
        index = chosen if self.index is None else self.index[chosen]
        return self._with(self.shape, index, self.offset[chosen])

    def at(self, offset: Array, size: int | None = None) -> Lanes:
        """The same lanes at other offsets, for accesses of `size` if it is given."""
        size = self.size if size is None else size
        return Lanes(self.owner, self.shape, self.index, offset, size, self.ins)

    def spread(self, offset: Array, size: int) -> Lanes:
        """Each entry at several offsets, (entries, offsets of one), in their order."""
        index = np.repeat(self._position(), offset.shape[1])
        flat = offset.reshape(-1)
        return Lanes(self.owner, self.shape, index, flat, size, self.ins)

    def widened(self) -> Lanes:
        """The same lanes with an entry of their own in every block."""
        if self.per_block or self.owner.blocks == 1:
            return self
        blocks = self.owner.blocks
        shape = (blocks, *self.shape[1:])
        index = None
        if self.index is not None:
            step = self.shape[1] * self.shape[2]
            index = (np.arange(blocks)[:, None] * step + self.index).reshape(-1)
        return self._with(shape, index, np.tile(self.offset, blocks))

    def _with(
        self, shape: tuple[int, int, int], index: Array | None, offset: Array
    ) -> Lanes:
        return Lanes(self.owner, shape, index, offset, self.size, self.ins)

    def _position(self) -> Array:
        return np.arange(math.prod(self.shape)) if self.index is None else self.index

    def block(self) -> Array:
        """Index in the batch of each entry's block (0 if it stands for every block)."""
        return self._whose("block")

    def warp(self) -> Array:
        """The warp of each entry, numbered in its block."""
        return self._whose("warp")

    def lane(self) -> Array:
        """The lane of each entry (for ldmatrix: the lane that gives the address)."""
        return self._whose("lane")

    def _whose(self, what: str) -> Array:
        every = self.owner.numbers(self.shape)[what]
        return every if self.index is None else every.take(self.index)
