"""What attributes promise.

Of a function's arguments, checked at launch: `alcop.row_alignment`, `alcop.alignment`;
the first also of what a `memref.assume_alignment` yields or a `memref.alloc` allocates,
where a guard has checked it (alcop-add-variants). Of the memrefs of a loop, checked
before it: `alcop.noalias`.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.loops import constant, defining_op, made_by
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError

NOALIAS = "alcop.noalias"
ALIGNMENT = "alcop.alignment"  # bytes, of the first element
ROW_ALIGNMENT = "alcop.row_alignment"  # bytes
_CASTS = ("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")
_MOST_BYTES = 2**20  # of a promise


def check_promises(function: ir.Operation) -> None:
    """PassError at the first argument of `function` whose promises cannot be kept."""
    for block in list(function.regions[0].blocks)[:1]:
        for argument in block.arguments:
            why = _wrong(argument)
            if why:
                raise PassError(function, why, argument.location)


def _wrong(argument: ir.Value) -> str:
    """What is wrong with the promises of an argument; "" where nothing is."""
    for name in (ALIGNMENT, ROW_ALIGNMENT):
        given = of_argument(argument, name)
        if given is None:
            continue
        bytes = given.value if isinstance(given, ir.IntegerAttr) else 0
        if not 1 <= bytes <= _MOST_BYTES or (name == ALIGNMENT and bytes & (bytes - 1)):
            kind = "a power of two" if name == ALIGNMENT else "a number of bytes"
            found = str(given).partition(" : ")[0]
            return f"'{name}' is {found}, expected {kind} from 1 to {_MOST_BYTES}"
    kind = argument.type
    if not isinstance(kind, ir.MemRefType) or not kind.rank:
        return ""
    promised, length = row_alignment(argument), kind.shape[-1]
    row = length * _element_bytes(kind)
    if kind.is_dynamic_dim(kind.rank - 1) or row % promised == 0:
        return ""
    return f"'{ROW_ALIGNMENT}' is {promised}, but rows are of {row} bytes"


def noalias(op: ir.Operation) -> bool | None:
    """Whether arguments that are written in the loops around `op` overlap no other.

    False says so of loops for the case that they do; None where nothing is known.
    """
    for one in (op.operation, *around(op)):
        if NOALIAS in one.attributes:
            return one.attributes[NOALIAS].value
    return None


def row_alignment(memref: ir.Value) -> int:
    """The promised divisor of a row's bytes and of the distance of rows; 1 for none.

    Looks through casts, and through views that regroup the other dimensions, at an
    argument of a function or at an allocation; an assumption on the way may promise it
    as well.
    """
    promised, op = 1, defining_op(memref)
    while op is not None and (op.name in _CASTS or _keeps_rows(op)):
        promised = math.lcm(promised, assumed_row_alignment(op))
        memref = op.operands[0]
        op = defining_op(memref)
    if op is None:
        given = of_argument(memref, ROW_ALIGNMENT)
        return promised if given is None else math.lcm(promised, given.value)
    own = assumed_row_alignment(op), _allocated_alignment(op)
    return math.lcm(promised, *own)


def assumed_row_alignment(op: ir.Operation) -> int:
    """What an assumption or allocation promises itself; 1 where it does not."""
    is_known = op.name in ("memref.assume_alignment", "memref.alloc")
    attributes = op.attributes
    promises = is_known and ROW_ALIGNMENT in attributes
    return attributes[ROW_ALIGNMENT].value if promises else 1


def of_argument(argument: ir.Value, name: str) -> Any | None:
    """The attribute of that name of an argument of a `func.func`; None without."""
    function = argument.owner.owner
    if function is None or function.operation.name != "func.func":
        return None
    if "arg_attrs" not in function.operation.attributes:
        return None
    given = ir.DictAttr(function.operation.attributes["arg_attrs"][argument.arg_number])
    return given[name] if name in given else None


def _allocated_alignment(alloc: ir.Operation) -> int:
    """The alignment of an allocation whose rows are as long as an argument's."""
    if alloc.name != "memref.alloc":
        return 1
    kind = alloc.results[0].type
    dynamic = [n for n in range(kind.rank) if kind.is_dynamic_dim(n)]
    if not dynamic or dynamic[-1] != kind.rank - 1:
        return 1
    size = made_by(alloc.operands[len(dynamic) - 1], "memref.dim")
    if size is None:
        return 1
    source, dimension = size.operands
    if constant(dimension) != source.type.rank - 1:
        return 1
    elements = row_alignment(source) // _element_bytes(source.type)
    return max(1, elements * _element_bytes(kind))


def _element_bytes(kind: ir.Type) -> int:
    return max(1, (element_bits(kind.element_type) or 1) // 8)


def _keeps_rows(op: ir.Operation) -> bool:
    """Whether `op` is a view that regroups dimensions, but not the last one."""
    if op.name not in ("memref.expand_shape", "memref.collapse_shape"):
        return False
    return len(list(op.attributes["reassociation"])[-1]) == 1
