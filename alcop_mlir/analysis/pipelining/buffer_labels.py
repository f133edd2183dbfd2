"""What a pipelined buffer is called in descriptions: `arg0 128x32xf16`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    function = next((op for op in around(launch) if op.name == "func.func"), None)
    names = {} if function is None else origins(function)
    filled: dict[Any, str] = {}
    labels = []
    for copy in copies:
        form = copy_form(copy)
        move = None if form is None else form.moves[0]
        if move is not None:
            source = root(move.source)
        else:
            read = fetched_memrefs(copy) if is_fetch(copy) else copy.operands
            source = root(read[0])
        origin = names.get(source)
        if origin is None:  # read from a buffer that another copy fills
            origin = filled.get(source, "")
        elif move is not None:
            filled[root(move.target)] = origin
        kind = copy.results[0].type if move is None else move.target.type
        labels.append(f"{origin} {_shown(kind)}".strip())
    return labels


def origins(function: ir.Operation) -> dict[Any, str]:
    """What the buffers of a host function are called: arguments, and what it allocates.

    The latter are numbered in their order, those in branches left out.
    """
    (block, *_) = function.regions[0].blocks
    ops = (op.operation for op in block.operations)
    allocated = (
        op.results[0]
        for op in ops
        if op.name == "memref.alloc" and not is_workgroup(op.results[0].type)
    )
    return {
        **{one: argument_name(one.arg_number) for one in block.arguments},
        **{one: intermediate_name(number) for number, one in enumerate(allocated)},
    }


def arguments_called(
    names: Mapping[Any, str], operands: Sequence[ir.Value]
) -> dict[str, str]:
    """What a function's arguments are called where it is called with `operands`."""
    return {
        argument_name(number): names.get(root(value), "")
        for number, value in enumerate(operands)
    }


def relabelled(label: str, names: Mapping[str, str]) -> str:
    """The label with another name of the buffer, where `names` has one."""
    name, _, kind = label.partition(" ")
    return f"{names[name]} {kind}".strip() if name in names else label


def _shown(kind: ir.Type) -> str:
    if not isinstance(kind, ir.ShapedType):  # a load of one element
        return str(kind)
    return "x".join(str(size) for size in (*kind.shape, kind.element_type))
