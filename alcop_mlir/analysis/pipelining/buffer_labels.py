"""What a pipelined buffer is called in descriptions: `arg0 128x32xf16`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import is_workgroup, root
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.fetches import fetched_memrefs, is_fetch
from alcop_mlir.bindings import ir
from alcop_mlir.manifest.names import argument_name, intermediate_name


def buffer_labels(launch: ir.Operation, copies: Sequence[ir.Operation]) -> list[str]:
    """Per pipelined copy of the launch where its contents come from, and their type.

    copies: in the order of the program: one may read what another before it fills
    """
    allocated = _allocated(launch)
    origins: dict[Any, str] = {}
    labels = []
    for copy in copies:
        form = copy_form(copy)
        move = None if form is None else form.moves[0]
        if move is not None:
            source = root(move.source)
        else:
            read = fetched_memrefs(copy) if is_fetch(copy) else copy.operands
            source = root(read[0])
        origin = _name(source, allocated)
        if origin is None:  # read from a buffer that another copy fills
            origin = origins.get(source, "")
        elif move is not None:
            origins[root(move.target)] = origin
        kind = copy.results[0].type if move is None else move.target.type
        labels.append(f"{origin} {_shown(kind)}".strip())
    return labels


def _allocated(launch: ir.Operation) -> list[Any]:
    """The buffers that the function around `launch` allocates, in their order."""
    functions = (op for op in around(launch) if op.name == "func.func")
    return [
        op.operation.results[0]
        for function in functions
        for op in function.regions[0].blocks[0].operations
        if op.operation.name == "memref.alloc"
        and not is_workgroup(op.operation.results[0].type)
    ]


def _name(source: ir.Value, allocated: list[ir.Value]) -> str | None:
    if source in allocated:
        return intermediate_name(allocated.index(source))
    if defining_op(source) is None:
        return argument_name(ir.BlockArgument(source).arg_number)
    return None


def _shown(kind: ir.Type) -> str:
    if not isinstance(kind, ir.ShapedType):  # a load of one element
        return str(kind)
    return "x".join(str(size) for size in (*kind.shape, kind.element_type))
