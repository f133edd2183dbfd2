"""Store what warps with roles have computed through shared memory, by TMA.

Before:  vector.transfer_write %c, %C[%m, %n] : vector<16x128xf16>, memref<?x?xf16>
After:   %map = nvgpu.tma.create.descriptor %C box[16, 64]        // on the host
         %stage = memref.alloc() {alcop.boxes} : memref<16x16x64xf16, 3>
         ... for each portion, here columns 0 and 64:
         nvvm.cp.async.bulk.wait_group 1 {read}     // the one before the last is read
         nvvm.bar.warp.sync
         %part = vector.extract_strided_slice %c [0, 64] [16, 64]
         vector.transfer_write %part, %slot[0, 0] : vector<16x64xf16>, memref<16x64xf16>
         nvvm.fence.proxy {async.shared} ; nvvm.bar.warp.sync
         scf.if %elected {
           nvgpu.tma.async.store %slot to %map[%n + 64, %m]
           nvvm.cp.async.bulk.commit.group }
         ... and where the roles end: nvvm.cp.async.bulk.wait_group 0 {read}

A lane has two elements of a row side by side. Stored from there, four lanes have to
exchange them until one has 16 bytes; `stmatrix` brings rows of a whole box into shared
memory at once, of words a lane stores both, and the copy engine stores whole lines of
C, and what is inside of C only: where tiles may exceed it, and two branches differ in
that alone, one is left.

A portion is 16 rows of a warp, as wide as a swizzle's pattern. Each warp has one or two
slots of its own, so that no warp waits for another: only for the copy engine, until it
has read the slot that comes next. The lane that issues a copy is the one that waits for
it; barriers of the warp tell the other lanes. Before the engine may see what all of
them wrote, each has a fence (PTX ISA, "Async proxy"). A block may end when its slots
have been read.

Only in launches with contractions by wgmma, of elements of 16 or 32 bits. What does not
fit is stored from registers, with a remark: rows that are not multiples of 16 bytes
apart, C that is a part of something else, or no room in shared memory beside the ring.

Runs after alcop-specialize-warps and alcop-expand-pipelines, and before
alcop-lower-mma, which stores tiles to buffers with `alcop.boxes` as TMA reads them.
Writes `alcop.boxes`, and reads `alcop.wgmma`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir import resources
from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import ancestor_in
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.bound_branches import checked_branch, is_same
from alcop_mlir.analysis.layout.fragments import CONTRACT, WRITE
from alcop_mlir.analysis.layout.stored_boxes import ROWS, stored_boxes
from alcop_mlir.analysis.layout.tensor_boxes import ROWS_OF_PATTERN, TensorBoxes
from alcop_mlir.bindings import ir, nvvm
from alcop_mlir.diagnostics import remark
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.target import (
    DEFAULT_TARGET,
    WARP_SIZE,
    WARPGROUP,
    Target,
    find_target,
)
from alcop_mlir.transforms.roles.tensor_loads import make_map
from alcop_mlir.transforms.roles.tensor_stores import StagedStore

_THREAD_X = 3  # argument of a gpu.launch
_ALLOC = "memref.alloc"
_MOST_SLOTS = 2  # of a warp: one is filled while the other is read


@frozen
class StoreTiles(Pass):
    name = "alcop-store-tiles"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU whose shared memory the slots must fit")

    def __post_init__(self) -> None:
        find_target(self.target)

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        for launch in walk(op, "gpu.launch"):
            if any(alcop.WGMMA in one.attributes for one in walk(launch, CONTRACT)):
                _store_tiles(launch, target)


@frozen
class _Store:
    """A store of a warp's tile, and the box of its first portion."""

    write: Any
    boxes: TensorBoxes

    @property
    def portions(self) -> int:
        """How many the tile has."""
        rows, columns = self.write.operands[0].type.shape
        return rows // ROWS * (columns // self.boxes.columns)

    @property
    def kind(self) -> Any:
        """The type of a slot with a portion."""
        element = self.write.operands[1].type.element_type
        return build.workgroup_memref([ROWS, self.boxes.columns], element)

    @property
    def bytes(self) -> int:
        """Of a portion."""
        return math.prod(self.kind.shape) * element_bytes(self.kind)


def _store_tiles(launch: ir.Operation, target: Target) -> None:
    """Store the tiles of a launch that fit; say why others do not."""
    writes = _writes(launch)
    alike = _branches_alike(launch)
    late = [
        write for write in writes if not any(_is_dropped(write, one) for one in alike)
    ]
    stores = []
    for write in late:
        boxes = stored_boxes(write)
        if isinstance(boxes, str):
            remark(write, f"C is stored from registers, not by TMA: {boxes}")
        else:
            stores.append(_Store(write, boxes))
    slots = _slots(launch, stores, target)
    if not slots:
        return
    known = {store.write for store in stores}
    for branch in alike:
        if all(one.operation in known for one in _writes_of(branch[1])):
            _keep_one(*branch)
    _build(launch, stores, slots)


def _writes(launch: ir.Operation) -> list[Any]:
    """The stores of warps' tiles to memory that is not the block's."""
    return [
        op
        for op in walk(launch, WRITE)
        if op.operands[0].type.rank == len("mn")
        and not memory.is_workgroup(op.operands[1].type)
    ]


