"""Builders of copies by TMA, and of the mbarriers that order them.

Ops are those of upstream's nvgpu dialect: `nvgpu.tma.create.descriptor` on the host is
an argument of the kernel afterwards, a CUtensorMap that the launcher encodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import is_inside
from alcop_mlir.analysis.ir.slices import captured
from alcop_mlir.analysis.layout.tensor_boxes import ROWS_OF_PATTERN, TensorBoxes
from alcop_mlir.bindings import arith, ir, llvm, memref, nvgpu, nvvm
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit

# Nanoseconds that a try_wait may sleep before it looks again: PTX ISA,
# mbarrier.try_wait, suspendTimeHint. As CUTLASS has it, beyond any wait.
_TICKS = 10_000_000
_OF_CLUSTER = "!llvm.ptr<7>"  # an address in shared memory of any of its blocks
_DYNAMIC = -(1 << 31)  # of llvm.getelementptr: an index that is a value
_ANYWHERE = 0  # flags of llvm.getelementptr


def make_map(boxes: TensorBoxes, launch: ir.Operation) -> Any:
    """The tensor map of `boxes`, on the host: just before the launch."""
    with ir.InsertionPoint(launch):
        source = _on_host(boxes.memref, launch, {})
        element = source.type.element_type
        shape = "x".join(map(str, boxes.box))
        kind = ir.Type.parse(
            f"!nvgpu.tensormap.descriptor<tensor = memref<{shape}x{element}, 3>, "
            f"swizzle = swizzle_{boxes.swizzle}b, l2promo = l2promo_128b, oob = zero, "
            "interleave = none>"
        )
        unranked = memref.cast(ir.UnrankedMemRefType.get(element, None), source)
        sizes = [build.index(extent) for extent in boxes.box]
        made = nvgpu.tma_create_descriptor(kind, unranked, sizes)
        if boxes.rounded is not None:
            # Its type has the elements of the buffer: upstream's loads ask for that.
            alcop.set_rounded(made.owner, boxes.rounded)
        return made


def _on_host(value: ir.Value, launch: ir.Operation, known: dict[Any, Any]) -> Any:
    """A value of the host, or what makes it in the kernel, built again there."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not is_inside(owner.operation, launch):
        return value
    for operand in captured(owner):
        _on_host(operand, launch, known)
    if value not in known:
        edit.clone(owner.operation, known)
    return known[value]


@frozen
class TensorLoad:
    """The loads of a tile into a slot of the buffer that `target` is a view of.

    boxes: of the whole tile
    part:  the boxes that a block of a cluster loads for all of its blocks, of equal
           parts; None where it loads the whole tile for itself
    """

    boxes: TensorBoxes
    map: Any
    target: Any
    part: TensorBoxes | None = None

    @property
    def buffer(self) -> Any:
        """The buffer with all slots."""
        return memory.root(self.target)

    @property
    def bytes(self) -> int:
        """Bytes of all boxes of a slot, those beyond the memref's edge included."""
        size = element_bytes(self.buffer.type)
        return self.boxes.count * self.boxes.elements * size

    @property
    def needed(self) -> list[Any]:
        """The values that say where the tile is."""
        parts = [part for parts in self.boxes.offsets for part in parts]
        return [part for part in parts if isinstance(part, ir.Value)]

    @property
    def alignment(self) -> int:
        """Bytes that the pattern of the swizzle repeats after."""
        return ROWS_OF_PATTERN * self.boxes.swizzle

    def prefetch(self) -> None:
        """Bring the tensor map to where the copy engine looks for it."""
        nvgpu.TmaPrefetchOp(self.map)

    def issue(
        self,
        mapping: Mapping[Any, Any],
        slot: ir.Value,
        full: Barriers,
        cluster: Cluster | None,
    ) -> None:
        """Build the loads; `mapping` has the values of this iteration."""
        kind = self.buffer.type
        slot_elements = math.prod(kind.shape[1:])
        first = build.mul(slot, build.index(slot_elements))
        *outer, column = (summed(parts, mapping) for parts in self.boxes.offsets)
        loaded, mask = self.boxes, None
        if self.part is not None and cluster is not None:
            loaded, mask = self.part, cluster.mask
            whole = loaded.count * loaded.elements
            first = build.add(first, build.mul(cluster.rank, whole))
            places = [*outer, column]
            dim = self.boxes.cut(loaded)
            extent = loaded.box[dim] * (loaded.count if dim == len(outer) else 1)
            places[dim] = build.add(places[dim], build.mul(cluster.rank, extent))
            *outer, column = places
        for number in range(loaded.count):
            at = build.add(column, number * loaded.columns) if number else column
            coordinates = [build.value(one) for one in (at, *reversed(outer))]
            offset = build.add(first, number * loaded.elements)
            box = self._box(loaded, offset)
            nvgpu.TmaAsyncLoadOp(
                box, full.group, self.map, coordinates, slot, multicastMask=mask
            )

    def _box(self, boxes: TensorBoxes, offset: Any) -> Any:
        """The box at an offset in elements, as a memref."""
        return build.dense_part(self.buffer, list(boxes.box), offset)


