"""Linalg ops as loop nests: which loops go over the elements of the outputs.

`read` returns a `Nest`, or a `Rejected` that says why the SIMT fallback, one thread per
element of the outputs, cannot run the op. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view, why_not_in_place
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.element_types import ARRAY_TYPES
from alcop_mlir.frozen import frozen

# Of the memrefs of a function, and of what is computed from these.
_ELEMENTS = (*ARRAY_TYPES, "index")


@frozen
class Nest(LinalgView):
    """A linalg op on memrefs, whose outputs are indexed by loops, the same in each."""

    @property
    def points(self) -> tuple[int, ...]:
        """The loops that index the outputs, in the order of the first one's dimensions.

        Iterations that differ in them write different elements.
        """
        return tuple(loop for loop in self.outputs[0].loops if loop is not None)


def read(op: ir.Operation) -> Nest | Rejected:
    """The linalg op as a loop nest, or why it is not a supported one."""
    view = linalg_view(op)
    if view is None:
        reason = "is not a loop nest: expected an op with indexing maps"
        return Rejected(op.operation, reason)
    nest = Nest(op.operation, view.rank, view.inputs, view.outputs, view.block)
    why = next(_objections(nest), None)
    return nest if why is None else Rejected(op.operation, why)


def _objections(nest: Nest) -> Iterator[str]:
    """Reasons why it is not supported; each assumes that none before it applies."""
    yield from _about_form(nest)
    yield from _about_outputs(nest)
    in_place = why_not_in_place(nest)
    if in_place is not None:
        yield in_place
    yield from _about_sizes(nest)


def _about_form(nest: Nest) -> Iterator[str]:
    """It must be an op on memrefs that is not marked."""
    for operand in nest.operands:
        kind = operand.value.type
        if operand.is_tensor:
            yield "works on tensors, expected memrefs: bufferize first"
        if operand.is_memref and kind.memory_space is not None:
            yield f"uses {kind}, expected no memory space"
        element = kind.element_type if operand.is_memref else kind
        if str(element) not in _ELEMENTS:
            yield f"has {element} elements, expected one of {', '.join(_ELEMENTS)}"
    mark = alcop.get(nest.op, alcop.ContractionAttr) or {}
    if "init" in mark:
        yield (
            "is marked as a contraction: expected alcop-tile-to-blocks, which compiles "
            "it, to run before"
        )


def _about_outputs(nest: Nest) -> Iterator[str]:
    """The same loops must index each output."""
    for output in nest.outputs:
        loops = set(output.loops)
        if None in loops:
            yield f"writes at {output.map}, expected loops only"
        if len(loops) != len(output.loops):
            yield f"writes at {output.map}, expected each loop once"
        if loops != set(nest.points):
            yield "indexes its outputs by different loops, expected the same"


def _about_sizes(nest: Nest) -> Iterator[str]:
    """No index may be outside of its memref, and a host must be able to check that."""
    outside = nest.outside()
    if outside is not None:
        yield outside
    for operand in nest.operands:
        for dimension, index in enumerate(operand.indices):
            if not nest.is_static(operand, dimension) and index.coefficients is None:
                yield (
                    f"indexes by {operand.map} with sizes known at run time: expected "
                    "additions of loops, whose bounds are checked at launch"
                )
