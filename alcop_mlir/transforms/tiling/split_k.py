"""Split a contraction along K into parts that are computed side by side (split-K).

Before:  linalg.matmul {alcop.contraction = #alcop.contraction<{
             init = "zero", lhs = "mk", rhs = "kn"}>,
             alcop.schedule = #alcop.schedule<{..., split_k = 2}>}
             ins(%A, %B : memref<64x512xf16>, memref<512x64xf16>)
             outs(%C : memref<64x64xf16>)
After:   %parts = memref.alloc() : memref<2x64x64xf32>
         %As = memref.expand_shape %A ... into memref<64x2x256xf16>
         %Bs = memref.expand_shape %B ... into memref<2x256x64xf16>
         linalg.generic {alcop.contraction = #alcop.contraction<{
             init = "zero", lhs = "mbk", out = "bmn", parts = true, rhs = "bkn"}>,
             alcop.schedule = ...} ins(%As, %Bs) outs(%parts)
         %0 = memref.subview %parts[0, 0, 0] [1, 64, 64] ...
         %1 = memref.subview %parts[1, 0, 0] [1, 64, 64] ...
         linalg.generic {alcop.added_parts} ins(%0, %1) outs(%C)  // truncf(%0 + %1)

Of an operand that is never made, an `alcop.im2col` or `alcop.take`, no shape can be
expanded: it is indexed by b * length + k, of the number of the part. Tile code gathers
from the first step of the part on (`parts_of_k = 2`).

Inputs that the body does not read are left out.

The parts are the matrices of a batched contraction, so that a GPU with more SMs than C
has tiles is busy. They are stored in the accumulator type, added in a fixed order, and
rounded once: the result is the same in every run. The accumulator initialisation
(`init`) is added first; a copy that is marked as init is erased with the contraction.

An error at the op diagnoses a K that cannot be split into equal parts of a multiple of
16 bytes, which copies need; also a batch. A K that is known at run time only can be
split where `k_multiple` in `alcop.contraction` says enough of it: the rows of parts
then have the promise `alcop.row_alignment`.

Runs after alcop-select-schedule and alcop-add-variants, whose schedule it carries out,
and before alcop-merge-elementwise, which merges the addition with the ops that follow.
Reads `alcop.contraction` and `alcop.schedule` and writes them on the parts; `parts`
says that K is split already. Writes `alcop.added_parts` on the addition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from alcop_mlir import schedule_checks
from alcop_mlir.analysis.ir.alignment import base_alignment, element_bytes
from alcop_mlir.analysis.ir.gathered_rows import gathered_rows, taps_of
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.promises import ROW_ALIGNMENT, row_alignment
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    OperandTransform,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.view import view_of
from alcop_mlir.bindings import arith, ir, linalg, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.target import CP_ASYNC_BYTES
from alcop_mlir.transforms.linalg.matrices import Size, loop_sizes
from alcop_mlir.transforms.tiling.tiled_contractions import (
    TiledContraction,
    accumulator_type,
    own_loops,
    scheduled_contractions,
)


@frozen
class SplitK(Pass):
    name = "alcop-split-k"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for contraction in scheduled_contractions(op):
            is_split = _mark(contraction.op).get("parts")
            if contraction.schedule.split_k > 1 and not is_split:
                _split(contraction)


def _mark(op: ir.Operation) -> dict[str, Any]:
    return alcop.get(op, alcop.ContractionAttr) or {}


def _split(contraction: TiledContraction) -> None:
    with contraction.op.location, ir.InsertionPoint(contraction.op):
        sizes = loop_sizes(contraction.buffers)
        _check(contraction, sizes)
        parts = _compute_parts(contraction, sizes)
        _add_up(contraction, sizes, parts)
    if contraction.init_copy is not None:
        contraction.init_copy.operation.erase()
    contraction.op.operation.erase()


def _loops(contraction: TiledContraction) -> list[str]:
    """Those of A, B and C, without the row that a vector does not have."""
    operands = [(one.value, one.loops) for one in contraction.operands]
    return [
        own_loops(value, loops)
        for value, loops in (*operands, (contraction.out, contraction.out_loops))
    ]


def _check(contraction: TiledContraction, sizes: dict[str, Size]) -> None:
    batched = any({*BATCHES} & {*loops} for loops in _loops(contraction))
    least = min(element_bytes(one.value.type) for one in contraction.operands)
    if all(gathered_rows(one.value) for one in contraction.operands):
        raise PassError(contraction.op, "splits K, but A and B are gathered both")
    k = sizes["k"].known
    if k is None:  # its guard is checked: what it is a multiple of, and not 0
        k = _mark(contraction.op).get("k_multiple")
    try:
        taps = taps_of(*(one.value for one in contraction.operands))
        schedule_checks.check_split(contraction.schedule, k, least, batched, taps)
    except ConfigError as error:
        raise PassError(contraction.op, str(error)) from error


def _compute_parts(contraction: TiledContraction, sizes: dict[str, Size]) -> Any:
    """The buffer of the parts, computed by a batched contraction."""
    parts = contraction.schedule.split_k
    *operand_loops, out_loops = _loops(contraction)
    gathered = [gathered_rows(one.value) is not None for one in contraction.operands]
    split = [
        own if is_gathered else own.replace("k", "bk")
        for own, is_gathered in zip(operand_loops, gathered, strict=True)
    ]
    loops = [*split, f"b{out_loops}"]
    shape = [parts, *(_static(sizes[loop]) for loop in out_loops)]
    element = accumulator_type(contraction.out.type.element_type)
    kind = ir.MemRefType.get(shape, element)
    given = [sizes[loop].given for loop in out_loops if sizes[loop].known is None]
    target = build.alloc(kind, given)
    transforms = _transforms(contraction.op)
    read = _read_inputs(transforms)
    inputs = [contraction.op.operands[number] for number in read]
    letters = [""] * len(inputs)  # scalars, and one value per row or column, stay
    for operand, letter in zip(contraction.operands, "mn", strict=True):
        for number in map(read.index, operand.transform.others):
            letters[number] = letter * inputs[number].type.rank
    numbers = [read.index(transform.operand) for transform in transforms]
    if _mark(contraction.op).get("swapped"):
        numbers.reverse()
    for number, own in zip(numbers, split, strict=True):
        if "b" in own:
            inputs[number] = _expanded(inputs[number], own.index("k") - 1, parts, sizes)
        letters[number] = own
    used = "".join(loop for loop in "bmnk" if loop in "".join(loops))
    maps = [_map(used, one) for one in (*letters, loops[2])]
    for number, own in zip(numbers, split, strict=True):
        if "b" not in own:
            maps[number] = _part_map(used, own, (sizes["k"].known or 0) // parts)
    made = _generic(
        inputs, target, maps, partial(_multiply, contraction.op, transforms)
    )
    _mark_parts(contraction, made, loops)
    return target


def _transforms(op: ir.Operation) -> tuple[OperandTransform, OperandTransform]:
    try:
        return find_operand_transforms(view_of(op))
    except NoContraction as no:
        raise PassError(op, f"is marked as a contraction, but is {no}") from no


def _read_inputs(transforms: Sequence[OperandTransform]) -> list[int]:
    """Numbers of the inputs that are multiplied or that transforms read.

    There may be more, which nothing reads: the parts are computed without.
    """
    return sorted({n for one in transforms for n in (one.operand, *one.others)})


def _mark_parts(
    contraction: TiledContraction, made: ir.Operation, loops: list[str]
) -> None:
    """The marks of the contraction, with a batch, and with accumulators from zero."""
    named = dict(zip(("lhs", "rhs", "out"), loops, strict=True))
    mark = {**_mark(contraction.op), **named, "init": "zero", "parts": True}
    if "b" not in loops[0] or "b" not in loops[1]:
        mark["parts_of_k"] = contraction.schedule.split_k
    alcop.put(made, alcop.ContractionAttr, mark)
    source = alcop.schedule_source(contraction.op)
    alcop.put_schedule(made, contraction.schedule.to_dict(), source)


def _multiply(
    contraction: ir.Operation,
    transforms: Sequence[OperandTransform],
    arguments: list[Any],
) -> Any:
    """The accumulator plus the operand transforms of A and B, multiplied."""
    (body,) = contraction.regions[0].blocks
    read = [body.arguments[number] for number in _read_inputs(transforms)]
    mapping = dict(zip([*read, body.arguments[-1]], arguments, strict=True))
    for transform in transforms:
        for op in transform.ops:
            edit.clone(op, mapping)
    total = arguments[-1]
    left, right = (
        _widened(mapping[transform.value], total.type) for transform in transforms
    )
    is_integer = isinstance(total.type, ir.IntegerType)
    product = (arith.muli if is_integer else arith.mulf)(left, right)
    return _sum(total, product)


def _add_up(contraction: TiledContraction, sizes: dict[str, Size], parts: Any) -> None:
    """Compute C: its initial value plus the parts, in this order."""
    out, loops = contraction.out, _loops(contraction)[-1]
    inputs = [
        _part(parts, number, [sizes[loop] for loop in loops])
        for number in range(contraction.schedule.split_k)
    ]
    maps = [_map(loops, loops)] * (len(inputs) + 1)
    start = contraction.accumulator_source
    if start is not None and contraction.init == "copy":
        source, own = start
        inputs.insert(0, source)
        maps.insert(0, _map(loops, own))
    starts_from_itself = contraction.init == "read"

    def total(values: list[ir.Value]) -> Any:
        *addends, old = values
        return _total([old, *addends] if starts_from_itself else addends, old.type)

    made = _generic(inputs, out, maps, total)
    made.attributes[alcop.ADDED_PARTS] = ir.UnitAttr.get()


def _expanded(buffer: ir.Value, number: int, parts: int, sizes: dict[str, Size]) -> Any:
    """`buffer` with dimension `number`, which is along K, as parts of equal size."""
    kind, is_open = buffer.type, buffer.type.is_dynamic_dim(number)
    dynamic = ir.ShapedType.get_dynamic_size()
    length = dynamic if is_open else kind.shape[number] // parts
    groups = [[n + (n > number)] for n in range(kind.rank)]
    groups[number] = [number, number + 1]
    extents = [*kind.shape[:number], parts, length, *kind.shape[number + 1 :]]
    layout = _expanded_layout(kind, number, length)
    result = build.memref_like(kind, extents, layout=layout)
    given = [
        build.div(sizes["k"].given, parts) if n == number else build.dim(buffer, n)
        for n in range(kind.rank)
        if kind.is_dynamic_dim(n)
    ]
    made = memref.expand_shape(result, buffer, groups, given, extents)
    return _with_whole_rows(made, buffer, number) if is_open else made


def _with_whole_rows(expanded: Any, buffer: ir.Value, number: int) -> Any:
    """`expanded` with the promise that rows which are parts of K are aligned.

    They are of whole 16 bytes, as alcop-add-variants has asked; where they have gaps,
    their distance is what is promised of the buffer.
    """
    if number != buffer.type.rank - 1:
        return expanded
    width = max(CP_ASYNC_BYTES)
    if not follows_shape(buffer.type):
        width = math.gcd(width, row_alignment(buffer))
    made = memref.assume_alignment(expanded, base_alignment(expanded))
    made.owner.attributes[ROW_ALIGNMENT] = to_attribute(width)
    return made


def _expanded_layout(kind: ir.Type, number: int, length: int) -> Any | None:
    """The layout of the expanded type; None where rows are contiguous."""
    if kind == ir.MemRefType.get(kind.shape, kind.element_type):
        return None
    strides, offset = kind.get_strides_and_offset()
    outer, dynamic = strides[number], ir.ShapedType.get_dynamic_stride_or_offset()
    if length == ir.ShapedType.get_dynamic_size():
        outer = dynamic
    elif outer != dynamic:
        outer *= length
    return ir.StridedLayoutAttr.get(
        offset, [*strides[:number], outer, *strides[number:]]
    )


def _part(parts: ir.Value, number: int, sizes: Sequence[Size]) -> Any:
    """The matrix `number` of the parts."""
    kind = parts.type
    strides, _ = kind.get_strides_and_offset()
    offset = strides[0]
    if not kind.is_dynamic_stride_or_offset(offset):
        offset *= number
    layout = ir.StridedLayoutAttr.get(offset if number else 0, strides[1:])
    result = build.memref_like(kind, kind.shape[1:], layout=layout)
    extents = [size.given if size.known is None else size.known for size in sizes]
    offsets, steps = [number, *[0] * len(extents)], [1] * kind.rank
    return memref.subview(parts, offsets, [1, *extents], steps, result_type=result)


def _generic(
    inputs: list[ir.Value],
    target: ir.Value,
    maps: list[ir.AffineMap],
    body: Callable[[list[Any]], Any],
) -> Any:
    """A linalg.generic; `body` gives the element of `target` from all elements."""
    op = build.generic(inputs, target, maps)
    (block,) = op.regions[0].blocks
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(list(block.arguments))])
    return op


def _map(loops: str, letters: str) -> Any:
    """The map of an operand that is indexed by the loops called `letters`."""
    return build.loop_map(len(loops), map(loops.index, letters))


def _part_map(loops: str, letters: str, length: int) -> Any:
    """The same, where loop "k" is in a part of K of that length, "b" its number."""
    part, k = (ir.AffineExpr.get_dim(loops.index(loop)) for loop in "bk")
    results = [
        part * length + k if loop == "k" else ir.AffineExpr.get_dim(loops.index(loop))
        for loop in letters
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(len(loops), 0, results))


def _total(addends: list[ir.Value], kind: ir.Type) -> Any:
    """The sum of the addends, in their order; rounded once to `kind`."""
    wide = accumulator_type(kind)
    total = reduce(_sum, [_widened(value, wide) for value in addends])
    return total if total.type == kind else arith.truncf(kind, total)


def _sum(left: ir.Value, right: ir.Value) -> Any:
    is_integer = isinstance(left.type, ir.IntegerType)
    return (arith.addi if is_integer else arith.addf)(left, right)


def _widened(value: ir.Value, kind: ir.Type) -> Any:
    if value.type == kind:
        return value
    is_integer = isinstance(kind, ir.IntegerType)
    return arith.extsi(kind, value) if is_integer else arith.extf(kind, value)


def _static(size: Size) -> int:
    return ir.ShapedType.get_dynamic_size() if size.known is None else size.known
