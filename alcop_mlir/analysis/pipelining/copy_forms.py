"""Recognises the forms in which programs copy from global into shared memory.

  tile     memref.copy, alcop.copy, linalg.copy, a linalg.generic that yields its input:
           one copy by all threads of the block
  move     a load from global memory whose only use is a store to shared memory: a copy
           by each thread; perhaps of the first few elements, the rest zero, by a mask
           of vector.create_mask
  async    nvgpu.device_async_copy: a move that is asynchronous already
  guarded  scf.if with a move, and a store of zero to the same elements otherwise; or
           a store of what an scf.if loads, and is zero otherwise

`copy_form` returns the form of an op, or None; whether a copy can be pipelined is
decided in `copies`. Nothing is changed here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import address_alignment, divisor, element_bytes
from alcop_mlir.analysis.ir.index_terms import distance, element
from alcop_mlir.analysis.ir.loops import (
    branch_values,
    defining_op,
    made_by,
    splat,
)
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.layout.distribution import widest_access
from alcop_mlir.bindings import ir
from alcop_mlir.target import CP_ASYNC_BYTES

TILE, MOVE, ASYNC, GUARDED = "tile", "move", "async", "guarded"
TILE_OPS = ("memref.copy", "alcop.copy", "linalg.copy", "linalg.generic")
MASKED_LOAD = "vector.maskedload"
LOADS = ("memref.load", "vector.load", "vector.transfer_read", MASKED_LOAD)
STORES = ("memref.store", "vector.store", "vector.transfer_write")
ASYNC_OP = "nvgpu.device_async_copy"


@dataclass(frozen=True)
class Move:
    """What one op copies from global into shared memory.

    op:       the op that copies; of a load and a store the store
    source, target: memrefs; with per-thread forms also the indices
    load:     the load of a move, guarded or not, else None
    branch:   the scf.if with the load whose result `op` stores, or None
    elements: of a per-thread copy; 0 for a tile
    guard:    the i1 under which the move happens, else zero is stored; or None
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
    count: Any = None
    branch: Any = None

    @property
    def bytes(self) -> int:
        """Bytes that one thread copies; 0 for a tile."""
        return self.elements * element_bytes(self.target.type)

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


@dataclass(frozen=True)
class CopyForm:
    """An op in a loop's block that copies from global into shared memory.

    moves: all that it copies, in the order of the program
    """

    op: Any
    moves: tuple[Move, ...]

    @property
    def buffers(self) -> list[Any]:
        """The allocations that it fills, each once."""
        return list(dict.fromkeys(memory.root(move.target) for move in self.moves))

    @property
    def sources(self) -> list[Any]:
        """The memrefs that it reads, each once."""
        return list(dict.fromkeys(move.source for move in self.moves))

    @property
    def producer(self) -> Any:
        """The op next to `op` that makes what it stores; None where there is none."""
        maker = self.moves[0].producer
        return maker if maker is not None and maker.block == self.op.block else None

    @property
    def moved(self) -> tuple[Any, ...]:
        """What is stored: not a part of an address."""
        return tuple(value for move in self.moves for value in move.moved)


def copy_form(op: ir.Operation) -> CopyForm | None:
    """The form of `op` as a copy into shared memory; None where it is none."""
    move = _only_move(op.operation)
    return None if move is None else CopyForm(move.op, (move,))


def _only_move(op: ir.Operation) -> Move | None:
    """What `op` copies, if that is one move."""
    if op.name in TILE_OPS:
        return _tile(op)
    if op.name in STORES:
        return _move(op) or _chosen(op)
    if op.name == ASYNC_OP:
        return _async(op)
    if op.name == "scf.if":
        return _guarded(op)
    return None


def unsuited(move: Move) -> str | None:
    """Why the hardware could not do the copy asynchronously; None where it can.

    PTX ISA, cp.async: 4, 8 or 16 bytes side by side, both addresses aligned to them.
    """
    if move.kind == ASYNC:
        return None
    if move.kind == TILE:
        return _too_narrow(move.source, move.target)
    if move.bytes not in CP_ASYNC_BYTES:
        sizes = ", ".join(str(size) for size in CP_ASYNC_BYTES)
        return f"each thread copies {move.bytes} bytes at a time, cp.async {sizes}"
    if move.source.type.element_type != move.target.type.element_type:
        return "its source and buffer differ in element type"
    for name, memref, indices in (
        ("source", move.source, move.source_indices),
        ("buffer", move.target, move.target_indices),
    ):
        aligned = address_alignment(memref, [divisor(index) for index in indices])
        if aligned % move.bytes:
            return (
                f"its {name} address is known to be aligned to {aligned} bytes, "
                f"{move.bytes} are needed"
            )
    return None


