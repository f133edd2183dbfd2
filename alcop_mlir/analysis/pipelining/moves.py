"""Recognises what a single op copies from global into shared memory: a `Move`.

  tile    memref.copy, alcop.copy, linalg.copy, a linalg.generic that yields its input:
          one copy by all threads of the block; alcop.gather: of rows anywhere
  thread  a load from global memory whose only use is a store to shared memory: a copy
          by each thread; perhaps of the first few elements, the rest zero, by a mask
          of vector.create_mask; perhaps of what an scf.if loads, or else is computed
  async   nvgpu.device_async_copy: the same, asynchronous already

Nothing is changed here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import address_alignment, divisor, element_bytes
from alcop_mlir.analysis.ir.loops import (
    branch_values,
    defining_op,
    is_inside,
    made_by,
    splat,
)
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure, is_repeatable
from alcop_mlir.analysis.layout.distribution import widest_access
from alcop_mlir.analysis.layout.row_vectors import not_by_rows
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.target import CP_ASYNC_BYTES

TILE, THREAD, ASYNC = "tile", "thread", "async"
GATHER = "alcop.gather"
TILE_OPS = ("memref.copy", "alcop.copy", "linalg.copy", "linalg.generic", GATHER)
MASKED_LOAD = "vector.maskedload"
LOADS = ("memref.load", "vector.load", "vector.transfer_read", MASKED_LOAD)
STORES = ("memref.store", "vector.store", "vector.transfer_write")
ASYNC_OP = "nvgpu.device_async_copy"
MAX_PIECES = 8  # asynchronous copies that one wide load becomes: 128 bytes


@frozen
class Move:
    """What one op copies from global into shared memory.

    op:       the op that copies; of a load and a store the store
    source, target: memrefs; with per-thread forms also the indices
    load:     the load whose value `op` stores; None where `op` copies alone
    elements: of a per-thread copy; 0 for a tile
    guard:    the i1 under which the copy happens, else `fill` is stored; or None
    fill:     a value, or None for zero
    branch:   the scf.if with the load whose result `op` stores, or None
    rows:     of a gather: the vectors of its rows and of which are valid, perhaps the
              elements that a row has
    count:    how many of the elements are read, an index or a number: the rest is
              zero; None where all are
    """

    kind: str
    op: Any
    source: Any
    target: Any
    source_indices: tuple[Any, ...] = ()
    target_indices: tuple[Any, ...] = ()
    load: Any = None
    elements: int = 0
    guard: Any = None
    fill: Any = None
    count: Any = None
    branch: Any = None
    rows: tuple[Any, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The elements of a per-thread copy along each dimension; none for a tile."""
        return (self.elements,) if self.elements else ()

    @property
    def bytes(self) -> int:
        """Bytes that one thread copies; 0 for a tile."""
        return self.elements * element_bytes(self.target.type)

    @property
    def width(self) -> int:
        """Bytes of each asynchronous copy that a per-thread copy becomes."""
        return min(self.bytes, max(CP_ASYNC_BYTES))

    @property
    def producer(self) -> Any:
        """The op that makes what is stored; None for a tile."""
        return self.load if self.branch is None else self.branch

    @property
    def moved(self) -> tuple[Any, ...]:
        """What is stored: not a part of an address."""
        if self.branch is not None:
            return (self.op.operands[0],)
        return () if self.load is None else tuple(self.load.results)


def move_of(op: ir.Operation) -> Move | None:
    """What `op` copies into shared memory; None where it is no such copy."""
    op = op.operation
    if op.name in TILE_OPS:
        return _tile(op)
    if op.name in STORES:
        return _move(op) or _chosen(op)
    if op.name == ASYNC_OP:
        return _async(op)
    return None


def unsuited(move: Move) -> str | None:
    """Why the hardware could not do the copy asynchronously; None where it can.

    PTX ISA, cp.async: 4, 8 or 16 bytes side by side, both addresses aligned to them.
    More are several copies of 16 bytes.
    """
    if move.kind == ASYNC:
        return None
    if move.kind == TILE:
        return _not_by_rows(move) or _too_narrow(move)
    pieces, rest = divmod(move.bytes, move.width)
    if move.width not in CP_ASYNC_BYTES or rest or pieces > MAX_PIECES:
        sizes = ", ".join(str(size) for size in CP_ASYNC_BYTES)
        return f"each thread copies {move.bytes} bytes at a time, cp.async {sizes}"
    if move.source.type.element_type != move.target.type.element_type:
        return "its source and buffer differ in element type"
    for name, memref, indices in (
        ("source", move.source, move.source_indices),
        ("buffer", move.target, move.target_indices),
    ):
        aligned = address_alignment(memref, [divisor(index) for index in indices])
        if aligned % move.width:
            return (
                f"its {name} address is known to be aligned to {aligned} bytes, "
                f"{move.width} are needed"
            )
    return None


