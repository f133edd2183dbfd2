"""Let the host choose between the variants of a contraction.

Before:  linalg.matmul {alcop.contraction = ..., alcop.variants = [
             {row_bytes = 16, schedule = {...}}, {schedule = {...}}]}
             ins(%A, %B : memref<?x?xf16>, memref<?x?xf16>) outs(%C : memref<?x?xf16>)
         linalg.add ins(%C, %R) outs(%C)
After:   %0 = arith.remui %K, %c8 ; %1 = arith.cmpi eq, %0, %c0 : index
         %2 = arith.remui %N, %c8 ; %3 = arith.cmpi eq, %2, %c0 : index
         %guard = arith.andi %1, %3 : i1
         scf.if %guard {
           %a = memref.assume_alignment %A, 16 {alcop.row_alignment = 16 : i64}
           ...
           linalg.matmul {alcop.contraction = #alcop.contraction<{...,
               variant = "rows16"}>, alcop.schedule = ...} ins(%a, %b) outs(%c)
           linalg.add ins(%c, %r) outs(%c)
         } else {
           linalg.matmul {alcop.contraction = ..., alcop.schedule = ...}
               ins(%A, %B) outs(%C)
           linalg.add ins(%C, %R) outs(%C)
         }

The first variant runs whose guard holds (`alcop_mlir/variants.py`): its limits of
sizes; the rows of A, B, C and of what fused ops write, and the distances of these, are
multiples of `row_bytes`, as far as they are not known; K has the parts of a schedule
with `split_k`. Of rows with distances of their own a known length does not matter, as
their last chunk may be a part. A memref that may begin anywhere (`alcop.alignment`)
begins as its rows do: its address is a multiple, and so are the offsets of a view of it
that the host computes from sizes. In its branch
memrefs have the promise `alcop.row_alignment` that follows from that, and
`alcop.contraction` says in `k_multiple` what K is a multiple of. Conditions that are
known, or promised by the user, fold away: a variant that never runs is left out, and so
are all after one that always runs; if that is the first, no branch is made.

Each branch has copies of the ops that would be fused with the contraction: of the copy
that is its accumulator initialisation, and of element-wise ops on its output, which
move up to it as alcop-fuse-elementwise moves them. So it has allocations that only
these use: the buffers of a variant that does not run take no memory. A remark diagnoses
ops that are not fused, and stay behind the branches.

Runs after alcop-select-schedule, which writes `alcop.variants`, and before
alcop-split-k. Erases `alcop.variants`, and writes `alcop.schedule` and
`alcop.schedule_source`; in `alcop.contraction`, `variant` is what the kernel's name
ends with, and `other_rows` says that another variant is for rows of whole 16 bytes. The
promise is last read by alcop-lower-mma, and alcop-outline-kernels erases it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from alcop_mlir import diagnostics, variants
from alcop_mlir.analysis.ir.alignment import base_alignment
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.loops import constant, made_by, without
from alcop_mlir.analysis.ir.memref_layouts import open_strides
from alcop_mlir.analysis.ir.promises import ROW_ALIGNMENT
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.accumulator_init import marked_init
from alcop_mlir.analysis.linalg.elementwise import Elementwise
from alcop_mlir.analysis.linalg.epilogue_fusion import (
    dependencies,
    find_epilogue,
    operand_loops,
    output_loops,
)
from alcop_mlir.analysis.linalg.variant_guards import (
    Buffer,
    Guard,
    Open,
    find_guard,
)
from alcop_mlir.bindings import arith, ir, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.target import CP_ASYNC_BYTES
from alcop_mlir.transforms.tiling.tiled_contractions import input_buffers
from alcop_mlir.variants import NO_MOST, ScheduleVariant

_ALLOC = "memref.alloc"
_PROMISE = "memref.assume_alignment"
_Way = tuple[ScheduleVariant, Guard]


@frozen
class AddVariants(Pass):
    name = "alcop-add-variants"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        refused: dict[Any, str] = {}
        given = [one for one in walk(op) if alcop.VARIANTS in one.attributes]
        for contraction in given:
            group = _find_group(contraction, self.assume_noalias_args)
            ways = list(_ways(group))
            if len(ways) == 1:
                _schedule(contraction, *ways[0])
                continue
            refused.update(group.refused)
            for fused in group.ops:
                refused.pop(fused, None)
            _branch(group, ways)
        for fused in self._fused_later(op) if refused else ():
            refused.pop(fused, None)
        for other, why in refused.items():
            reason = f"'{other.name}' is not fused into the contraction: {why}"
            diagnostics.remark(other, reason)

    def _fused_later(self, func: ir.Operation) -> Iterator[Any]:
        """What alcop-fuse-elementwise fuses with the contractions that there are."""
        for op in walk(func):
            if "init" in (alcop.get(op, alcop.ContractionAttr) or {}):
                for element in find_epilogue(op, self.assume_noalias_args).fused:
                    yield element.op


@frozen
class _Group:
    """A contraction and what runs with it, in order.

    inputs:  A and B
    outputs: C, if anything, and what the fused ops write
    others:  what else the ops access
    refused: ops that are not fused, and why
    allocs:  that only the ops access
    """

    contraction: Any
    ops: tuple[Any, ...]
    inputs: Sequence[Buffer]
    outputs: Sequence[Buffer]
    others: Sequence[Buffer]
    refused: Sequence[tuple[Any, str]]
    allocs: list[Any] = field(default_factory=list)


def _find_group(contraction: ir.Operation, noalias: bool) -> _Group:
    mark = alcop.get(contraction, alcop.ContractionAttr)
    if mark is None:
        why = f"has '{alcop.VARIANTS}', but is not marked as a contraction"
        raise PassError(contraction, why)
    epilogue = find_epilogue(contraction, noalias)
    for element in epilogue.fused:
        for op in dependencies(element, contraction):
            op.move_before(contraction)
    loops = output_loops(contraction)
    out = list(contraction.operands)[-1], loops
    init = marked_init(contraction) if mark.get("init") == "copy" else None
    fused = [element.op for element in epilogue.fused]
    outputs = [
        (element.output.value, operand_loops(element, element.output, loops))
        for element in epilogue.fused
    ]
    elements = [*([] if init is None else [init]), *epilogue.fused]
    group = _Group(
        contraction,
        (*([] if init is None else [init.op]), contraction, *fused),
        input_buffers(contraction),
        [out, *outputs],
        [one for element in elements for one in _buffers(element, loops)],
        epilogue.refused,
    )
    group.allocs.extend(_own_allocs(group))
    return group


def _buffers(element: Elementwise, loops: str) -> Iterator[Buffer]:
    for operand in element.reads:
        if operand.is_memref:
            yield operand.value, operand_loops(element, operand, loops)


def _own_allocs(group: _Group) -> Iterator[Any]:
    """The allocations that only the ops of the group access."""
    values = dict.fromkeys(value for value, _ in (*group.outputs, *group.others))
    for value in values:
        alloc = made_by(value, _ALLOC)
        users = [use.owner.operation for use in value.uses]
        others = [op for op in users if op not in group.ops]
        if alloc is not None and all(map(_accesses_nothing, others)):
            yield alloc


def _accesses_nothing(user: ir.Operation) -> bool:
    if user.name == "memref.dim":
        return constant(user.operands[1]) is not None
    return user.name == "memref.dealloc"


def _ways(group: _Group) -> Iterator[_Way]:
    """The variants that may run, up to the first that always does."""
    try:
        given = variants.from_list(alcop.get_plain(group.contraction, alcop.VARIANTS))
    except ConfigError as error:
        raise PassError(group.contraction, str(error)) from error
    for variant in given:
        guard = find_guard(variant, group.inputs, group.outputs, group.others)
        if guard is not None:
            yield variant, guard
            if guard.is_always_true:
                return


def _branch(group: _Group, ways: Sequence[_Way]) -> None:
    """Replace the ops of the group by branches."""
    for alloc in group.allocs:
        _replace_dims(alloc)
    with group.contraction.location, ir.InsertionPoint(group.contraction):
        _chain(group, ways, _marks(ways))
    for op in reversed(group.ops):
        op.erase()
    for alloc in group.allocs:
        edit.erase_deallocs(alloc.results[0])
        alloc.erase()


def _replace_dims(alloc: ir.Operation) -> None:
    """Let who asks for the size of an allocation use what it is made with."""
    buffer = alloc.results[0]
    for use in list(buffer.uses):
        dim = use.owner.operation
        if dim.name == "memref.dim":
            with ir.InsertionPoint(dim), dim.location:
                size = build.value(extent(buffer, constant(dim.operands[1]) or 0))
            dim.results[0].replace_all_uses_with(size)
            dim.erase()


def _marks(ways: Sequence[_Way]) -> list[dict[str, Any]]:
    """What `alcop.contraction` says of each variant, beside the others."""
    marks: list[dict[str, Any]] = []
    widest = max(variant.row_bytes for variant, _ in ways)
    for variant, _ in ways:
        name = _name(variant)
        marks.append({"variant": name} if name else {})
        if variant.row_bytes < widest == max(CP_ASYNC_BYTES):
            marks[-1]["other_rows"] = True
    return marks


def _chain(
    group: _Group, ways: Sequence[_Way], marks: Sequence[dict[str, Any]]
) -> None:
    """Build the variants at the insertion point: the first that may run does."""
    (first, *others), (mark, *other_marks) = ways, marks
    if not others:
        _build(group, *first, mark)
        return
    build.branch(
        _condition(first[1]),
        lambda: _build(group, *first, mark),
        lambda: _chain(group, others, other_marks),
    )


def _build(
    group: _Group, variant: ScheduleVariant, guard: Guard, mark: dict[str, Any]
) -> None:
    """Copies of the ops of the group, with the promises of the variant."""
    mapping: dict[Any, Any] = {}
    for alloc in group.allocs:
        edit.clone(alloc, mapping)
    for buffer in dict.fromkeys((*group.inputs, *group.outputs, *group.others)):
        value, promised = buffer[0], math.gcd(variant.row_bytes, guard.rows(buffer))
        if promised == 1:
            continue
        alignment = guard.alignment(value)
        if not _has_open_rows(value.type) and alignment == base_alignment(value):
            continue
        if value not in mapping:
            mapping[value] = _promising(value, promised, alignment)
        elif made_by(value, _ALLOC) is not None:
            _promise(mapping[value], promised)
    for op in group.ops:
        copy = edit.clone(op, mapping)
        if op == group.contraction:
            _schedule(copy, variant, guard, mark)
    for alloc in group.allocs:
        for use in alloc.results[0].uses:
            if use.owner.operation.name == "memref.dealloc":
                edit.clone(use.owner, mapping)


def _has_open_rows(kind: ir.Type) -> bool:
    return kind.is_dynamic_dim(kind.rank - 1) or bool(open_strides(kind))


def _promising(value: ir.Value, row_bytes: int, alignment: int) -> Any:
    """`value` with a promise. Of two assumptions in a row upstream drops the second."""
    source = without(value, _PROMISE)
    made = memref.assume_alignment(source, alignment)
    _promise(made, row_bytes)
    return made


def _promise(value: Any, row_bytes: int) -> None:
    value.owner.attributes[ROW_ALIGNMENT] = to_attribute(row_bytes)


def _schedule(
    op: ir.Operation,
    variant: ScheduleVariant,
    guard: Guard,
    mark: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write on a contraction which variant it is; `mark`: for `alcop.contraction`."""
    del op.attributes[alcop.VARIANTS]
    alcop.put_schedule(op, variant.schedule.to_dict(), variant.source)
    whole = {**(alcop.get(op, alcop.ContractionAttr) or {}), **mark}
    if variant.schedule.split_k > 1:
        whole["k_multiple"] = guard.divisor("k")
    alcop.put(op, alcop.ContractionAttr, whole)


