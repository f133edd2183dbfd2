"""Linalg ops as loop nests: which loops go over the elements of the outputs.

`read` returns a `Nest`, or a `Rejected` that says why the SIMT fallback, one thread per
element of the outputs, cannot run the op. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view, why_not_in_place
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.element_types import ARRAY_FLOATS

_INTEGERS = (ir.IntegerType, ir.IndexType)


@dataclass(frozen=True)
class Nest(LinalgView):
    """A linalg op on memrefs, whose outputs are indexed by loops, the same in each."""

    @property
    def points(self) -> tuple[int, ...]:
        """The loops that index the outputs, in the order of the first one's dimensions.

        Iterations that differ in them write different elements.
        """
        return tuple(loop for loop in self.outputs[0].loops if loop is not None)


class _NoNest(Exception):
    """Carries the reason to `read`."""


def read(op: ir.Operation) -> Nest | Rejected:
    """The linalg op as a loop nest, or why it is not a supported one."""
    try:
        return _read(op.operation)
    except _NoNest as no:
        return Rejected(op.operation, str(no))


def _read(op: ir.Operation) -> Nest:
    view = linalg_view(op)
    if view is None:
        raise _NoNest("is not a loop nest: expected an op with indexing maps")
    nest = Nest(op, view.rank, view.inputs, view.outputs, view.block)
    _check_form(nest)
    _check_outputs(nest)
    _check_in_place(nest)
    _check_sizes(nest)
    return nest


def _check_form(nest: Nest) -> None:
    """Raise unless it is an op on memrefs that is not marked."""
    for operand in nest.operands:
        kind = operand.value.type
        if operand.is_tensor:
            raise _NoNest("works on tensors, expected memrefs: bufferize first")
        if operand.is_memref and kind.memory_space is not None:
            raise _NoNest(f"uses {kind}, expected no memory space")
        element = kind.element_type if operand.is_memref else kind
        if str(element) not in ARRAY_FLOATS and not isinstance(element, _INTEGERS):
            raise _NoNest(
                f"has {element} elements, expected integers, "
                f"{', '.join(ARRAY_FLOATS)}: no target computes with others"
            )
    mark = alcop.get(nest.op, alcop.ContractionAttr) or {}
    if "init" in mark:
        raise _NoNest(
            "is marked as a contraction: expected alcop-tile-to-blocks, which compiles "
            "it, to run before"
        )


def _check_outputs(nest: Nest) -> None:
    """The same loops must index each output."""
    for output in nest.outputs:
        loops = set(output.loops)
        if None in loops:
            raise _NoNest(f"writes at {output.map}, expected loops only")
        if len(loops) != len(output.loops):
            raise _NoNest(f"writes at {output.map}, expected each loop once")
        if loops != set(nest.points):
            raise _NoNest("indexes its outputs by different loops, expected the same")


def _check_in_place(nest: Nest) -> None:
    """Raise where a thread would read through an input what another one writes."""
    why = why_not_in_place(nest)
    if why is not None:
        raise _NoNest(why)


def _check_sizes(nest: Nest) -> None:
    """Indices with sizes known at run time must be such that a host can check them."""
    for operand in nest.operands:
        for dimension, index in enumerate(operand.indices):
            is_static = operand.static_size(dimension) is not None and all(
                nest.static_size(loop) is not None for loop in index.loops
            )
            if not is_static and not index.grows:
                raise _NoNest(
                    f"indexes by {operand.map} with sizes known at run time: expected "
                    "indices that grow with each loop, whose bounds are checked at "
                    "launch"
                )
