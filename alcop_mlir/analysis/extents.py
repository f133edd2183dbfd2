"""How far memrefs reach: sizes as numbers or as values that are there already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.alignment import behind_casts, divisor, kept_dimensions
from alcop_mlir.analysis.loops import constant, defining_op
from alcop_mlir.bindings import ir

ROW_ALIGNMENT = "alcop.row_alignment"  # of a function's argument; bytes


def extent(memref: Any, number: int) -> Any:
    """Size of dimension `number`: an int, a value, or None where only an op can tell.

    Looks through casts, and at the sizes that a view was made with.
    """
    memref = behind_casts(memref)
    if not memref.type.is_dynamic_dim(number):
        return memref.type.shape[number]
    op = defining_op(memref)
    if op is None:
        return None
    if op.operation.name == "memref.reinterpret_cast":
        size = list(_given_sizes(op))[number]
    elif op.operation.name == "memref.subview":
        size = list(_given_sizes(op))[kept_dimensions(op)[number]]
    else:
        return None
    if isinstance(size, int):
        return size
    known = constant(size)
    return size if known is None else known


def extent_divisor(memref: Any, number: int) -> int:
    """A number that surely divides the size of dimension `number`; 0 for size 0."""
    size = extent(memref, number)
    if size is None:
        return 1
    return size if isinstance(size, int) else divisor(size)


def row_alignment(array: Any) -> int:
    """Bytes that a row of the array is promised to be a multiple of; 1 for no promise.

    `alcop.row_alignment` on an argument of a function, checked where it is launched.
    """
    if defining_op(array) is not None:
        return 1
    function = array.owner.owner
    if function is None or function.operation.name != "func.func":
        return 1
    if "arg_attrs" not in function.operation.attributes:
        return 1
    given = ir.DictAttr(function.operation.attributes["arg_attrs"][array.arg_number])
    return given[ROW_ALIGNMENT].value if ROW_ALIGNMENT in given else 1


def _given_sizes(view: Any) -> Iterator[Any]:
    """The sizes of a subview or reinterpret_cast: ints, or operands."""
    operation = view.operation
    _, offsets, sizes, _ = operation.attributes["operandSegmentSizes"]
    operands = iter(list(operation.operands)[1 + offsets : 1 + offsets + sizes])
    dynamic = ir.ShapedType.get_dynamic_size()
    for size in operation.attributes["static_sizes"]:
        yield next(operands) if size == dynamic else size
