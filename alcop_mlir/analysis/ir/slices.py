"""The ops that a value is computed from, and which ops may run early or again."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache, cmp_to_key
from typing import Any

from alcop_mlir.analysis.ir.loops import number
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir

# The bindings attach MLIR's effect interface to ops, but cannot ask it: tables instead.
# (Upstream also calls `gpu.shuffle` pure, which says nothing of where it may run.)
# Dialects whose ops (less the divisions below) have no effect and cannot fail.
_PURE_DIALECTS = ("arith.", "index.", "math.", "complex.")
_PURE_OPS = frozenset(
    """
    affine.apply affine.min affine.max affine.delinearize_index affine.linearize_index
    memref.subview memref.cast memref.reinterpret_cast memref.collapse_shape
    memref.expand_shape memref.view memref.dim memref.extract_strided_metadata
    memref.memory_space_cast memref.transpose memref.get_global memref.assume_alignment
    memref.distinct_objects memref.extract_aligned_pointer_as_index
    gpu.thread_id gpu.block_id gpu.block_dim gpu.grid_dim gpu.lane_id gpu.subgroup_id
    gpu.global_id gpu.num_subgroups gpu.subgroup_size gpu.cluster_id gpu.cluster_dim
    gpu.cluster_dim_blocks gpu.cluster_block_id gpu.dynamic_shared_memory
    vector.broadcast vector.extract vector.insert vector.shape_cast vector.bitcast
    vector.contract vector.extract_strided_slice vector.transpose vector.fma
    vector.from_elements vector.to_elements vector.splat vector.step vector.create_mask
    vector.constant_mask vector.multi_reduction vector.reduction vector.outerproduct
    vector.shuffle vector.interleave vector.deinterleave vector.extractelement
    vector.insertelement vector.insert_strided_slice vector.scan vector.vscale
    gpu.subgroup_mma_compute gpu.subgroup_mma_constant_matrix
    gpu.subgroup_mma_elementwise nvgpu.mma.sync nvgpu.mma.sp.sync nvvm.mma.sync
    ub.poison builtin.unrealized_conversion_cast alcop.im2col alcop.take
    alcop.rows llvm.mlir.undef llvm.extractvalue llvm.insertvalue
    """.split()
)
# Ops that touch no memory, but must run where they are, and as often: the threads of a
# warp meet in them, they print, or they stop the program. A prefetch moves no data.
# What is frozen may be another value each time. A tensor map describes memory, and
# reads none.
_NO_MEMORY_OPS = frozenset(
    """
    gpu.shuffle gpu.rotate gpu.subgroup_reduce gpu.subgroup_broadcast gpu.ballot
    gpu.printf cf.assert memref.prefetch llvm.freeze
    nvgpu.tma.create.descriptor
    nvvm.shfl.sync nvvm.redux.sync nvvm.vote.sync nvvm.match.sync nvvm.bar.warp.sync
    """.split()
)
_CHOICE = "scf.if"
_DIVISIONS = frozenset(
    f"{dialect}.{op}"
    for dialect, ops in (
        ("arith", "divsi divui remsi remui ceildivsi ceildivui floordivsi"),
        ("index", "divs divu rems remu ceildivs ceildivu floordivs"),
    )
    for op in ops.split()
)


def is_pure(op: ir.Operation) -> bool:
    """Whether `op` may run early, again, or not at all.

    Decided by the op's name: an op that is not known counts as impure. A division is
    pure if it is by a constant other than 0 and -1 (the smallest integer divided by -1
    overflows). A choice is pure if both ways are.
    """
    name = op.operation.name
    if name in _DIVISIONS:
        return number(op.operation.operands[1]) not in (None, 0, -1)
    if name == _CHOICE:
        return all(map(is_pure, _chosen_ops(op)))
    return _is_pure_name(name)


def is_repeatable(op: ir.Operation) -> bool:
    """Whether `op` may run early or again where it surely runs, with these operands.

    A division is: by zero it is undefined whenever it runs.
    """
    name = op.operation.name
    if name == _CHOICE:
        return all(map(is_repeatable, _chosen_ops(op)))
    return name in _DIVISIONS or _is_pure_name(name)


@cache
def _is_pure_name(name: str) -> bool:
    return name in _PURE_OPS or name.startswith(_PURE_DIALECTS)


def _chosen_ops(choice: ir.Operation) -> list[Any]:
    """The ops in the regions of an `scf.if`, but those that yield."""
    return [
        op
        for region in choice.operation.regions
        for block in region.blocks
        for op in list(block.operations)[:-1]
    ]


def touches_no_memory(op: ir.Operation) -> bool:
    """Whether `op` itself neither reads nor writes memory; it may have other effects.

    So has what prints, and what the threads of a warp run together.
    """
    return _is_memoryless(op.operation.name) or is_repeatable(op)


@cache
def _is_memoryless(name: str) -> bool:
    is_register = name.startswith("nvvm.read.ptx.sreg.")  # an id, or a clock
    return name in _NO_MEMORY_OPS or is_register or _is_pure_name(name)


def captured(op: ir.Operation) -> list[Any]:
    """The values that `op` and its regions use and do not define."""
    op = op.operation
    operands = list(op.operands)
    return [*operands, *captured_by_regions(op)] if len(op.regions) else operands


def captured_by_regions(op: ir.Operation) -> list[Any]:
    """The values that the regions of `op` use and do not define."""
    around, *inside = walk(op)
    defined = {result for inner in inside for result in inner.results}
    for region in (region for one in (around, *inside) for region in one.regions):
        defined.update(value for block in region.blocks for value in block.arguments)
    return [v for inner in inside for v in inner.operands if v not in defined]


def backward_slice(
    values: Iterable[ir.Value], block: ir.Block, known: Container[Any] = ()
) -> tuple[list[Any], set[Any]]:
    """The ops and arguments of `block` that `values` are computed from.

    The ops come in the order of the block; they may be impure, which the caller has to
    check. Values from outside of the block, and `known` ones, are not followed.
    """
    ops, arguments = sources(values, block, known)
    # By pairs: a slice is short, and the block it is of may be long.
    return sorted(ops, key=cmp_to_key(_block_order)), arguments


def sources(
    values: Iterable[ir.Value], block: ir.Block, known: Container[Any] = ()
) -> tuple[set[Any], set[Any]]:
    """As `backward_slice`, but the ops are in no order: faster if there are many."""
    pending = list(values)
    seen: set[Any] = set()
    ops: set[Any] = set()
    arguments: set[Any] = set()
    while pending:
        value = pending.pop()
        if value in seen or value in known:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            if owner == block:
                arguments.add(value)
            continue
        op = owner.operation
        if op.block == block and op not in ops:
            ops.add(op)
            pending += captured(op)
    return ops, arguments


def _block_order(one: Any, other: Any) -> int:
    return -1 if one.is_before_in_block(other) else 1
