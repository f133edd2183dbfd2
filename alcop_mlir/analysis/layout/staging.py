"""Whether and how the output of a kernel can pass through shared memory.

Tiles of the inputs are not used any more when a kernel stores what it computed: other
data may use the same memory. A buffer for such data is allocated with the attribute
`alcop.overlaid`; alcop-outline-kernels lays it over the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.index_terms import Terms, terms, values_of
from alcop_mlir.analysis.ir.kernels import is_thread_x
from alcop_mlir.analysis.ir.loops import defining_op, is_loop
from alcop_mlir.analysis.ir.memory import is_workgroup, root
from alcop_mlir.analysis.ir.uniformity import may_diverge
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.target import WARP_SIZE

OVERLAID = "alcop.overlaid"
SHARES = "alcop.shares"  # the number of a group of buffers that begin at one address
_ALLOC = "memref.alloc"
_DYNAMIC = "gpu.dynamic_shared_memory"


def free_bytes(write: ir.Operation, body: ir.Block) -> int:
    """Bytes of shared memory that nothing uses from `write` on, in a launch of `body`.

    0 where it is not known that all threads of a block run the write together, once:
    it needs a barrier before it.
    """
    top = top_level(write, body)
    if top is None or body.owner.operation.name != "gpu.launch" or may_diverge(write):
        return 0
    launch, ops = body.owner.operation, [op.operation for op in body.operations]
    # Dynamic shared memory is none that the launch allocates: it may be used anywhere.
    if any(map(_uses_shared, ops[ops.index(top) :])) or walk(launch, _DYNAMIC):
        return 0
    tiles = [op.results[0].type for op in ops if op.name == _ALLOC and _is_apart(op)]
    return sum(math.prod(k.shape) * element_bytes(k) for k in tiles if is_workgroup(k))


def top_level(op: ir.Operation, body: ir.Block) -> Any | None:
    """The op of `body` that is `op` or has it inside; None if `op` is in a loop."""
    operation = op.operation
    while operation.block != body:
        operation = operation.parent.operation
        if is_loop(operation):
            return None
    return operation


def warps_beside(indices: Sequence[ir.Value], columns: int) -> int:
    """How many warps in a row hold parts of so many columns of the same rows.

    indices: where a warp's part begins; 1 where they are not of the form
             `first + warp / n`, `first + warp % n * columns`
    """
    *_, row, column = map(terms, indices)
    for part, times in column.multiples:
        if times == columns and (found := _remainder_of_warp(part)) is not None:
            thread, count = found
            same = _division("div", thread, count)
            others = (other for other, _ in row.multiples if other != same)
            if not any(thread in values_of(other) for other in others):
                return count
    return 1


def _remainder_of_warp(part: Any) -> tuple[Any, int] | None:
    """The thread's number and n where `part` is the warp's modulo n."""
    if not isinstance(part, tuple) or part[0] != "rem":
        return None
    values = values_of(part)
    if len(values) != 1:
        return None
    (thread,) = values
    is_of_warp = is_thread_x(thread) and part == _division("rem", thread, part[2])
    return (thread, part[2]) if is_of_warp else None


def _division(name: str, thread: Any, count: int) -> tuple[str, Terms, int]:
    """The quotient or remainder of a warp's number, as a part of terms."""
    threads = Terms(0, frozenset([(thread, 1)]))
    warp = Terms(0, frozenset([(("div", threads, WARP_SIZE), 1)]))
    return name, warp, count


def _uses_shared(op: ir.Operation) -> bool:
    """Whether `op`, or an op inside, uses shared memory that is not overlaid."""
    used = (value for inner in walk(op) for value in inner.operands)
    owners = (defining_op(root(v)) for v in used if is_workgroup(v.type))
    return any(owner is None or _is_apart(owner) for owner in owners)


def _is_apart(alloc: ir.Operation) -> bool:
    return OVERLAID not in alloc.attributes
