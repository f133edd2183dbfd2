"""Which element-wise op makes an input of a product, and whether it may run in there.

`find_producer` looks at one input of a matrix product and answers with the op that
computes its elements, with `Rejected` and the reason if that op has to stay, or with
None where there is none. Changes nothing.

To run in the product's kernel means to run later, for each tile that is read, and more
than once for each element. So an op is taken only if

  - nobody else needs what it writes, and it writes all of it, from one array;
  - nothing between it and the product writes what it reads, nor does the product;
  - it costs little: conversions, scaling, a comparison; or more, where C has so few
    rows (columns) that hardly anything is computed again.

An op that works on the output of another product is no producer: it is computed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.code_motion import ops_after, reaches_only_operands, writes
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import is_own_allocation, may_alias, root
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.contractions import indexing_maps
from alcop_mlir.analysis.linalg.elementwise import Elementwise, Operand, elementwise
from alcop_mlir.bindings import ir

_MOST_OPS = 8  # for each element; a step of a warp multiplies it 16 times and more
# Rows (columns) of C that few warps, side by side, compute: these read an input again.
_FEW = 256
# Of `arith` and `math`, those that take several instructions or a slow one
_CHEAP_MATH = frozenset(
    f"math.{name}" for name in "absf absi ceil copysign floor fma trunc".split()
)
_COSTLY_ARITH = frozenset(
    f"arith.{name}" for name in "divf divsi divui remf remsi remui".split()
)
_HARMLESS = ("memref.dealloc", "memref.dim")


@dataclass(frozen=True)
class OperandProducer:
    """An element-wise op that can be computed where its output is read.

    source: the array that it computes of; other inputs are scalars, or have one value
            per row or column
    """

    element: Elementwise
    source: Operand


def find_operand_producer(
    product: Any, number: int, products: Sequence[Any], noalias_arguments: bool = False
) -> OperandProducer | Rejected | None:
    """What makes input `number` of the op `product`, see above.

    products:          the matrix products of the function
    noalias_arguments: whether a written argument surely overlaps no other
    """
    array = product.operands[number]
    if not is_own_allocation(array):
        return None
    element = _writer(array, product)
    if element is None or element.block is None:
        return None
    sources = _sources(element)
    if any(_is_of_product(source.value, products) for source in sources):
        return None
    why = next(_objections(element, product, noalias_arguments), None)
    if why is None and not _is_read_by_few(array, product):
        why = next(_about_cost(element), None)
    if why is not None:
        return Rejected(element.op, why)
    return OperandProducer(element, sources[0])


def _writer(array: Any, product: Any) -> Elementwise | None:
    """The element-wise op before the product that writes the array."""
    for op in [use.owner.operation for use in array.uses]:
        if op.block != product.block or not op.is_before_in_block(product):
            continue
        found = elementwise(op)
        if found is not None and found.output.value == array:
            return found
    return None


def _is_of_product(array: Any, products: Sequence[Any], depth: int = 8) -> bool:
    """Whether the array is a product's output, or computed of one by element."""
    if not is_own_allocation(array) or not depth:
        return False
    for use in array.uses:
        op = use.owner.operation
        if op in products and list(op.operands)[-1] == array:
            return True
        element = elementwise(op)
        if element is None or element.output.value != array:
            continue
        inputs = [operand.value for operand in element.inputs if operand.is_array]
        if any(_is_of_product(value, products, depth - 1) for value in inputs):
            return True
    return False


def _objections(element: Elementwise, product: Any, noalias: bool) -> Iterator[str]:
    """Why the op cannot be computed in the product; each may build on those before."""
    yield from _about_output(element, product)
    yield from _about_inputs(element)
    yield from _about_order(element, product, noalias)


def _about_output(element: Elementwise, product: Any) -> Iterator[str]:
    array = element.output.value
    if element.reads_output:
        yield "adds to what its output held before"
    for use in array.uses:
        user = use.owner.operation
        if user not in (element.op, product) and user.name not in _HARMLESS:
            yield f"its output is also used by '{user.name}'"
    if sum(1 for value in product.operands if value == array) > 1:
        yield "the product reads its output twice"


def _about_inputs(element: Elementwise) -> Iterator[str]:
    arrays = _sources(element)
    if len(arrays) != 1:
        yield (
            f"computes of {len(arrays)} arrays with the loops of its output, expected "
            "one"
        )
    for operand in element.reads:
        if operand.is_array and operand not in arrays and len(operand.loops) > 1:
            yield "computes of a matrix with other loops than its output, a broadcast"
    for operand in element.reads:
        if not operand.is_array and not _is_constant(operand.value):
            yield "uses a scalar that is not constant"
    if any(not _is_constant(value) for value in _captured(element)):
        yield "uses a value computed outside of it that is not constant"


def _about_order(element: Elementwise, product: Any, noalias: bool) -> Iterator[str]:
    arrays = [operand.value for operand in element.reads if operand.is_array]
    for op in ops_after(element.op):
        if op == product:
            break
        if not reaches_only_operands(op):
            yield f"'{op.name}' between the two may write what it reads"
        for array in arrays:
            if writes(op, array, noalias):
                yield f"'{op.name}' between the two writes what it reads"
    out = list(product.operands)[-1]
    for array in arrays:
        if may_alias(root(out), root(array), noalias):
            yield "the product may overwrite what it reads"


def _is_read_by_few(array: Any, product: Any) -> bool:
    """Whether C is known to be small in the loop that the array does not have."""
    maps = indexing_maps(product)
    assert maps is not None, product
    *inputs, out = product.operands
    own = {str(result) for result in maps[inputs.index(array)].results}
    extents = [
        extent
        for extent, result in zip(out.type.shape, maps[-1].results, strict=True)
        if str(result) not in own
    ]
    dynamic = ir.ShapedType.get_dynamic_size()
    return all(extent != dynamic and extent <= _FEW for extent in extents)


def _about_cost(element: Elementwise) -> Iterator[str]:
    ops = [op.operation for op in element.block.operations][:-1]
    for op in ops:
        is_math = op.name.startswith("math.") and op.name not in _CHEAP_MATH
        if is_math or op.name in _COSTLY_ARITH:
            yield f"'{op.name}' would be computed again for each tile that is read"
    if len(ops) > _MOST_OPS:
        yield (
            f"its {len(ops)} ops would be computed again for each tile that is read, "
            f"expected {_MOST_OPS} at most"
        )


def _sources(element: Elementwise) -> list[Operand]:
    """The arrays that it reads that have an element for each of its output."""
    return [
        operand
        for operand in element.reads
        if operand.is_array
        and len(operand.loops) == element.rank
        and None not in operand.loops
    ]


def _captured(element: Elementwise) -> list[Any]:
    """What the body uses and does not define."""
    ops = [op.operation for op in element.block.operations]
    inside = [*element.block.arguments, *(r for op in ops for r in op.results)]
    return [v for op in ops for v in op.operands if v not in inside]


def _is_constant(value: Any) -> bool:
    op = defining_op(value)
    return op is not None and op.operation.name == "arith.constant"