def summed(parts: Sequence[Any], mapping: Mapping[Any, Any]) -> Any:
    """The sum of values, in an iteration, and of ints."""
    found = [
        mapping.get(part, part) if isinstance(part, ir.Value) else part
        for part in parts
    ]
    number = sum(part for part in found if isinstance(part, int))
    values = [part for part in found if not isinstance(part, int)]
    if not values:
        return number
    total = values[0]
    for value in values[1:]:
        total = build.add(total, value)
    return build.add(total, number) if number else total


@frozen
class Barriers:
    """An mbarrier for each slot of a ring."""

    group: Any

    @staticmethod
    def create(slots: int) -> Barriers:
        """New ones, which nobody has initialised."""
        kind = ir.Type.parse(
            f"!nvgpu.mbarrier.group<memorySpace = {build.WORKGROUP}, "
            f"num_barriers = {slots}>"
        )
        return Barriers(nvgpu.mbarrier_create(kind))

    def initialise(self, slot: int, arrivals: int) -> None:
        """By one thread: a phase ends after so many arrivals."""
        nvgpu.mbarrier_init(self.group, build.index(arrivals), build.index(slot))

    def expect(self, slot: ir.Value, count: int) -> None:
        """Arrive, and let the phase wait for so many bytes."""
        nvgpu.mbarrier_arrive_expect_tx(self.group, build.index(count), slot)

    def arrive(self, slot: ir.Value) -> None:
        """Arrive."""
        nvgpu.MBarrierArriveOp(self.group, slot)

    def of_block(self, number: ir.Value) -> RemoteBarriers:
        """The same ones of a block of the cluster, by its number of 32 bits."""
        address = nvgpu.mbarrier_get(build.integer(64), self.group, build.index(0))
        own = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), address)
        return RemoteBarriers(nvvm.mapa(ir.Type.parse(_OF_CLUSTER), own, number))

    def wait(self, slot: ir.Value, parity: ir.Value) -> None:
        """Wait for the end of the phase of this parity, an i1."""
        nvgpu.mbarrier_try_wait_parity(self.group, parity, build.index(_TICKS), slot)


@frozen
class RemoteBarriers:
    """The mbarriers of a ring in another block of the cluster.

    first: where the first lies, in the shared memory of the cluster (PTX ISA, mapa)
    """

    first: Any

    def arrive(self, slot: ir.Value) -> None:
        """Arrive, as CUTLASS does: of the scope of the block.

        What it orders are reads by wgmma, which have ended, and copies by TMA. In the
        scope of the cluster ptxas would wait for all memory (MEMBAR.ALL.GPU).
        """
        word = build.integer(64)
        place = arith.index_cast(word, slot)
        address = llvm.GEPOp(
            self.first.type, self.first, [place], [_DYNAMIC], word, _ANYWHERE
        )
        nvvm.MBarrierArriveOp(address.result)


@frozen
class Cluster:
    """The blocks of a cluster, as one of them sees it.

    size: blocks
    rank: the number of the block in it, an index
    """

    size: int
    rank: Any

    @property
    def mask(self) -> Any:
        """All blocks, for a copy that reaches each: PTX ISA, cp.async.bulk.tensor."""
        return arith.constant(build.integer(16), (1 << self.size) - 1)
