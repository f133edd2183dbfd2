"""Operands whose size or kind is not that of the instruction: refused, as by ptxas.

PTX ISA "Operand Type Information", "Operand Size Exceeding Instruction-Type Size".
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, unsupported


def require_fit(
    ins: Instruction, name: str, declared: Scalar, bits: int, takes_wider: bool
) -> None:
    """Faults for a register that is wider than the operand, if it may not be.

    takes_wider: as ld, st and cvt do, but of floats only where they move bits
    """
    is_bits = declared.kind != "f" or _names_bits(ins)
    if declared.bits <= bits or (takes_wider and is_bits):
        return
    raise unsupported(ins, f"{name} has {declared.bits} bits, the operand {bits}")


def require_agreement(ins: Instruction, what: str, kind: str, scalar: Scalar) -> None:
    """Faults for a float where an integer is wanted, and the other way round.

    Bits without a type agree with both.
    """
    mixed = {kind, scalar.kind} in ({"f", "u"}, {"f", "s"})
    if mixed and not _names_bits(ins):
        names = ("a float", "an integer")
        given, wanted = names if kind == "f" else names[::-1]
        raise unsupported(ins, f"{what} {given}, the operand {wanted}")


def _names_bits(ins: Instruction) -> bool:
    """Whether a type of the instruction is bits without a type."""
    return any(part in SCALARS and SCALARS[part].kind == "b" for part in ins.parts)