def _name(variant: ScheduleVariant) -> str:
    """What tells the variant from others, for the kernel's name: "rows16_m64"."""
    parts = [f"rows{variant.row_bytes}"] if variant.row_bytes > 1 else []
    for limit in variant.limits:
        parts += [f"{limit.loops}{limit.most}"] if limit.most < NO_MOST else []
        parts += [f"{limit.loops}from{limit.least}"] if limit.least else []
    if variant.schedule.split_k > 1:
        parts.append(f"split{variant.schedule.split_k}")
    return "_".join(parts)


def _condition(guard: Guard) -> Any:
    """Whether the guard holds: an i1."""
    holds: Any = None
    for limit in guard.limits:
        factors = [_number(one) for one in limit.factors]
        total = factors[0]
        for factor in factors[1:]:
            total = build.mul(total, factor)
        for order, bound in (("sge", limit.least), ("sle", limit.most)):
            if bound is not None:
                holds = build.both(holds, _compared(order, total, bound))
    for one in guard.positive:
        holds = build.both(holds, _compared("sge", _number(one), 1))
    for one, divisor in guard.divisors.items():
        holds = _if_multiple(holds, _number(one), divisor)
    for offset, divisor in guard.offsets.items():
        rest = arith.remsi(offset, build.index(divisor))  # may be negative
        holds = build.both(holds, _compared("eq", rest, 0))
    for array, alignment in guard.addresses.items():
        address = memref.extract_aligned_pointer_as_index(array)
        holds = _if_multiple(holds, address, alignment)
    return holds


def _if_multiple(holds: ir.Value | None, value: ir.Value, of: int) -> Any:
    """Whether `holds`, if anything, and `value` is a multiple."""
    return build.both(holds, _compared("eq", build.rem(value, of), 0))


def _compared(order: str, value: ir.Value, number: int) -> Any:
    predicate = arith.CmpIPredicate[order]
    return arith.cmpi(predicate, value, build.index(number))


def _number(one: Open) -> Any:
    if not one.is_stride:
        return build.size(one.memref, one.dimension)
    found = memref.extract_strided_metadata(one.memref)
    return found[2 + one.memref.type.rank + one.dimension]
