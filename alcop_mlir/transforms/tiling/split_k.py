"""Split the sum of a product into parts that run side by side, added up afterwards.

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
         linalg.generic ins(%0, %1) outs(%C)      // truncf(%0 + %1)

Each part is a product of a batch, so that a GPU with more SMs than C has tiles is busy.
The parts are kept in the accumulators' type. They are added in one order, and rounded
once: the result is the same in every run. What the sum starts from (`init`) comes
first; a copy marked as that is erased with the product.

Refused, by an error at the op: a sum whose length is known at run time only, or is no
whole number of parts of whole 16 bytes, which copies need; and a product of a batch.

Reads `alcop.contraction` and `alcop.schedule` and writes them on the parts; `parts`
says that K is split already. Stands behind alcop-select-schedule, whose schedule it
carries out, and before alcop-fuse-elementwise: what follows the product is fused into
the adding up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from alcop_mlir import resources
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    OperandTransform,
    find_operand_transforms,
)
from alcop_mlir.bindings import arith, ir, linalg, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.linalg.matrices import Size, loop_sizes
from alcop_mlir.transforms.tiling.tiled_contractions import (
    TiledContraction,
    scheduled_contractions,
)


@dataclass(frozen=True)
class SplitK(Pass):
    name = "alcop-split-k"
    anchor = "func.func"

    def run(self, op: Any) -> None:
        for product in scheduled_contractions(op):
            if product.schedule.split_k > 1 and not _mark(product.op).get("parts"):
                _split(product)


def _mark(op: Any) -> dict[str, Any]:
    return alcop.get(op, alcop.ContractionAttr) or {}


def _split(product: TiledContraction) -> None:
    with product.op.location, ir.InsertionPoint(product.op):
        sizes = loop_sizes(product.arrays)
        _check(product, sizes)
        parts = _sum_parts(product, sizes)
        _add_up(product, sizes, parts)
    if product.init_copy is not None:
        product.init_copy.operation.erase()
    product.op.operation.erase()


def _check(product: TiledContraction, sizes: dict[str, Size]) -> None:
    batched = any("b" in loops for _, loops in product.arrays[:3])
    least = min(element_bytes(array.type) for array in (product.lhs, product.rhs))
    try:
        resources.check_split(product.schedule, sizes["k"].known, least, batched)
    except ConfigError as error:
        raise PassError(product.op, str(error)) from error


def _sum_parts(product: TiledContraction, sizes: dict[str, Size]) -> Any:
    """The array of the parts: a product of as many matrices."""
    parts = product.schedule.split_k
    lhs_loops, rhs_loops, out_loops = (loops for _, loops in product.arrays[:3])
    loops = [
        lhs_loops.replace("k", "bk"),
        rhs_loops.replace("k", "bk"),
        f"b{out_loops}",
    ]
    shape = [parts, *(_static(sizes[loop]) for loop in out_loops)]
    kind = ir.MemRefType.get(shape, _sum_type(product.out.type.element_type))
    given = [sizes[loop].given for loop in out_loops if sizes[loop].known is None]
    target = memref.alloc(kind, given, [])
    factors = _factors(product.op)
    inputs = list(product.op.operands)[:-1]
    letters = [""] * len(inputs)  # scalars, and one value per row or column, stay
    for factor, letter in zip(product.factors, "mn", strict=True):
        for number in factor.others:
            letters[number] = letter * inputs[number].type.rank
    arrays = [factor.operand for factor in factors]
    if _mark(product.op).get("swapped"):
        arrays.reverse()
    for number, own, split in zip(arrays, (lhs_loops, rhs_loops), loops, strict=False):
        inputs[number] = _expanded(inputs[number], own.index("k"), parts)
        letters[number] = split
    used = "".join(loop for loop in "bmnk" if loop in "".join(loops))
    maps = [_map(used, one) for one in (*letters, loops[2])]
    made = _generic(inputs, target, maps, "k", partial(_multiply, product.op, factors))
    _mark_parts(product, made, loops)
    return target


def _factors(op: Any) -> tuple[OperandTransform, OperandTransform]:
    try:
        return find_operand_transforms(op)
    except NoContraction as no:
        raise PassError(op, f"is marked as a product, but is {no}") from no


def _mark_parts(product: TiledContraction, made: Any, loops: list[str]) -> None:
    """As the product was, with a batch and nothing to start from."""
    named = dict(zip(("lhs", "rhs", "out"), loops, strict=True))
    mark = {**_mark(product.op), **named, "init": "zero", "parts": True}
    alcop.put(made, alcop.ContractionAttr, mark)
    alcop.put(made, alcop.ScheduleAttr, product.schedule.to_dict())


def _multiply(
    product: Any,
    factors: tuple[OperandTransform, OperandTransform],
    arguments: list[Any],
) -> Any:
    """The sum so far plus the product of the factors, computed as they were before."""
    (body,) = product.regions[0].blocks
    mapping = dict(zip(list(body.arguments), arguments, strict=True))
    for factor in factors:
        for op in factor.ops:
            build.clone(op, mapping)
    total = arguments[-1]
    left, right = (_widened(mapping[factor.value], total.type) for factor in factors)
    if isinstance(total.type, ir.IntegerType):
        return arith.addi(total, arith.muli(left, right))
    return arith.addf(total, arith.mulf(left, right))


def _add_up(product: TiledContraction, sizes: dict[str, Size], parts: Any) -> None:
    """C from what it starts from and the parts, in this order."""
    out, loops = product.arrays[2]
    inputs = [
        _part(parts, number, [sizes[loop] for loop in loops])
        for number in range(product.schedule.split_k)
    ]
    maps = [_map(loops, loops)] * (len(inputs) + 1)
    start = product.accumulator_source
    if start is not None and product.init == "copy":
        array, own = start
        inputs.insert(0, array)
        maps.insert(0, _map(loops, own))
    starts_from_itself = product.init == "read"

    def total(values: list[Any]) -> Any:
        *addends, old = values
        return _total([old, *addends] if starts_from_itself else addends, old.type)

    _generic(inputs, out, maps, "", total)


def _expanded(array: Any, number: int, parts: int) -> Any:
    """`array` with dimension `number` as parts of equal size."""
    kind = array.type
    dynamic = ir.ShapedType.get_dynamic_size()
    shape, length = list(kind.shape), kind.shape[number] // parts
    groups = [[n + (n > number)] for n in range(kind.rank)]
    groups[number] = [number, number + 1]
    extents = [*shape[:number], parts, length, *shape[number + 1 :]]
    given = [
        memref.dim(array, build.index(n)) for n, s in enumerate(shape) if s == dynamic
    ]
    result = ir.MemRefType.get(
        extents, kind.element_type, layout=_expanded_layout(kind, number, length)
    )
    return memref.expand_shape(result, array, groups, given, extents)


def _expanded_layout(kind: Any, number: int, length: int) -> Any | None:
    """The layout of that; None where the rows follow each other without gaps."""
    if kind == ir.MemRefType.get(kind.shape, kind.element_type):
        return None
    strides, offset = kind.get_strides_and_offset()
    outer = strides[number]
    if not kind.is_dynamic_stride_or_offset(outer):
        outer *= length
    return ir.StridedLayoutAttr.get(
        offset, [*strides[:number], outer, *strides[number:]]
    )


def _part(parts: Any, number: int, sizes: Sequence[Size]) -> Any:
    """The matrix `number` of the parts."""
    kind = parts.type
    strides, _ = kind.get_strides_and_offset()
    offset = strides[0]
    if not kind.is_dynamic_stride_or_offset(offset):
        offset *= number
    layout = ir.StridedLayoutAttr.get(offset if number else 0, strides[1:])
    result = ir.MemRefType.get(kind.shape[1:], kind.element_type, layout=layout)
    extents = [size.given if size.known is None else size.known for size in sizes]
    rank = kind.rank
    return memref.subview(
        parts,
        [number, *[0] * (rank - 1)],
        [1, *extents],
        [1] * rank,
        result_type=result,
    )


def _generic(
    inputs: list[Any],
    target: Any,
    maps: list[Any],
    summed: str,
    body: Callable[[list[Any]], Any],
) -> Any:
    """A linalg.generic; `body` gives the element of `target` from all elements.

    summed: its last loop is, where this is not empty
    """
    loops = maps[0].value.n_dims
    kinds = ["parallel"] * (loops - len(summed)) + ["reduction"] * len(summed)
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    op = linalg.GenericOp(
        [], inputs, [target], ir.ArrayAttr.get(maps), ir.ArrayAttr.get(iterators)
    )
    elements = [value.type.element_type for value in (*inputs, target)]
    here = ir.Location.current
    block = op.regions[0].blocks.append(*elements, arg_locs=[here] * len(elements))
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(list(block.arguments))])
    return op


def _map(loops: str, letters: str) -> Any:
    """Of an operand that is indexed by the loops called `letters`."""
    results = [ir.AffineExpr.get_dim(loops.index(letter)) for letter in letters]
    return ir.AffineMapAttr.get(ir.AffineMap.get(len(loops), 0, results))


def _total(addends: list[Any], kind: Any) -> Any:
    """The sum of the addends, in their order; rounded once to `kind`."""
    wide = _sum_type(kind)
    total, *others = [_widened(value, wide) for value in addends]
    for value in others:
        is_integer = isinstance(wide, ir.IntegerType)
        total = arith.addi(total, value) if is_integer else arith.addf(total, value)
    return total if total.type == kind else arith.truncf(kind, total)


def _widened(value: Any, kind: Any) -> Any:
    if value.type == kind:
        return value
    is_integer = isinstance(kind, ir.IntegerType)
    return arith.extsi(kind, value) if is_integer else arith.extf(kind, value)


def _sum_type(element: Any) -> Any:
    """What products that end in such elements are summed in."""
    if isinstance(element, ir.IntegerType):
        return ir.IntegerType.get_signless(32)
    return ir.F32Type.get()


def _static(size: Size) -> int:
    return ir.ShapedType.get_dynamic_size() if size.known is None else size.known
