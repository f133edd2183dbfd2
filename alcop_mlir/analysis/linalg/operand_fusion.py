"""Operand-side fusion: which element-wise op computes an input of a contraction.

`find_operand_producer` looks at one input and returns the op that computes it, a
`Rejected` with the reason if that op cannot be fused, or None where there is no such
op. Changes nothing.

An op that is fused runs later, for each tile that is read, and more than once for each
element. So it is fused only if

  - no other op reads what it writes, and it computes all of that from one memref;
  - no op between the two writes what it reads, nor does the contraction;
  - it costs little: conversions, scaling, a comparison; or more, where C has so few
    rows (columns) that little is computed again.

An op on the output of another contraction is not returned: epilogue fusion takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from alcop_mlir.analysis.ir.code_motion import (
    NO_ACCESS,
    ops_after,
    reaches_only_operands,
    writes,
)
from alcop_mlir.analysis.ir.memory import is_own_allocation, may_alias, root
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.view import Operand, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_MOST_OPS = 8  # for each element; a step of a warp multiplies it 16 times and more
# Rows (columns) of C that few warps compute: only these read an element again.
_FEW = 256
# Ops of `math` that take few instructions, and ops of `arith` that do not.
_CHEAP_MATH = frozenset(
    f"math.{name}" for name in "absf absi ceil copysign floor fma trunc".split()
)
_COSTLY_ARITH = frozenset(
    f"arith.{name}" for name in "divf divsi divui remf remsi remui".split()
)


@frozen
class OperandProducer:
    """An element-wise op that can be computed where its output is read.

    source: the memref that it reads elements of; other inputs are scalars, or have one
            value per row or column
    """

    element: Elementwise
    source: Operand


def find_operand_producer(
    contraction: ir.Operation,
    number: int,
    contractions: Sequence[ir.Operation],
    noalias_arguments: bool = False,
) -> OperandProducer | Rejected | None:
    """The op that computes input `number` of the op `contraction`, see above.

    contractions:      all contractions of the function
    noalias_arguments: whether a written argument overlaps no other
    """
    memref = contraction.operands[number]
    if not is_own_allocation(memref):
        return None
    element = _writer(memref, contraction)
    if element is None or element.block is None:
        return None
    sources = _sources(element)
    if any(_is_of_contraction(source.value, contractions) for source in sources):
        return None
    why = next(_objections(element, contraction, noalias_arguments), None)
    if why is None and not _is_read_by_few(memref, contraction):
        why = next(_about_cost(element), None)
    if why is not None:
        return Rejected(element.op, why)
    return OperandProducer(element, sources[0])


def _writer(memref: ir.Value, contraction: ir.Operation) -> Elementwise | None:
    """The element-wise op before the contraction that writes the memref."""
    for op in (use.owner.operation for use in memref.uses):
        if op.block == contraction.block and op.is_before_in_block(contraction):
            found = elementwise(op)
            if found is not None and found.output.value == memref:
                return found
    return None


def _is_of_contraction(
    memref: ir.Value, contractions: Sequence[ir.Operation], depth: int = 8
) -> bool:
    """Whether the memref is a contraction's output, or computed from one by element."""
    if not is_own_allocation(memref) or not depth:
        return False
    for use in memref.uses:
        op = use.owner.operation
        if op in contractions and list(op.operands)[-1] == memref:
            return True
        element = elementwise(op)
        if element is None or element.output.value != memref:
            continue
        inputs = [operand.value for operand in element.inputs if operand.is_memref]
        if any(_is_of_contraction(value, contractions, depth - 1) for value in inputs):
            return True
    return False


def _objections(
    element: Elementwise, contraction: ir.Operation, noalias: bool
) -> Iterator[str]:
    """Reasons why the op cannot be fused; each assumes that none before it applies."""
    yield from _about_output(element, contraction)
    memrefs = _sources(element)
    if len(memrefs) != 1:
        yield f"reads {len(memrefs)} memrefs by the loops of its output, expected one"
    for operand in element.reads:
        if operand.is_memref and operand not in memrefs and len(operand.loops) > 1:
            yield "reads a matrix by other loops than its output has: a broadcast"
    yield from element.unstable
    yield from _about_order(element, contraction, noalias)


def _about_output(element: Elementwise, contraction: ir.Operation) -> Iterator[str]:
    memref = element.output.value
    if element.reads_output:
        yield "reads its output, expected an output that is only written"
    for use in memref.uses:
        user = use.owner.operation
        if user not in (element.op, contraction) and user.name not in NO_ACCESS:
            yield f"its output is also used by '{user.name}'"
    if sum(1 for value in contraction.operands if value == memref) > 1:
        yield "the contraction reads its output twice"


def _about_order(
    element: Elementwise, contraction: ir.Operation, noalias: bool
) -> Iterator[str]:
    memrefs = [operand.value for operand in element.reads if operand.is_memref]
    for op in ops_after(element.op):
        if op == contraction:
            break
        if not reaches_only_operands(op):
            yield f"'{op.name}' between the two may write what it reads"
        for memref in memrefs:
            if writes(op, memref, noalias):
                yield f"'{op.name}' between the two writes what it reads"
    out = list(contraction.operands)[-1]
    for memref in memrefs:
        if may_alias(root(out), root(memref), noalias):
            yield "the contraction may overwrite what it reads"


def _is_read_by_few(memref: ir.Value, contraction: ir.Operation) -> bool:
    """Whether C is known to be small in the loop that does not index the memref."""
    view = view_of(contraction)
    (out,) = view.outputs
    (own,) = (one.loops for one in view.inputs if one.value == memref)
    extents = [
        out.static_size(dimension)
        for dimension, loop in enumerate(out.loops)
        if loop not in own
    ]
    return all(extent is not None and extent <= _FEW for extent in extents)


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
    """The memrefs that it reads by all loops: one element for each of its output."""
    return [one for one in element.reads if one.is_memref and one.is_permutation]
