"""Stores into shared memory that are nearly copies, but not in a supported form.

Such a store stores a value that is computed from a load of global memory, or is
conditional or masked. The author of the loop may expect it to be pipelined: `near_copy`
returns the reason why it is not, or None for a store that is no copy at all.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import (
    address_alignment,
    divisor,
    element_bytes,
)
from alcop_mlir.analysis.ir.loops import block_of, body, defining_op, made_by, yielded
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.analysis.pipelining.copy_forms import is_no_part
from alcop_mlir.analysis.pipelining.guards import is_alike, is_guard
from alcop_mlir.analysis.pipelining.moves import (
    ASYNC_OP,
    LOADS,
    STORES,
    TILE_OPS,
    is_row,
    mask_of,
    move_of,
    narrow_rows,
)
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.target import CP_ASYNC_BYTES

AFFINE_LOADS = ("affine.load", "affine.vector_load")
_HOLDERS = ("scf.if", "scf.forall", "scf.parallel")
MASKED_STORE = "vector.maskedstore"
_Why = tuple[str, str]  # why a store is not a copy, and what would make it one


def near_copy(op: ir.Operation, loop: ir.Operation) -> _Why | None:
    """Why `op`, in `loop`'s own block, is not a copy, and what would make it one.

    None if it is not nearly one.
    """
    op = op.operation
    if op.name in _HOLDERS:
        # Copies of a loop inside are judged as copies of that loop.
        return None if walk(op, "scf.for") else _conditional(op)
    if op.name.startswith("linalg."):
        return _computing(op)
    if op.name == MASKED_STORE:
        target, *_, value = op.operands
        into_shared = memory.is_workgroup(target.type)
        is_near = into_shared and _comes_from_load(value, body(loop))
        return _masked_store(op) if is_near else None
    if op.name not in STORES or not memory.is_workgroup(op.operands[1].type):
        return None
    value = op.operands[0]
    if made_by(value, *AFFINE_LOADS) is not None:
        return None  # see `other_loops`
    if _comes_from_load(value, body(loop)):
        return _not_plain(op, value)
    if _is_loaded_before(value, loop):
        return (
            f"'{op.name}' stores a value that an earlier iteration loaded",
            "load and store in the same iteration: the pipeline prefetches the load",
        )
    return None


def _not_plain(store: ir.Operation, value: ir.Value) -> _Why:
    """Why the store of a value that comes from a load is not a move."""
    load = defining_op(value)
    if load is not None and load.name == "vector.from_elements":
        narrow = _element_by_element(load)
        if narrow is not None:
            return narrow
    if load is not None and load.name == "scf.if":
        return (
            f"'{store.name}' stores what is loaded under a condition, and else comes "
            "from memory too, or is used elsewhere too",
            "yield what is loaded, and a constant in the other branch, to the store "
            "alone",
        )
    if load is None or load.name not in LOADS:
        return (
            f"'{store.name}' stores a value that is computed from what was loaded",
            "copy the loaded value, and compute where it is read",
        )
    if made_by(memory.root(load.operands[0]), "memref.alloca") is not None:
        return (
            f"'{store.name}' stores what was loaded from private memory",
            "make values of private memory, as sroa and mem2reg do at constant indices",
        )
    if len(list(value.uses)) > 1:
        return (
            f"'{store.name}' stores a loaded value that is used elsewhere too",
            "load it again for the other use",
        )
    if mask_of(store) is not None:
        return _masked_store(store)
    for op in (load, store):
        if not is_row(op):
            return (
                f"'{op.name}' moves more than one row of elements, or may leave the "
                "bounds of its memref",
                "move one row that is in bounds, by a mask where it may be shorter",
            )
    return (
        f"the mask of '{load.name}' is not of vector.create_mask, or does not fill "
        "with zero",
        "count the elements with vector.create_mask, and fill with zero",
    )


def rows_remedy(op: ir.Operation, source: ir.Value) -> str:
    """What would help a copy of a tile of `source` whose rows are not aligned."""
    if any(alcop.OTHER_ROWS in one.attributes for one in around(op)):
        return "rows of a multiple of 16 bytes are for another variant"
    if (odd := odd_rows(source)) is not None:
        return odd
    return (
        "make rows a multiple of 16 bytes, and promise so with "
        "alcop.row_alignment = 16 where they are known at run time only"
    )


def odd_rows(source: ir.Value) -> str | None:
    """What would help where rows of what is copied are known not to be aligned.

    Of an image, the rows of a tile are the channels of pixels.
    """
    kind = memory.root(source).type
    if not kind.rank or kind.is_dynamic_dim(kind.rank - 1) or not follows_shape(kind):
        return None
    elements, wanted = kind.shape[-1], max(CP_ASYNC_BYTES) // element_bytes(kind)
    if elements % wanted == 0:
        return None
    return f"make rows a multiple of 16 bytes: of {wanted} elements, not {elements}"


def _element_by_element(word: ir.Operation) -> _Why | None:
    """Why a word is made of single elements, as alcop-stage-copies loads them."""
    loads = [walk(op, "memref.load") for op in map(defining_op, word.operands) if op]
    if len(loads) < len(word.operands) or any(len(found) != 1 for found in loads):
        return None
    source, *indices = loads[0][0].operands
    width = address_alignment(source, [divisor(index) for index in indices])
    if width >= min(CP_ASYNC_BYTES):
        return None
    return narrow_rows(source, width), rows_remedy(word, source)


def _masked_store(store: ir.Operation) -> _Why:
    return (
        f"'{store.name}' has a mask, and where that is false the buffer keeps elements "
        "of an older tile",
        "mask the load, and store all of it",
    )


def _computing(op: ir.Operation) -> _Why | None:
    """Of a linalg op from global into shared memory that is more than a copy."""
    kinds = [v.type for v in op.operands if isinstance(v.type, ir.MemRefType)]
    into_shared = bool(kinds) and memory.is_workgroup(kinds[-1])
    if not into_shared or all(memory.is_workgroup(kind) for kind in kinds):
        return None
    return (
        f"'{op.name}' computes what it stores",
        "copy the input, and compute where it is read",
    )


def _conditional(op: ir.Operation) -> _Why | None:
    """Of an op with regions that copies into shared memory, and does more."""
    stores = walk(op, *STORES)
    stores = [s for s in stores if made_by(s.operands[0], *AFFINE_LOADS) is None]
    copies = [store for store in stores if is_loaded_into_shared(store)]
    for store in copies:
        if move_of(store) is None:
            return _not_plain(store, store.operands[0])
    if not copies and not any(map(move_of, walk(op, *TILE_OPS, ASYNC_OP))):
        return None
    if is_guard(op) and not is_alike(op):
        return (
            f"'{op.name}' does more than copy: it holds 'gpu.barrier', and threads may "
            "differ in its condition",
            "let all threads compute it alike, from indices, arguments and loads of "
            "global memory",
        )
    more = next(map(_named, filter(is_no_part, walk(op))), "its result is used")
    return (
        f"'{op.name}' does more than copy: {more}",
        "keep in it loads of what is copied, stores of that, and stores of what needs "
        "no memory",
    )


def _named(op: ir.Operation) -> str:
    """What a message says of an op in a region that does more than copy."""
    more = {LOADS: " of shared memory", STORES: " to other memory"}
    return f"it holds '{op.name}'" + next(
        (text for names, text in more.items() if op.name in names), ""
    )


def is_loaded_into_shared(store: ir.Operation) -> bool:
    """Whether `store` copies, or nearly, from global into shared memory."""
    value, target, *_ = store.operands
    return memory.is_workgroup(target.type) and _comes_from_load(value, block_of(value))


def _comes_from_load(value: ir.Value, block: ir.Block) -> bool:
    """Whether `value` is computed from a load of global memory in the block."""
    ops, _ = backward_slice([value], block)
    return any(
        not memory.is_workgroup(load.operands[0].type)
        for op in ops
        for load in walk(op, *LOADS, *AFFINE_LOADS)
    )


def _is_loaded_before(value: ir.Value, loop: ir.Operation) -> bool:
    if value not in list(body(loop).arguments)[1:]:
        return False
    return _comes_from_load(yielded(loop, value.arg_number - 1), body(loop))
