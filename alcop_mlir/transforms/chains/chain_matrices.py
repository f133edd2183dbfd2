"""Matrices that a chain multiplies: their tiles in shared memory, and contractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number
from alcop_mlir.transforms.linalg.matrices import view
from alcop_mlir.transforms.tiling.tile_access import read_tile


@dataclass
class ChainMatrix:
    """A matrix of an operand for a block's batch, and its tiles in shared memory.

    loops: "mk", "nk", "nd", or the other way round, as memory has them
    """

    memory: Any
    loops: str
    buffer: Any

    def copy(
        self,
        first: Mapping[str, Any],
        sizes: Mapping[str, Number],
        is_whole: bool = False,
    ) -> None:
        """Copy the tile that begins at `first`, as far as the matrix has it.

        sizes: of the matrix. What does not exist of rows of values is zero; no row or
        column that does not exist of others is used. is_whole: all of it exists.
        """
        shape = self.buffer.type.shape
        zero = build.index(0)
        offsets = [first.get(loop, zero) for loop in self.loops]
        extents: list[Any] = list(shape)
        for number, loop in enumerate(self.loops):
            size = sizes[loop]
            if is_whole or loop not in first:
                continue
            if not isinstance(size, int) or size % shape[number]:
                left = build.sub(size, first[loop])
                extents[number] = build.least(left, shape[number])
        tile = view(self.memory, offsets, extents)
        if extents == shape:
            memref.copy(tile, self.buffer)
            return
        free = [] if "d" in self.loops else [self.loops.index(next(iter(first)))]
        alcop.set_arbitrary(alcop.CopyOp(tile, self.buffer), free)

    def fragment(
        self, first: Mapping[str, ir.Value], extents: Mapping[str, int]
    ) -> Any:
        """The part of the tile that a warp multiplies."""
        zero = build.index(0)
        offsets = [first.get(loop, zero) for loop in self.loops]
        return read_tile(self.buffer, offsets, [extents[loop] for loop in self.loops])


def contract(
    one: ir.Value,
    one_loops: str,
    other: ir.Value,
    other_loops: str,
    accumulators: ir.Value,
    loops: str,
) -> Any:
    """Accumulators along the first two loops, of operands with loops of their own."""
    maps = [
        build.loop_map(3, map(loops.index, letters))
        for letters in (one_loops, other_loops, loops[:2])
    ]
    kinds = [
        ir.Attribute.parse(f"#vector.iterator_type<{kind}>")
        for kind in ("parallel", "parallel", "reduction")
    ]
    return vector.contract(
        accumulators.type, one, other, accumulators, maps, ir.ArrayAttr.get(kinds)
    )
