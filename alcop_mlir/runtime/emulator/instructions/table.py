"""Which opcode is translated by which function."""

from __future__ import annotations

from alcop_mlir.runtime.emulator.instructions import (
    async_copy,
    convert,
    floating,
    integer,
    matrix_access,
    matrix_multiply,
    memory,
    multiply,
    predicate,
    warp,
)
from alcop_mlir.runtime.emulator.instructions.barriers import (
    translate_fence,
    translate_warp_barrier,
)
from alcop_mlir.runtime.emulator.instructions.traits import ends_span
from alcop_mlir.runtime.emulator.instructions.translator import Handler
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, unsupported

HANDLERS: dict[str, Handler] = {
    **integer.HANDLERS,
    **multiply.HANDLERS,
    **convert.HANDLERS,
    **predicate.HANDLERS,
    **memory.HANDLERS,
    **warp.HANDLERS,
    **matrix_access.HANDLERS,
    **matrix_multiply.HANDLERS,
    **async_copy.HANDLERS,
    "membar": translate_fence,
    "fence": translate_fence,
}
FLOAT_HANDLERS = floating.HANDLERS
_INTEGER_ONLY = frozenset(integer.HANDLERS | multiply.HANDLERS)


def handler_of(ins: Instruction) -> Handler:
    """The function that translates `ins`; `EmulationError` outside the subset."""
    name = ins.parts[0]
    if ins.parts[:2] == ("bar", "warp"):
        return translate_warp_barrier
    scalar = SCALARS.get(ins.parts[-1])
    is_float = scalar is not None and scalar.kind == "f"
    if is_float and name in FLOAT_HANDLERS:
        return FLOAT_HANDLERS[name]
    if name not in HANDLERS or (is_float and name in _INTEGER_ONLY):
        raise unsupported(ins)
    return HANDLERS[name]


def check_known(ins: Instruction) -> None:
    """Raises `EmulationError` for an opcode outside the subset."""
    name = ins.parts[0]
    known = name in HANDLERS or name in FLOAT_HANDLERS or ends_span(ins)
    if not known and ins.parts[:3] != ("bar", "warp", "sync"):
        raise unsupported(ins)
    if "cluster" in ins.parts or "shared::cluster" in ins.parts:
        raise unsupported(ins, "thread block clusters")
