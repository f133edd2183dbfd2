"""Take the offset from the types of a function's arguments.

Before:  func.func @f(%A: memref<64x32xf16, strided<[?, 1], offset: ?>>) {
           linalg.matmul ins(%A, ...) ; %v = memref.subview %A[...] }
After:   func.func @f(%A: memref<64x32xf16, strided<[?, 1]>>) {
           %a = memref.cast %A : ... to memref<64x32xf16, strided<[?, 1], offset: ?>>
           linalg.matmul ins(%A, ...) ; %v = memref.subview %a[...] }

The array that is given for an argument is the view itself: what a kernel gets is the
address of its first element, and nothing lies before that. So no offset is added to it,
whatever number the type has. Where that is a constant, the types of views of the
argument are changed alike; where it is not, they begin at a cast. Strides that say no
more than the sizes go with the offset.

An argument with a constant offset that goes where its type may not change (a call, a
loop), and a function that is called itself, keep their types, with a remark.

Stands before everything that looks at the arguments of functions. Reads and writes no
attributes of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.memory import DERIVED_VIEWS
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, memref
from alcop_mlir.diagnostics import remark
from alcop_mlir.passes.base import Pass

# Ops that take a memref of any layout.
_TAKERS = frozenset(
    """
    memref.copy memref.dim memref.load memref.store
    vector.load vector.store vector.transfer_read vector.transfer_write
    """.split()
)


@dataclass(frozen=True)
class DropOffsets(Pass):
    name = "alcop-drop-offsets"
    anchor = "builtin.module"

    def run(self, op: Any) -> None:
        called = _called(op)
        for function in op.regions[0].blocks[0].operations:
            operation = function.operation
            if operation.name != "func.func" or not len(operation.regions[0].blocks):
                continue
            if ir.StringAttr(operation.attributes["sym_name"]).value in called:
                if any(_offset(value) for value in _arguments(operation)):
                    remark(operation, "offsets are left: the function is called")
                continue
            for argument in _arguments(operation):
                _drop_offset(argument, operation)
            _retype(operation)


def _called(module: Any) -> set[str]:
    """Names of the functions that are called in the module."""
    calls = walk(module, "func.call")
    return {ir.FlatSymbolRefAttr(call.attributes["callee"]).value for call in calls}


def _arguments(function: Any) -> list[Any]:
    return list(function.regions[0].blocks[0].arguments)


def _offset(value: Any) -> int:
    """As the type has it; 0 of other types than strided memrefs."""
    if not isinstance(value.type, ir.MemRefType):
        return 0
    if not isinstance(value.type.layout, ir.StridedLayoutAttr):
        return 0
    _, offset = value.type.get_strides_and_offset()
    return offset


def _drop_offset(argument: Any, function: Any) -> None:
    offset, old = _offset(argument), argument.type
    if offset == 0:
        return
    if not old.is_dynamic_stride_or_offset(offset):
        culprit = next(_fixed_uses(argument), None)
        if culprit is not None:
            remark(culprit, f"'{culprit.name}' needs {old}: its offset is left")
            return
        _shift(argument, -offset)
        return
    argument.set_type(_with_offset(old, 0))
    users = [use.owner.operation for use in argument.uses]
    if all(map(_takes_any_layout, users)):
        return
    block = function.regions[0].blocks[0]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        whole = memref.cast(old, argument)
    for use in list(argument.uses):
        user = use.owner.operation
        if user != whole.owner.operation and not _takes_any_layout(user):
            user.operands[use.operand_number] = whole


def _takes_any_layout(op: Any) -> bool:
    return op.name in _TAKERS or op.name.startswith("linalg.")


def _fixed_uses(value: Any) -> Iterator[Any]:
    """Ops that use `value` or a view of it and need its type to stay."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in DERIVED_VIEWS:
            yield from _fixed_uses(user.results[0])
        elif not _takes_any_layout(user):
            yield user


def _shift(value: Any, by: int) -> None:
    """Move `value` and the views of it, as far as types tell where they begin."""
    kind = value.type
    _, offset = kind.get_strides_and_offset()
    if kind.is_dynamic_stride_or_offset(offset):
        return
    value.set_type(_with_offset(kind, offset + by))
    for use in value.uses:
        user = use.owner.operation
        if user.name in DERIVED_VIEWS:
            _shift(user.results[0], by)


def _with_offset(kind: Any, offset: int) -> Any:
    """The type with that offset; without a layout where that says nothing more."""
    strides, _ = kind.get_strides_and_offset()
    plain = ir.MemRefType.get(
        kind.shape, kind.element_type, memory_space=kind.memory_space
    )
    if offset == 0 and strides == plain.get_strides_and_offset()[0]:
        if not any(map(kind.is_dynamic_stride_or_offset, strides)):
            return plain
    return ir.MemRefType.get(
        kind.shape,
        kind.element_type,
        layout=ir.StridedLayoutAttr.get(offset, strides),
        memory_space=kind.memory_space,
    )


def _retype(function: Any) -> None:
    """Let the function's own type be that of its arguments."""
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [argument.type for argument in _arguments(function)]
    new = ir.FunctionType.get(inputs, kind.results)
    function.attributes["function_type"] = ir.TypeAttr.get(new)
