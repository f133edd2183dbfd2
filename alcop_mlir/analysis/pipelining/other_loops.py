"""Copies and reads that are not looked at, as only `scf.for` loops are pipelined.

Their author may expect them to be pipelined: `unreached` says of each why it is not.
Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir.kernels import is_kernel
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.analysis.pipelining.copy_forms import copy_form, is_part_of_copy
from alcop_mlir.analysis.pipelining.moves import ASYNC_OP, STORES, TILE_OPS
from alcop_mlir.analysis.pipelining.near_copies import is_loaded_into_shared
from alcop_mlir.analysis.pipelining.register_reads import READS, is_shared_read
from alcop_mlir.analysis.pipelining.verdicts import REGISTER, SHARED, RejectedCopy
from alcop_mlir.bindings import ir

_LOWERED = "lower it with lower-affine before this pass"
# Loops that are not pipelined, and what would help.
_REMEDIES = {
    "scf.while": "write it as an scf.for",
    "scf.parallel": "write it as an scf.for",
    "affine.for": _LOWERED,
    "affine.parallel": _LOWERED,
}
# Copies by other means, and what is so of them.
_FOREIGN = {
    "nvgpu.tma.async.load": "it is a TMA load, whose end an mbarrier tells",
    "nvvm.cp.async.shared.global": "its addresses are pointers, of which it is not "
    "known what else they point to",
}
_AFFINE_STORES = ("affine.store", "affine.vector_store")


def unreached(scope: ir.Operation, reads: bool) -> Iterator[RejectedCopy]:
    """What could be pipelined in `scope` if its loop, or itself, were written so.

    reads: whether reads of shared memory are to be pipelined
    """
    refused: set[Any] = set()
    for op in walk(scope, *STORES, *TILE_OPS, ASYNC_OP, *_FOREIGN, *_AFFINE_STORES):
        loop = _loop_around(op)
        why = None if loop is None else _why_not(op, loop)
        if why is not None and not is_part_of_copy(op):
            refused.add(loop)
            yield RejectedCopy(op, SHARED, *why)
    for op in walk(scope, *READS) if reads else ():
        loop = _loop_around(op)
        if loop is None or loop in refused or loop.name not in _REMEDIES:
            continue
        if is_shared_read(op):
            refused.add(loop)  # one remark is enough
            yield RejectedCopy(op, REGISTER, *_in_other_loop(loop))


def _loop_around(op: ir.Operation) -> Any | None:
    """The nearest loop around `op` in its kernel."""
    for outer in around(op):
        if is_kernel(outer):
            return None
        if outer.name == "scf.for" or outer.name in _REMEDIES:
            return outer
    return None


def _why_not(op: ir.Operation, loop: ir.Operation) -> tuple[int, str, str] | None:
    """Of a copy that is not looked at: the rule, the reason, the remedy."""
    if op.name in _FOREIGN:
        remedy = "copy by nvgpu.device_async_copy, or by loads and stores"
        return 1, _FOREIGN[op.name], remedy
    is_store = op.name in (*STORES, *_AFFINE_STORES)
    if loop.name in _REMEDIES:
        why = _in_other_loop(loop)
    elif is_store and _is_affine(op):
        why = 1, "it loads or stores by an affine op", _LOWERED
    else:
        return None
    is_copy = is_loaded_into_shared(op) if is_store else copy_form(op)
    return why if is_copy else None


def _in_other_loop(loop: ir.Operation) -> tuple[int, str, str]:
    reason = f"the loop is an '{loop.name}', only scf.for is pipelined"
    return 2, reason, _REMEDIES[loop.name]


def _is_affine(store: ir.Operation) -> bool:
    maker = store.operands[0].owner
    ops = (store,) if isinstance(maker, ir.Block) else (store, maker)
    return any(op.operation.name.startswith("affine.") for op in ops)
