"""Remove the offset from the memref types of arguments; say how these are aligned.

Before:  func.func @f(%A: memref<64x32xf16, strided<[?, 1], offset: ?>>) {
           linalg.matmul ins(%A, ...) ; %v = memref.subview %A[...] }
After:   func.func @f(%A: memref<64x32xf16, strided<[?, 1]>> {alcop.alignment = 2}) {
           %a = memref.cast %A : ... to memref<64x32xf16, strided<[?, 1], offset: ?>>
           linalg.matmul ins(%A, ...) ; %v = memref.subview %a[...] }

What a caller passes for an argument is the view itself: a kernel gets the address of
its first element. So no offset is added to it, whatever number the type has. A constant
offset is subtracted from the types of the argument's views as well; where the offset is
dynamic, these views start from a cast. Strides that follow from the sizes are removed
together with the offset.

An argument whose offset, or whose length or distance of rows, is dynamic may begin at
any element: `alcop.alignment` says so, in bytes. One that is promised to have aligned
rows (`alcop.row_alignment`) begins as its rows do. Others begin at a multiple of 16
bytes, of which nothing is written.

Promises that are no numbers of bytes, or that rows of a known length cannot keep, are
errors at the argument.

An argument with a constant offset keeps its type, with a remark, where a call or a loop
uses it; so do the arguments of a function that is called itself.

Runs after bufferization, and before the passes that read the types of arguments. Reads
`alcop.row_alignment`; writes `alcop.alignment`, which stays, and is checked at launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir.alignment import BASE_ALIGNMENT, element_bytes
from alcop_mlir.analysis.ir.memory import DERIVED_VIEWS
from alcop_mlir.analysis.ir.memref_layouts import is_strided, open_strides
from alcop_mlir.analysis.ir.promises import (
    ALIGNMENT,
    check_promises,
    of_argument,
    row_alignment,
)
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, memref
from alcop_mlir.diagnostics import remark
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass

# Ops that take a memref of any layout.
_LAYOUT_AGNOSTIC = frozenset(
    """
    memref.copy memref.dim memref.load memref.store
    vector.load vector.store vector.transfer_read vector.transfer_write
    """.split()
)


@frozen
class DropOffsets(Pass):
    name = "alcop-drop-offsets"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        called = _called(op)
        for function in walk(op, "func.func"):
            if not len(function.regions[0].blocks):
                continue
            check_promises(function)
            if function.attributes["sym_name"].value not in called:
                _write_alignments(function)
                for argument in _arguments(function):
                    _drop_offset(argument, function)
                edit.write_argument_types(function)
            elif any(map(_offset, _arguments(function))):
                what = "offsets of its arguments are left unchanged: it is called"
                remark(function, what)


def _called(module: ir.Operation) -> set[str]:
    """Names of the functions that are called in the module."""
    calls = walk(module, "func.call")
    return {call.attributes["callee"].value for call in calls}


def _arguments(function: ir.Operation) -> list[Any]:
    return list(function.regions[0].blocks[0].arguments)


def _offset(value: ir.Value) -> int:
    """The offset in the type; 0 for types other than strided memrefs."""
    if not isinstance(value.type, ir.MemRefType):
        return 0
    if not isinstance(value.type.layout, ir.StridedLayoutAttr):
        return 0
    _, offset = value.type.get_strides_and_offset()
    return offset


def _write_alignments(function: ir.Operation) -> None:
    """Say of the arguments that may begin anywhere where they may."""
    found = {
        number: least
        for number, argument in enumerate(_arguments(function))
        if of_argument(argument, ALIGNMENT) is None
        and (least := _alignment(argument)) < BASE_ALIGNMENT
    }
    if not found:
        return
    given = [{} for _ in _arguments(function)]
    if "arg_attrs" in function.attributes:
        attributes = function.attributes["arg_attrs"]
        given = [{one.name: one.attr for one in ir.DictAttr(of)} for of in attributes]
    for number, least in found.items():
        given[number][ALIGNMENT] = to_attribute(least)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        list(map(ir.DictAttr.get, given))
    )


def _alignment(argument: ir.Value) -> int:
    """Bytes that the first element of an argument is a multiple of."""
    kind = argument.type
    if not isinstance(kind, ir.MemRefType) or not kind.rank or not is_strided(kind):
        return BASE_ALIGNMENT
    is_anywhere = kind.is_dynamic_stride_or_offset(_offset(argument))
    has_open_rows = kind.is_dynamic_dim(kind.rank - 1) or open_strides(kind)
    if not is_anywhere and not has_open_rows:
        return BASE_ALIGNMENT
    return math.gcd(
        BASE_ALIGNMENT, math.lcm(row_alignment(argument), element_bytes(kind))
    )


def _drop_offset(argument: ir.Value, function: ir.Operation) -> None:
    offset, old = _offset(argument), argument.type
    if offset == 0:
        return
    if not old.is_dynamic_stride_or_offset(offset):
        culprit = next(_fixed_uses(argument), None)
        if culprit is not None:
            remark(
                culprit, f"'{culprit.name}' needs {old}: its offset is left unchanged"
            )
            return
        _shift(argument, -offset)
        return
    argument.set_type(_with_offset(old, 0))
    users = [use.owner.operation for use in argument.uses]
    if all(map(_takes_any_layout, users)):
        return
    block = function.regions[0].blocks[0]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        cast = memref.cast(old, argument)
    for use in list(argument.uses):
        user = use.owner.operation
        if user != cast.owner.operation and not _takes_any_layout(user):
            user.operands[use.operand_number] = cast


def _takes_any_layout(op: ir.Operation) -> bool:
    return op.name in _LAYOUT_AGNOSTIC or op.name.startswith("linalg.")


def _fixed_uses(value: ir.Value) -> Iterator[Any]:
    """Ops that use `value` or a view of it, and need its type unchanged."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in DERIVED_VIEWS:
            yield from _fixed_uses(user.results[0])
        elif not _takes_any_layout(user):
            yield user


def _shift(value: ir.Value, by: int) -> None:
    """Add to the offsets in the types of `value` and its views, where constant."""
    kind = value.type
    _, offset = kind.get_strides_and_offset()
    if kind.is_dynamic_stride_or_offset(offset):
        return
    value.set_type(_with_offset(kind, offset + by))
    for use in value.uses:
        user = use.owner.operation
        if user.name in DERIVED_VIEWS:
            _shift(user.results[0], by)


def _with_offset(kind: ir.Type, offset: int) -> Any:
    """The type with that offset; without a layout where the shape implies it."""
    strides, _ = kind.get_strides_and_offset()
    plain = build.memref_like(kind)
    if offset == 0 and strides == plain.get_strides_and_offset()[0]:
        if not any(map(kind.is_dynamic_stride_or_offset, strides)):
            return plain
    return build.memref_like(kind, layout=ir.StridedLayoutAttr.get(offset, strides))