def _not_by_rows(move: Move) -> str | None:
    """Why a thread cannot compute the rows that it copies of a gather."""
    if not move.rows:
        return None
    no = not_by_rows(move.op)
    if no is None:
        return None
    return f"a thread cannot compute its rows of '{no.op.name}': {no.reason}"


def _too_narrow(move: Move) -> str | None:
    """Why the threads of a block cannot copy a tile by cp.async."""
    target = move.target
    if not target.type.has_static_shape or not target.type.shape:
        return None  # another rule's business
    width = widest_access(move.op, parts=True)
    if width in CP_ASYNC_BYTES:
        return None
    narrow = narrow_rows(move.source, width, "gathered " if move.rows else "")
    return f"{narrow}, and waits in each iteration"


def narrow_rows(source: ir.Value, width: int, which: str = "") -> str:
    """What a message says of rows that are known to be aligned to `width` bytes only.

    which: what the rows are, with a space after it
    """
    least = min(CP_ASYNC_BYTES)
    return (
        f"the {which}rows of {_called(source)} are known to be aligned to {width} "
        f"bytes, {least} are needed: each thread copies element by element"
    )


def _called(source: ir.Value) -> str:
    """What a message calls the memref that a copy reads."""
    memref = memory.root(source)
    function = None if defining_op(memref) else memref.owner.owner
    if function is not None and function.operation.name in ("func.func", "gpu.func"):
        return f"argument {memref.arg_number + 1}, {memref.type},"
    return f"its source, {memref.type},"


def _tile(op: ir.Operation) -> Move | None:
    if op.name == "linalg.generic" and not _is_identity(op):
        return None
    source, target, *rest = op.operands
    if not _is_global_to_shared(source, target):
        return None
    rows = tuple(rest) if op.name == GATHER else ()
    return Move(TILE, op, source, target, rows=rows)


def _move(op: ir.Operation) -> Move | None:
    value = op.operands[0]
    load = made_by(value, *LOADS)
    if load is None or load.block != op.block or len(list(value.uses)) != 1:
        return None
    return _moved(op, load)


def _moved(op: ir.Operation, load: ir.Operation) -> Move | None:
    """Of a store of what `load` loads."""
    _, target, *indices = op.operands
    source, *rest = load.operands
    if not _is_global_to_shared(source, target) or not (is_row(load) and is_row(op)):
        return None
    mask = mask_of(load)
    count = None if mask is None else counted(mask)
    if mask_of(op) is not None or (mask is not None and count is None):
        return None
    if mask is not None and not is_zero(_fill(load)):
        return None
    return Move(
        THREAD,
        op,
        source,
        target,
        tuple(rest[: source.type.rank]),
        tuple(indices[: target.type.rank]),
        load,
        _elements(load.results[0].type),
        count=count,
    )


def _async(op: ir.Operation) -> Move | None:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = iter(op.operands)
    groups = [[next(operands) for _ in range(size)] for size in segments]
    (target,), target_indices, (source,), source_indices = groups[:4]
    if not _is_global_to_shared(source, target):
        return None
    return Move(
        ASYNC,
        op,
        source,
        target,
        tuple(source_indices),
        tuple(target_indices),
        elements=op.attributes["dstElements"].value,
    )


def _chosen(op: ir.Operation) -> Move | None:
    """`v = scf.if %g { yield load } else { yield %other } ; store v`."""
    value = op.operands[0]
    branch = made_by(value, "scf.if")
    if branch is None or branch.block != op.block or len(list(value.uses)) != 1:
        return None
    then, otherwise = branch_values(branch, list(branch.results).index(value))
    load = made_by(then, *LOADS)
    blocks = [region.blocks[0] for region in branch.regions]
    if load is None or load.block != blocks[0] or not is_computed(otherwise, branch):
        return None
    if len(list(then.uses)) != 1 or not all(map(only_loads, blocks)):
        return None
    move = _moved(op, load)
    if move is None:
        return None
    fill = None if is_zero(otherwise) else otherwise
    return replace(move, guard=branch.operands[0], fill=fill, branch=branch)


def guarded_moves(op: ir.Operation) -> tuple[Move, ...]:
    """The moves of an scf.if that else stores zero to the same elements; or none.

    `scf.if %g { store (load) ; ... } else { store 0 ; ... }`, where what is loaded from
    could be computed before the condition.
    """
    blocks = [block for region in op.regions for block in region.blocks]
    if op.name != "scf.if" or len(op.results) or len(blocks) != 2:
        return ()
    stores, zeros = map(_stores_only, blocks)
    if not stores or not zeros or len(stores) != len(zeros):
        return ()
    moves = [_move(store) for store in stores]
    for store, move in zip(stores, moves, strict=True):
        zero = next((one for one in zeros if zeroes(one, store)), None)
        if zero is None or move is None:
            return ()
        zeros.remove(zero)
    found = tuple(replace(move, guard=op.operands[0]) for move in moves if move)
    loads = [one for block in blocks for one in block.operations]
    # A load that is no copy is part of an address.
    is_apart = sum(one.operation.name in LOADS for one in loads) > len(found)
    early = (one for move in found for one in branch_address_ops(move))
    return found if not is_apart and all(map(is_pure, early)) else ()


