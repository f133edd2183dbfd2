"""Element-wise ops: each output element is computed from one element of each input.

These are linalg ops whose loops are all parallel, whose operands are indexed by loops
alone (or by 0), and whose body is scalar arithmetic; and `memref.copy`. Their operands
are memrefs, or tensors. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.code_motion import (
    reaches_only_operands,
    touches,
    users_above,
)
from alcop_mlir.analysis.ir.loops import block_of, made_by
from alcop_mlir.analysis.ir.slices import captured
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

INDEX = "linalg.index"
_BODY_DIALECTS = ("arith", "math")
_SCALARS = (ir.FloatType, ir.IntegerType)


@frozen
class Elementwise(LinalgView):
    """An element-wise op with one output; see above.

    The loops of an operand are None along dimensions with index 0.
    """

    @property
    def output(self) -> Operand:
        """The memref or tensor that is written."""
        return self.outputs[0]

    @property
    def reads(self) -> list[Operand]:
        """The operands whose elements the body uses, perhaps the output too."""
        read = [operand for operand in self.inputs if operand.is_read]
        return [*read, self.output] if self.reads_output else read

    @property
    def reads_output(self) -> bool:
        """Whether the output is computed from its old value."""
        return self.output.argument is not None and self.output.is_read

    @property
    def captured(self) -> list[Any]:
        """Values from outside of the body that it uses."""
        return captured(self.op)[len(self.op.operands) :]

    @property
    def unstable(self) -> Iterator[str]:
        """Why scalars that it uses are not known elsewhere: they must be constant."""
        scalars = [one.value for one in self.reads if not one.is_memref]
        if not all(map(is_constant, scalars)):
            yield "uses a scalar that is not constant"
        if not all(map(is_constant, self.captured)):
            yield "uses a value computed outside of it that is not constant"


def elementwise(op: ir.Operation, scalar_body: bool = False) -> Elementwise | None:
    """`op` as an element-wise op on memrefs; None if it is none.

    scalar_body: that its body is known to be arithmetic on scalars
    """
    view = linalg_view(op)
    if view is None or len(view.outputs) != 1:
        return None
    block = None if scalar_body else view.block
    if block is not None and not is_scalar_code(block):
        return None
    (output,) = view.outputs
    if not output.is_memref or not output.is_permutation:
        return None
    if not all(map(has_plain_indices, view.inputs)):
        return None
    return Elementwise(view.op, view.rank, view.inputs, view.outputs, view.block)


def elementwise_on_tensors(
    op: ir.Operation, scalar_body: bool = False, with_index: bool = False
) -> Elementwise | None:
    """`op` where it is element-wise, but computes a tensor; None if it does not.

    scalar_body: that its body is known to be arithmetic on scalars
    with_index:  also one that computes with numbers of iterations
    """
    view = linalg_view(op)
    if view is None or len(view.outputs) != 1 or view.block is None:
        return None
    if not scalar_body and not is_scalar_code(view.block, with_index):
        return None
    (output,) = view.outputs
    if not output.is_tensor or not output.is_permutation:
        return None
    if not all(map(has_plain_indices, view.inputs)):
        return None
    return Elementwise(view.op, view.rank, view.inputs, view.outputs, view.block)


def filled_with(view: LinalgView) -> Any | None:
    """The value that all elements of the one output get; None for any other op."""
    if view.block is None or not view.outputs[0].is_permutation:
        return None
    (value,) = view.block.operations[-1].operation.operands
    scalars = {one.argument: one.value for one in view.inputs if not one.is_memref}
    value = scalars.get(value, value)
    return None if block_of(value) == view.block else value


def is_constant(value: ir.Value) -> bool:
    """Whether it is the result of `arith.constant`."""
    return made_by(value, "arith.constant") is not None


def find_writer(
    op: ir.Operation,
    memrefs: Sequence[ir.Value],
    stops: Callable[[ir.Operation, ir.Value, bool], bool],
    noalias_arguments: bool,
    view: Callable[[ir.Operation], Elementwise | None] | None = None,
) -> Elementwise | None:
    """The element-wise op above `op` that writes one of `memrefs`, views of one.

    None where one in between may reach the first memref unseen, or where `stops`
    (`touches` or `writes`) is true of it. They may reach other memory.

    view: gives ops above as element-wise ones
    """
    for above in users_above(op, memrefs[0]):
        element = elementwise(above) if view is None else view(above)
        if element is not None and element.output.value in memrefs:
            return element
        is_known = element is not None or reaches_only_operands(above)
        if not is_known or stops(above, memrefs[0], noalias_arguments):
            return None
    return None


def find_fill(
    op: ir.Operation, memref: ir.Value, noalias_arguments: bool = False
) -> Elementwise | None:
    """The op above that fills `memref`, which nothing uses in between; or None."""
    writer = find_writer(op, [memref], touches, noalias_arguments, _possible_fill)
    return writer if writer and filled_with(writer) is not None else None


def _possible_fill(op: ir.Operation) -> Elementwise | None:
    """`op` as an element-wise op, also with numbers of iterations that nothing uses.

    So bufferization makes fills of what `tensor.pad` puts around a tensor.
    """
    view = linalg_view(op)
    if view is None or view.block is None:
        return elementwise(op)
    *body, _ = (inner.operation for inner in view.block.operations)
    is_unused = all(
        inner.name == "linalg.index" and not any(True for _ in inner.results[0].uses)
        for inner in body
    )
    return elementwise(op, scalar_body=is_unused)


def has_plain_indices(operand: Operand) -> bool:
    """Whether it is indexed by loops, each once, and by 0 alone."""
    loops = [index.loop for index in operand.indices if index.constant != 0]
    return None not in loops and len(set(loops)) == len(loops)


def is_scalar_code(block: ir.Block, with_index: bool = False) -> bool:
    """Whether the body is arithmetic on scalars, perhaps with numbers of iterations."""
    *body, _ = (op.operation for op in block.operations)
    kinds = (*_SCALARS, ir.IndexType) if with_index else _SCALARS
    return all(
        (op.name.split(".")[0] in _BODY_DIALECTS or (with_index and op.name == INDEX))
        and not len(op.regions)
        and all(isinstance(one.type, kinds) for one in op.results)
        for op in body
    )
