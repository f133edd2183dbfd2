"""Remove the offset from the memref types of a function's arguments.

Before:  func.func @f(%A: memref<64x32xf16, strided<[?, 1], offset: ?>>) {
           linalg.matmul ins(%A, ...) ; %v = memref.subview %A[...] }
After:   func.func @f(%A: memref<64x32xf16, strided<[?, 1]>>) {
           %a = memref.cast %A : ... to memref<64x32xf16, strided<[?, 1], offset: ?>>
           linalg.matmul ins(%A, ...) ; %v = memref.subview %a[...] }

What a caller passes for an argument is the view itself: a kernel gets the address of
its first element. So no offset is added to it, whatever number the type has. A constant
offset is subtracted from the types of the argument's views as well; where the offset is
dynamic, these views start from a cast. Strides that follow from the sizes are removed
together with the offset.

An argument with a constant offset keeps its type, with a remark, where a call or a loop
uses it; so do the arguments of a function that is called itself.

Runs after bufferization, and before the passes that read the types of arguments. Reads
and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.memory import DERIVED_VIEWS
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, memref
from alcop_mlir.diagnostics import remark
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

# Ops that take a memref of any layout.
_LAYOUT_AGNOSTIC = frozenset(
    """
    memref.copy memref.dim memref.load memref.store
    vector.load vector.store vector.transfer_read vector.transfer_write
    """.split()
)


@dataclass(frozen=True)
class DropOffsets(Pass):
    name = "alcop-drop-offsets"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        called = _called(op)
        for function in walk(op, "func.func"):
            if not len(function.regions[0].blocks):
                continue
            if function.attributes["sym_name"].value not in called:
                for argument in _arguments(function):
                    _drop_offset(argument, function)
                _retype(function)
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


def _retype(function: ir.Operation) -> None:
    """Write the types of the arguments into the function's type."""
    kind = function.attributes["function_type"].value
    inputs = [argument.type for argument in _arguments(function)]
    new = ir.FunctionType.get(inputs, kind.results)
    function.attributes["function_type"] = ir.TypeAttr.get(new)
