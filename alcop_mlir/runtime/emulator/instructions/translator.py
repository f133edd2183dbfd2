"""From operands to closures: the tools that the instruction families share.

An instruction becomes one Python closure `op(cohort, mask)`; a mask of None means that
all lanes are on. Closures cost a microsecond to make, where generated source text
would cost fifty to compile. Register values are never changed in place, so that a
value may be held by several registers and by the caches of `matrix_multiply`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, U32
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.memory import SHARED_START
from alcop_mlir.runtime.emulator.machine.memory_map import MemoryMap
from alcop_mlir.runtime.emulator.machine.registers import (
    Read,
    Registers,
    RegisterTable,
    merge,
)
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import B32, B64, PRED, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Float,
    Instruction,
    Integer,
    Name,
    Negated,
    Operand,
    PtxKernel,
    Vector,
    unsupported,
)

Array = np.ndarray
Op = Callable[[Cohort, Mask], None]
Handler = Callable[["Translator", Instruction], Op]
CARRY = "%carry#flag"  # CC.CF of PTX ISA "Extended-Precision Integer Arithmetic"


def widen(x: Array, dtype: np.dtype) -> Array:
    """Sign- or zero-extends, by the kind of x, to an unsigned `dtype`."""
    if x.dtype.kind == "i":
        return x.astype(f"i{dtype.itemsize}").view(dtype)
    return x.astype(dtype)


class Translator:
    """Names to register slots, operands to readers, results to writers."""

    def __init__(
        self, kernel: PtxKernel, memory_map: MemoryMap, registers: RegisterTable
    ):
        self.kernel = kernel
        self.memory_map = memory_map
        self.registers = registers
        self._types: dict[str, Scalar] = {CARRY: B32}
        self._occurrences: Counter[str] = Counter()

    def type_of(self, name: str, ins: Instruction) -> Scalar:
        """The declared type of a register."""
        found = self._types.get(name) or self.kernel.registers.get(name)
        if found is None:
            found = self._ranged(name)
        if found is None:
            raise EmulationError(
                f"PTX line {ins.line}: {name} is not declared: {ins.text}"
            )
        self._types[name] = found
        return found

    def _ranged(self, name: str) -> Scalar | None:
        """A register of a declaration like `.reg .b32 %r<9>`."""
        stem = name.rstrip("0123456789")
        ranges = self.kernel.register_ranges
        for cut in range(len(stem), len(name)):
            known = ranges.get(name[:cut])
            if known and int(name[cut:]) < known[1]:
                return known[0]
        return None

    def slot(self, name: str, ins: Instruction) -> int:
        """The slot of a register; a new one when it is met first."""
        found = self.registers.slots.get(name)
        if found is None:
            scalar = self.type_of(name, ins)
            dtype = BOOL if scalar is PRED else scalar.unsigned
            found = self.registers.add(name, np.zeros((1, 1, 1), dtype))
        return found

    def occurs_again(self, name: str) -> bool:
        """Whether a register occurs anywhere but in the one operand that writes it."""
        if not self._occurrences:
            for ins in self.kernel.instructions:
                self._occurrences.update(_names(ins.operands))
                self._occurrences.update(ins.guard[:1] if ins.guard else ())
        return self._occurrences[name] > 1

    def special(self, name: str) -> int:
        """The slot of a special register, which a cohort fills when it starts."""
        found = self.registers.slots.get(name)
        if found is None:
            found = self.registers.add(name, np.zeros((1, 1, 1), U32))
            self.registers.specials[name] = found
        return found

    def address_of(self, name: str) -> int | None:
        """The address of a variable within its own space, or None."""
        known = self.memory_map
        if name in known.shared:
            return known.shared[name] + SHARED_START
        for table in (known.local, known.globals, known.parameters):
            if name in table:
                return table[name]
        return None

    def read(self, operand: Operand, scalar: Scalar, ins: Instruction) -> Read:
        """How to read an operand as `scalar`."""
        dtype = scalar.dtype
        if isinstance(operand, Name):
            return self._read_name(operand.name, scalar, ins)
        if isinstance(operand, Negated):
            inner = self.read(operand.operand, scalar, ins)
            return lambda R: ~inner(R)
        if isinstance(operand, Integer):
            if dtype == BOOL:
                return constant(np.array(operand.value != 0))
            cut = operand.value & ((1 << scalar.bits) - 1)
            return constant(np.array(cut, scalar.unsigned).view(dtype))
        if isinstance(operand, Float):
            return constant(_float_constant(operand, scalar))
        if isinstance(operand, Address) and operand.base and operand.base[0] == "&":
            base = self.address_of(operand.base[1:])
            if base is not None:
                value = np.array(base + operand.offset, scalar.unsigned)
                return constant(value.view(dtype))
        raise unsupported(ins, f"operand {operand}")

    def _read_name(self, name: str, scalar: Scalar, ins: Instruction) -> Read:
        dtype = scalar.dtype
        if self.is_register(name):
            slot = self.slot(name, ins)
            declared = self.type_of(name, ins)
            if declared.size == scalar.size:
                return _same_size(slot, dtype)
            if declared.size > scalar.size:
                return _cut(slot, declared, scalar)
            raise unsupported(ins, f"{name} is narrower than {scalar.name}")
        address = self.address_of(name)
        if address is not None:
            return constant(np.array(address, scalar.unsigned).view(dtype))
        if name.startswith("%"):
            slot = self.special(name)
            if scalar.size == 4:
                return _same_size(slot, dtype)
            return lambda R: R[slot].astype(scalar.unsigned).view(dtype)
        if name == "WARP_SZ":
            return constant(np.array(32, scalar.unsigned).view(dtype))
        raise unsupported(ins, f"unknown name {name}")

    def is_register(self, name: str) -> bool:
        """Whether the kernel declares a register of this name."""
        if name in self._types or name in self.kernel.registers:
            return True
        return self._ranged(name) is not None

    def result(
        self, operand: Operand, dtype: np.dtype, ins: Instruction
    ) -> tuple[int, np.dtype | None]:
        """Where a result of `dtype` goes: its slot (-1 for `_`) and the unsigned type
        to extend it to, if the register is wider."""
        if not isinstance(operand, Name):
            raise unsupported(ins, f"destination {operand}")
        if operand.name == "_":
            return -1, None
        declared = self.type_of(operand.name, ins)
        slot = self.slot(operand.name, ins)
        if declared is PRED or declared.size == dtype.itemsize:
            return slot, None
        if declared.size < dtype.itemsize:
            raise unsupported(ins, f"{operand.name} is too narrow for the result")
        return slot, declared.unsigned

    def compute(
        self,
        ins: Instruction,
        dst: Operand,
        dtype: np.dtype,
        fn: Callable[..., Array],
        *reads: Read,
    ) -> Op:
        """The op `dst = fn(*reads)`, where fn gives `dtype`."""
        slot, wide = self.result(dst, dtype, ins)
        if slot < 0:
            return nothing
        if wide is not None:
            fn = _widened(fn, wide)
        return assign(slot, fn, reads)

    def base_address(self, operand: Operand, ins: Instruction) -> tuple[Read, bool]:
        """The address of a memory operand; the flag says whether it is 64-bit."""
        if not isinstance(operand, Address):
            raise unsupported(ins, "expected an address in [ ]")
        base, offset = operand.base, operand.offset
        if base is None or not self.is_register(base):
            start = 0 if base is None else self.address_of(base)
            if start is None:
                raise unsupported(ins, f"unknown name {base}")
            value = (start + offset) & ((1 << 64) - 1)
            return constant(np.array(value, np.uint64)), True
        scalar = self.type_of(base, ins)
        if scalar.size not in (4, 8):
            raise unsupported(ins, f"{base} cannot hold an address")
        read = self.read(Name(base), B64 if scalar.size == 8 else B32, ins)
        if offset:
            step = np.array(offset & ((1 << scalar.bits) - 1), scalar.unsigned)
            return (lambda R: read(R) + step), scalar.size == 8
        return read, scalar.size == 8

    def items(self, operand: Operand) -> tuple[Operand, ...]:
        """The elements of a vector operand, or the operand alone."""
        return operand.items if isinstance(operand, Vector) else (operand,)


def _names(operands: Iterable[object]) -> Iterator[str]:
    """All names in operands, as often as they occur."""
    for operand in operands:
        if isinstance(operand, str):
            yield operand
        elif isinstance(operand, tuple):
            yield from _names(operand)


def constant(value: Array) -> Read:
    """A reader of a value known now."""
    shaped = value.reshape(1, 1, 1)
    return lambda R: shaped


def _same_size(slot: int, dtype: np.dtype) -> Read:
    def read(R: Registers) -> Array:
        x = R[slot]
        return x if x.dtype is dtype else x.view(dtype)

    return read


def _cut(slot: int, declared: Scalar, scalar: Scalar) -> Read:
    """The low part of a wider register (PTX ISA "Operand Size Exceeding ...")."""

    def read(R: Registers) -> Array:
        x = R[slot].view(declared.unsigned)
        return x.astype(scalar.unsigned).view(scalar.dtype)

    return read


def _float_constant(operand: Float, scalar: Scalar) -> Array:
    bits = np.array(operand.bits, np.uint32 if operand.size == 4 else np.uint64)
    if operand.size == scalar.size:
        return bits.view(scalar.dtype)
    value = bits.view(np.float32 if operand.size == 4 else np.float64)
    return value.astype(scalar.dtype)


def _widened(fn: Callable[..., Array], dtype: np.dtype) -> Callable[..., Array]:
    return lambda *values: widen(fn(*values), dtype)


def nothing(cohort: Cohort, mask: Mask) -> None:
    """An instruction without an effect here."""


def assign(slot: int, fn: Callable[..., Array], reads: Sequence[Read]) -> Op:
    """The op `R[slot] = fn(*reads)`; one and two sources are cases for speed."""
    if len(reads) == 1:
        (a,) = reads

        def unary(cohort: Cohort, mask: Mask) -> None:
            R = cohort.R
            value = fn(a(R))
            R[slot] = value if mask is None else merge(mask, value, R[slot])

        return unary
    if len(reads) == 2:
        a, b = reads

        def binary(cohort: Cohort, mask: Mask) -> None:
            R = cohort.R
            value = fn(a(R), b(R))
            R[slot] = value if mask is None else merge(mask, value, R[slot])

        return binary

    def general(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        value = fn(*[read(R) for read in reads])
        R[slot] = value if mask is None else merge(mask, value, R[slot])

    return general


def guarded(op: Op, slot: int, negated: bool) -> Op:
    """The op under `@p` or `@!p`."""

    def run(cohort: Cohort, mask: Mask) -> None:
        p = cohort.R[slot]
        if negated:
            p = ~p
        if mask is not None:
            p = mask & p
        if p.all():
            op(cohort, None)
        elif p.any():
            op(cohort, p)

    return run


def rounding(ins: Instruction, default: str = "rn") -> str:
    """The rounding modifier: rn, rz, rm, rp, rna or an integer one."""
    for part in ins.parts[1:]:
        if part in ("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"):
            return part
    return default