def are_apart(one: Move, other: Move) -> bool:
    """Whether no thread fills an element by both moves, as far as can be proven."""
    if memory.root(one.target) != memory.root(other.target):
        return True
    if TILE in (one.kind, other.kind):
        return memory.are_apart(one.target, other.target)
    (view, first), (other_view, second) = (
        element(move.target, move.target_indices) for move in (one, other)
    )
    if view != other_view:
        return memory.are_apart(one.target, other.target)
    *gaps, gap = (distance(a, b) for a, b in zip(first, second, strict=True))
    if any(gaps):  # None where it is not known
        return True
    return gap is not None and (gap >= other.elements or -gap >= one.elements)


def _too_narrow(source: ir.Value, target: ir.Value) -> str | None:
    """Why the threads of a block cannot copy a tile by cp.async."""
    if not target.type.has_static_shape or not target.type.shape:
        return None  # another rule's business
    width = widest_access(source, target, parts=True)
    if width in CP_ASYNC_BYTES:
        return None
    least = min(CP_ASYNC_BYTES)
    return (
        f"the rows of {_called(source)} are known to be aligned to {width} bytes, "
        f"{least} are needed: each thread copies element by element, and waits in each "
        "iteration"
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
    source, target = list(op.operands)[:2]
    if not _is_global_to_shared(source, target):
        return None
    return Move(TILE, op, source, target)


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
        MOVE,
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


def _guarded(op: ir.Operation) -> Move | None:
    """`scf.if %g { v = load ; store v } else { store 0 }`, of the same elements."""
    blocks = [block for region in op.regions for block in region.blocks]
    if len(op.results) or len(blocks) != 2:
        return None
    then_store, else_store = map(_only_store, blocks)
    if then_store is None or else_store is None or not zeroes(else_store, then_store):
        return None
    move = _move(then_store)
    if move is None:
        return None
    return replace(move, kind=GUARDED, op=op, guard=op.operands[0])


def _chosen(op: ir.Operation) -> Move | None:
    """`v = scf.if %g { yield load } else { yield 0 } ; store v`."""
    value = op.operands[0]
    branch = made_by(value, "scf.if")
    if branch is None or branch.block != op.block or len(list(value.uses)) != 1:
        return None
    then, otherwise = branch_values(branch, list(branch.results).index(value))
    load = made_by(then, *LOADS)
    blocks = [region.blocks[0] for region in branch.regions]
    if load is None or load.block != blocks[0] or not is_zero(otherwise):
        return None
    if len(list(then.uses)) != 1 or not all(map(only_loads, blocks)):
        return None
    move = _moved(op, load)
    if move is None:
        return None
    return replace(move, kind=GUARDED, guard=branch.operands[0], branch=branch)


def merged_moves(op: ir.Operation) -> list[tuple[Any, Any]]:
    """The copies of an scf.if that is several guarded ones; empty for other ops.

    Each as its store, and the store of zero to the same elements otherwise.
    """
    blocks = [block for region in op.regions for block in region.blocks]
    if len(op.results) or len(blocks) != 2:
        return []
    stores, zeros = map(stores_only, blocks)
    if not stores or not zeros or not len(stores) == len(zeros) > 1:
        return []
    loads = [one.operation for block in blocks for one in block.operations]
    loads = [one for one in loads if one.name in LOADS]
    moves: list[tuple[Any, Any]] = []
    for store in stores:
        zero = next((one for one in zeros if zeroes(one, store)), None)
        if zero is None or _move(store) is None:
            return []
        zeros.remove(zero)
        moves.append((store, zero))
    # A load that is no copy is part of an address, and would be loaded twice.
    return moves if len(loads) == len(moves) else []


def zeroes(store: ir.Operation, other: ir.Operation) -> bool:
    """Whether `store` stores zero to the elements that `other` stores to."""
    same = list(store.operands)[1:] == list(other.operands)[1:]
    return same and store.name == other.name and is_zero(store.operands[0])


def branch_address_ops(move: Move) -> list[Any]:
    """The ops inside the scf.if of a guarded copy that compute what it reads from."""
    if move.kind != GUARDED:
        return []
    values = [move.source, *move.source_indices]
    values += [move.count] if isinstance(move.count, ir.Value) else []
    ops, _ = backward_slice(values, move.load.block)
    return ops


def _only_store(block: ir.Block) -> Any | None:
    """The one store in a branch that otherwise computes and loads."""
    stores = stores_only(block)
    return stores[0] if stores is not None and len(stores) == 1 else None


def only_loads(block: ir.Block) -> bool:
    """Whether a branch computes and loads only."""
    return stores_only(block) == []


def stores_only(block: ir.Block) -> list[Any] | None:
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
    )


def is_plain_transfer(op: ir.Operation) -> bool:
    """Whether a vector.transfer moves one row, all of it, without a mask."""
    return is_row(op) and mask_of(op) is None


def is_row(op: ir.Operation) -> bool:
    """Whether a load or store moves consecutive elements that are in bounds."""
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
