"""Builders of stores by TMA, of what warps bring to shared memory: `StagedStore`."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.layout.stored_boxes import ROWS
from alcop_mlir.analysis.layout.tensor_boxes import TensorBoxes
from alcop_mlir.bindings import arith, ir, nvgpu, nvvm, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.transforms.roles.tensor_loads import summed

_ALL_LANES = -1  # as a mask
_SHARED_PROXY = "#nvvm.proxy_kind<async.shared>"
_OF_BLOCK = "#nvvm.shared_space<cta>"


@frozen
class StagedStore:
    """The store of a warp's tile, in portions that pass through slots of the warp.

    value:  the tile, a vector
    boxes:  of the first portion
    map:    of C
    buffer: the slots of all warps, each with a portion
    slots:  of a warp
    thread: the number of a thread in the block
    """

    value: Any
    boxes: TensorBoxes
    map: Any
    buffer: Any
    slots: int
    thread: Any

    def build(self) -> None:
        """Build all portions; a slot is written when the engine has read it."""
        rows, columns = self.value.type.shape
        places = [
            (row, column)
            for row in range(0, rows, ROWS)
            for column in range(0, columns, self.boxes.columns)
        ]
        warp = arith.index_castui(ir.IndexType.get(), build.warp_number(self.thread))
        first = build.mul(warp, self.slots * self.boxes.elements)
        elected = nvvm.elect_sync()
        for number, place in enumerate(places):
            slot = number % self.slots
            offset = build.plus(first, slot * self.boxes.elements)
            self._portion(place, offset, elected)

    def _portion(
        self, place: tuple[int, int], offset: ir.Value, elected: ir.Value
    ) -> None:
        """Build one, which begins at a row and a column of the tile."""
        nvvm.CpAsyncBulkWaitGroupOp(self.slots - 1, read=True)
        _meet()
        shape = [ROWS, self.boxes.columns]
        part = self.value
        if part.type.shape != shape:
            kind = ir.VectorType.get(shape, part.type.element_type)
            part = vector.extract_strided_slice(kind, part, list(place), shape, [1, 1])
        zero = build.index(0)
        inside = ir.ArrayAttr.get([ir.BoolAttr.get(True)] * 2)
        along = ir.AffineMapAttr.get(ir.AffineMap.get_identity(2))
        vector.TransferWriteOp(
            None, part, self._slot(shape, offset), [zero, zero], along, inside
        )
        # By each lane: what it has written, the engine may read.
        nvvm.FenceProxyOp(
            ir.Attribute.parse(_SHARED_PROXY), space=ir.Attribute.parse(_OF_BLOCK)
        )
        _meet()

        def issue() -> None:
            box = self._slot(list(self.boxes.box), offset)
            nvgpu.TmaAsyncStoreOp(box, self.map, self._coordinates(place))
            nvvm.CpAsyncBulkCommitGroupOp()

        build.branch(elected, issue)

    def _slot(self, shape: list[int], offset: ir.Value) -> Any:
        """The slot at an offset in elements."""
        return build.dense_part(self.buffer, shape, offset)

    def _coordinates(self, place: tuple[int, int]) -> list[Any]:
        """Of a portion in C, innermost first."""
        found = [summed(parts, {}) for parts in self.boxes.offsets]
        row = self.boxes.box.index(ROWS)
        for dim, number in zip((row, len(found) - 1), place, strict=True):
            if number:
                found[dim] = build.add(found[dim], number)
        return [build.value(one) for one in reversed(found)]


def _meet() -> None:
    """Let the lanes of a warp wait for each other, and see what they wrote."""
    nvvm.bar_warp_sync(build.i32(_ALL_LANES))