def zeroes(store: ir.Operation, other: ir.Operation) -> bool:
    """Whether `store` stores zero to the elements that `other` stores to."""
    same = list(store.operands)[1:] == list(other.operands)[1:]
    return same and store.name == other.name and is_zero(store.operands[0])


def branch_address_ops(move: Move) -> list[Any]:
    """The ops inside the scf.if of a guarded copy that its operands need before it."""
    if move.guard is None:
        return []
    values = [move.source, *move.source_indices]
    values += [v for v in (move.count, move.fill) if isinstance(v, ir.Value)]
    holder = move.load.parent.operation
    blocks = [block for region in holder.regions for block in region.blocks]
    return [op for block in blocks for op in backward_slice(values, block)[0]]


def is_computed(value: ir.Value, within: ir.Operation) -> bool:
    """Whether `value` needs no memory: nothing in `within` loads what it is made of."""
    pending, seen = [value], set[Any]()
    while pending:
        op = defining_op(pending.pop())
        if op is None or op in seen or not is_inside(op, within):
            continue
        if not is_repeatable(op):
            return False
        seen.add(op)
        pending += op.operands
    return True


def only_loads(block: ir.Block) -> bool:
    """Whether a branch computes and loads only."""
    return _stores_only(block) == []


def _stores_only(block: ir.Block) -> list[Any] | None:
    """The stores in a branch; None where it does more than compute, load and store."""
    stores = []
    for op in list(block.operations)[:-1]:
        if op.operation.name in STORES:
            stores.append(op.operation)
        elif op.operation.name not in LOADS and not is_pure(op):
            return None
    return stores


def _is_global_to_shared(source: ir.Value, target: ir.Value) -> bool:
    kinds = (source.type, target.type)
    return (
        all(isinstance(kind, ir.MemRefType) for kind in kinds)
        and memory.is_workgroup(target.type)
        and not memory.is_workgroup(source.type)
        and made_by(memory.root(source), "memref.alloca") is None
    )


def is_plain_transfer(op: ir.Operation) -> bool:
    """Whether a vector.transfer moves one row, all of it, without a mask."""
    return is_row(op) and mask_of(op) is None


def is_row(op: ir.Operation) -> bool:
    """Whether a load or store moves consecutive elements that are in bounds."""
    moved = op.operands[0] if op.name in STORES else op.results[0]
    if isinstance(moved.type, ir.VectorType) and moved.type.rank != 1:
        return False
    if not op.name.startswith("vector.transfer"):
        return True
    map_ = op.attributes["permutation_map"].value
    along = len(map_.results) == 1 and str(map_.results[0]) == f"d{map_.n_dims - 1}"
    return along and all(flag.value for flag in op.attributes["in_bounds"])


def mask_of(op: ir.Operation) -> Any | None:
    """The mask of a load or store; None where it has none."""
    if op.name == MASKED_LOAD:
        return op.operands[len(op.operands) - 2]
    if not op.name.startswith("vector.transfer"):
        return None
    has_mask = list(op.attributes["operandSegmentSizes"])[-1] == 1
    return op.operands[len(op.operands) - 1] if has_mask else None


def counted(mask: ir.Value) -> Any | None:
    """The number of leading elements that `mask` is true for; None for other masks."""
    op = made_by(mask, "vector.create_mask", "vector.constant_mask")
    if op is None or mask.type.rank != 1:
        return None
    if op.name == "vector.create_mask":
        return op.operands[0]
    return op.attributes["mask_dim_sizes"][0]


def _fill(load: ir.Operation) -> Any:
    """The value of a masked load where its mask is false."""
    last = len(load.operands) - 1
    return load.operands[last if load.name == MASKED_LOAD else last - 1]


def _elements(kind: ir.Type) -> int:
    """Elements of a scalar or of a one-dimensional vector; 0 for other vectors."""
    if not isinstance(kind, ir.VectorType):
        return 1
    return kind.shape[0] if kind.rank == 1 else 0


def _is_identity(op: ir.Operation) -> bool:
    """Whether a linalg.generic copies its one input, element by element."""
    if list(op.attributes["operandSegmentSizes"]) != [1, 1]:
        return False
    maps = [m.value for m in op.attributes["indexing_maps"]]
    identity = ir.AffineMap.get_identity(maps[0].n_dims)
    block = op.regions[0].blocks[0]
    first = block.operations[0].operation
    yields_input = first.name == "linalg.yield" and (
        first.operands[0] == block.arguments[0]
    )
    return maps == [identity, identity] and yields_input


def is_zero(value: ir.Value) -> bool:
    """Whether `value` is the constant zero, or a vector of zeros."""
    return splat(value) == 0