def _writes_of(block: ir.Block) -> list[Any]:
    return [one.operation for one in block.operations if one.operation.name == WRITE]


def _branches_alike(launch: ir.Operation) -> list[tuple[Any, Any]]:
    """Branches that differ in checks of bounds alone, and the blocks with these."""
    found = [(branch, checked_branch(branch)) for branch in walk(launch, "scf.if")]
    return [(op, block) for op, block in found if block and _writes_of(block)]


def _is_dropped(write: ir.Operation, branch: tuple[Any, Any]) -> bool:
    """Whether a store is in the block of a branch that the other one stands for."""
    op, block = branch
    return write.parent == op and write.block != block


def _keep_one(branch: ir.Operation, block: ir.Block) -> None:
    """Put the ops of a block in place of its branch."""
    for op in list(block.operations)[:-1]:
        op.move_before(branch)
    branch.erase()


def _computing_warps(launch: ir.Operation) -> int:
    """Those in front of the warpgroup that copies."""
    block = enclosing(launch.regions[0].blocks[0].operations[0])
    assert block is not None, launch
    assert block.threads is not None, launch
    return block.threads // WARP_SIZE - WARPGROUP


def _slots(launch: ir.Operation, stores: Sequence[_Store], target: Target) -> int:
    """Slots of a warp, which the portions of each store go through; 0 without room.

    Each store begins in the first slot, so that the number divides that of portions.
    """
    if not stores:
        return 0
    kinds = {store.kind: store.bytes for store in stores}
    needed = _computing_warps(launch) * sum(kinds.values())
    room = _room(launch, target)
    for slots in range(_MOST_SLOTS, 0, -1):
        is_whole = all(store.portions % slots == 0 for store in stores)
        if is_whole and slots * needed <= room:
            return slots
    for store in stores:
        remark(
            store.write,
            "C is stored from registers, not by TMA: a slot for each warp needs "
            f"{needed} bytes of shared memory, {max(0, room)} are left: fewer stages "
            "or a smaller block",
        )
    return 0


def _room(launch: ir.Operation, target: Target) -> int:
    """Bytes of shared memory that the launch leaves, without fewer blocks on an SM."""
    buffers = [op.results[0].type for op in walk(launch, _ALLOC)]
    sizes = [
        memory.size_in_bytes(kind) for kind in buffers if memory.is_workgroup(kind)
    ]
    used = resources.SHARED_BYTES_OF_RINGS + sum(size or 0 for size in sizes)
    reserved = resources.SHARED_BYTES_RESERVED_PER_BLOCK
    blocks = max(1, target.shared_bytes_per_sm // (used + reserved))
    if resources.role_registers(_computing_warps(launch) * WARP_SIZE) is not None:
        blocks = 1  # its registers fill an SM
    of_block = target.shared_bytes_per_sm // blocks - reserved
    return min(target.shared_bytes_per_block, of_block) - used


def _build(launch: ir.Operation, stores: Sequence[_Store], slots: int) -> None:
    """Build all stores, and the wait for the last ones, where the roles end."""
    body = launch.regions[0].blocks[0]
    warps = _computing_warps(launch)
    buffers: dict[Any, Any] = {}
    maps: list[tuple[TensorBoxes, Any]] = []
    for store in stores:
        kind = store.kind
        if kind not in buffers:
            # Behind those of the ring, which begin where shared memory does.
            ops = [one.operation for one in body.operations]
            last = [one for one in ops if one.name == _ALLOC][-1]
            with launch.location, ir.InsertionPoint.after(last):
                buffers[kind] = _buffer(store, warps * slots)
        with store.write.location, ir.InsertionPoint(store.write):
            StagedStore(
                store.write.operands[0],
                store.boxes,
                _map(store.boxes, launch, maps),
                buffers[kind],
                slots,
                body.arguments[_THREAD_X],
            ).build()
    last = ancestor_in(stores[-1].write, body)
    assert last is not None, launch
    with launch.location, ir.InsertionPoint.after(last):
        nvvm.CpAsyncBulkWaitGroupOp(0, read=True)
    for store in stores:
        store.write.erase()


def _buffer(store: _Store, count: int) -> Any:
    """So many slots, of whole patterns of the swizzle."""
    kind, boxes = store.kind, store.boxes
    buffer = build.alloc(
        build.workgroup_memref([count, *kind.shape], kind.element_type)
    )
    aligned = ir.IntegerAttr.get(build.integer(64), ROWS_OF_PATTERN * boxes.swizzle)
    buffer.owner.attributes["alignment"] = aligned
    alcop.put_boxes(buffer.owner, boxes.columns, boxes.swizzle)
    return buffer


def _map(
    boxes: TensorBoxes, launch: ir.Operation, known: list[tuple[TensorBoxes, Any]]
) -> Any:
    """The tensor map of a memref and a box: one for all stores that have the same."""
    for other, made in known:
        if other.box == boxes.box and is_same(other.memref, boxes.memref):
            return made
    made = make_map(boxes, launch)
    known.append((boxes, made))
    return made
