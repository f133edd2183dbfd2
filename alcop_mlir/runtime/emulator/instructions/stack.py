"""alloca, stacksave, stackrestore: room in the local memory of a thread.

PTX ISA "Stack Manipulation Instructions".
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.arithmetic.storage import U64
from alcop_mlir.runtime.emulator.instructions.calls import push, stack_pointer
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.memory_map import FRAME_ALIGN
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Integer, unsupported


def allocate(t: Translator, ins: Instruction) -> Op:
    """alloca.type d, size{, alignment}: d is an address of the local space."""
    to, amount, *more = ins.operands
    align = more[0] if more else Integer(8)
    if not isinstance(align, Integer) or align.value > FRAME_ALIGN:
        raise unsupported(ins, f"expected an alignment of at most {FRAME_ALIGN}")
    size = t.read(amount, _address_type(ins), ins)
    write = t.writer(to, _address_type(ins).dtype, ins)
    slot = stack_pointer(t)

    def run(cohort: Cohort, mask: Mask) -> None:
        base = push(cohort, slot, size(cohort.R), mask, ins)
        write(cohort, base.astype(_address_type(ins).dtype), mask)

    return run


def save(t: Translator, ins: Instruction) -> Op:
    """stacksave.type d."""
    write = t.writer(ins.operands[0], _address_type(ins).dtype, ins)
    slot = stack_pointer(t)

    def run(cohort: Cohort, mask: Mask) -> None:
        write(cohort, cohort.R[slot].astype(_address_type(ins).dtype), mask)

    return run


def restore(t: Translator, ins: Instruction) -> Op:
    """stackrestore.type a."""
    read = t.read(ins.operands[0], _address_type(ins), ins)
    slot = stack_pointer(t)
    return lambda cohort, mask: cohort.put(slot, read(cohort.R).astype(U64), mask)


def _address_type(ins: Instruction) -> Scalar:
    if ins.parts[-1] not in ("u32", "u64"):
        raise unsupported(ins)
    return SCALARS[ins.parts[-1]]
