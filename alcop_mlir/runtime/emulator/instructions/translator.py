"""From operands to closures: the tools that the instruction families share.

An instruction becomes one Python closure `op(cohort, mask)`; a mask of None means that
all lanes are on. Closures cost a microsecond to make, where generated source text
would cost fifty to compile. Register values are never changed in place, so that a
value may be held by several registers and by the caches of `matrix_multiply`.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, U32, Array
from alcop_mlir.runtime.emulator.instructions.operand_types import (
    require_agreement,
    require_fit,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.loaded_kernel import (
    Read,
    Registers,
    RegisterTable,
    merge,
)
from alcop_mlir.runtime.emulator.machine.memory import SHARED_START
from alcop_mlir.runtime.emulator.machine.memory_map import MemoryMap
from alcop_mlir.runtime.emulator.machine.special_registers import (
    PREDICATES,
    is_special,
)
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import (
    B32,
    B64,
    PRED,
    SCALARS,
    U32T,
    Scalar,
)
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Float,
    Instruction,
    Integer,
    Name,
    Negated,
    Operand,
    PtxKernel,
    unsupported,
)

Op = Callable[[Cohort, Mask], None]
Handler = Callable[["Translator", Instruction], Op]
Function = Callable[..., Array]  # of one array for each operand
Write = Callable[[Cohort, Array, Mask], None]
TypeOf = Callable[[Instruction], Scalar]
CARRY = "%carry#flag"  # CC.CF of PTX ISA "Extended-Precision Integer Arithmetic"


def widen(x: Array, dtype: np.dtype) -> Array:
    """Sign- or zero-extends, by the kind of x, to an unsigned `dtype`."""
    if x.dtype.kind == "i":
        return x.astype(f"i{dtype.itemsize}").view(dtype)
    return x.astype(dtype)


class Translator:
    """Names to register slots, operands to readers, results to writers.

    One for each function of a program: `memory_map` has its own local variables, and
    its registers are those of the table whose names begin with `prefix`. `frame`: the
    slot with the start of its frame, if it has one on the stack.
    """

    def __init__(
        self,
        kernel: PtxKernel,
        memory_map: MemoryMap,
        registers: RegisterTable,
        prefix: str = "",
        frame: int | None = None,
    ):
        self.kernel = kernel
        self.memory_map = memory_map
        self.registers = registers
        self.prefix = prefix
        self.frame = frame
        self._types = {CARRY: B32, **kernel.registers}
        self._occurrences: Counter[str] = Counter()
        self._takes_wider = False

    def relaxed(self) -> Translator:
        """The same for an instruction whose registers may be wider than its type.

        PTX ISA "Operand Size Exceeding Instruction-Type Size": ld, st, and cvt.
        """
        other = copy.copy(self)
        other._takes_wider = True
        return other

    def type_of(self, name: str, ins: Instruction) -> Scalar:
        """The declared type of a register."""
        found = self._declared(name)
        if found is None:
            raise EmulationError(
                f"PTX line {ins.line}: {name} is not declared: {ins.text}"
            )
        return found

    def is_register(self, name: str) -> bool:
        """Whether the kernel declares a register of this name."""
        return self._declared(name) is not None

    def _declared(self, name: str) -> Scalar | None:
        """The type of a register, also of one that `.reg .b32 %r<9>` declares."""
        found = self._types.get(name)
        if found is not None:
            return found
        stem = name.rstrip("0123456789")
        ranges = self.kernel.register_ranges
        for cut in range(len(stem), len(name)):
            known = ranges.get(name[:cut])
            if known and int(name[cut:]) < known[1]:
                self._types[name] = known[0]
                return known[0]
        return None

    def slot(self, name: str, ins: Instruction) -> int:
        """The slot of a register; a new one when it is met first."""
        found = self.registers.slots.get(self.prefix + name)
        if found is None:
            scalar = self.type_of(name, ins)
            dtype = BOOL if scalar is PRED else scalar.unsigned
            found = self.registers.add(self.prefix + name, np.zeros((1, 1, 1), dtype))
        return found

    def occurs_again(self, name: str) -> bool:
        """Whether a register occurs anywhere but in the one operand that writes it."""
        if not self._occurrences:
            code = self.kernel.instructions
            self._occurrences.update(_names(ins.operands for ins in code))
            self._occurrences.update(ins.guard[0] for ins in code if ins.guard)
        return self._occurrences[name] > 1

    def special(self, name: str, ins: Instruction) -> int:
        """The slot of a special register, which a cohort fills for itself."""
        if not is_special(name):
            raise unsupported(ins, f"special register {name}")
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
        for table in (known.local, known.globals, known.parameters, known.functions):
            if name in table:
                return table[name]
        return None

    def address_reader(self, name: str, offset: int, scalar: Scalar) -> Read | None:
        """How to read the address of a variable plus an offset, or None."""
        address = self.address_of(name)
        if address is None:
            return None
        if self.frame is None or name not in self.memory_map.local:
            return _integer(address + offset, scalar)
        frame, step = self.frame, np.uint64(address + offset)
        return lambda R: (R[frame] + step).astype(scalar.unsigned).view(scalar.dtype)

    def read(self, operand: Operand, scalar: Scalar, ins: Instruction) -> Read:
        """How to read an operand as `scalar`."""
        if isinstance(operand, Name):
            return self._read_name(operand.name, scalar, ins)
        if isinstance(operand, Negated):
            inner = self.read(operand.operand, scalar, ins)
            return lambda R: ~inner(R)
        if isinstance(operand, Integer):
            require_agreement(ins, "its constant is", "s", scalar)
            return _integer(operand.value, scalar)
        if isinstance(operand, Float):
            require_agreement(ins, "its constant is", "f", scalar)
            return constant(_float_constant(operand, scalar))
        if isinstance(operand, Address) and operand.base and operand.base[0] == "&":
            found = self.address_reader(operand.base[1:], operand.offset, scalar)
            if found is not None:
                return found
        raise unsupported(ins, f"operand {operand}")

    def sources(self, ins: Instruction, *types: Scalar) -> list[Read]:
        """How to read all operands but the first, each as its type."""
        if len(ins.operands) != len(types) + 1:
            raise unsupported(ins, f"expected {len(types) + 1} operands")
        pairs = zip(ins.operands[1:], types, strict=True)
        return [self.read(operand, scalar, ins) for operand, scalar in pairs]

    def _read_name(self, name: str, scalar: Scalar, ins: Instruction) -> Read:
        declared = self._declared(name)
        if declared is not None:
            if declared.size < scalar.size:
                raise unsupported(ins, f"{name} is narrower than {scalar.name}")
            require_fit(ins, name, declared, scalar.bits, self._takes_wider)
            require_agreement(ins, f"{name} is", declared.kind, scalar)
            return _slot_reader(self.slot(name, ins), declared, scalar)
        found = self.address_reader(name, 0, scalar)
        if found is not None:
            return found
        if name.startswith("%"):
            kind = PRED if name in PREDICATES else B32
            return _slot_reader(self.special(name, ins), kind, scalar)
        if name == "WARP_SZ":
            return _integer(LANES, scalar)
        raise unsupported(ins, f"unknown name {name}")

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
        bits = 8 * dtype.itemsize
        require_fit(ins, operand.name, declared, bits, self._takes_wider)
        return slot, declared.unsigned

    def writer(self, operand: Operand, dtype: np.dtype, ins: Instruction) -> Write:
        """How to write a result of `dtype`; `_` drops it."""
        slot, wide = self.result(operand, dtype, ins)
        if slot < 0:
            return lambda cohort, value, mask: None

        def write(cohort: Cohort, value: Array, mask: Mask) -> None:
            R = cohort.R
            if wide is not None:
                value = widen(value, wide)
            R[slot] = value if mask is None else merge(mask, value, R[slot])

        return write

    def compute(
        self, ins: Instruction, dtype: np.dtype, fn: Function, *types: Scalar
    ) -> Op:
        """The first operand becomes fn(the others, read as `types`), of `dtype`."""
        return self.assign(ins, ins.operands[0], dtype, fn, *self.sources(ins, *types))

    def assign(
        self,
        ins: Instruction,
        destination: Operand,
        dtype: np.dtype,
        fn: Function,
        *reads: Read,
    ) -> Op:
        """The op `destination = fn(*reads)`, where fn gives `dtype`."""
        slot, wide = self.result(destination, dtype, ins)
        if slot < 0:
            return nothing
        return _assignment(slot, fn if wide is None else _widened(fn, wide), reads)

    def base_address(self, operand: Operand, ins: Instruction) -> tuple[Read, bool]:
        """The address of a memory operand; the flag says whether it is 64-bit."""
        if not isinstance(operand, Address):
            raise unsupported(ins, "expected an address in [ ]")
        base, offset = operand.base, operand.offset
        if base is None or not self.is_register(base):
            if base is None:
                return _integer(offset, B64), True
            found = self.address_reader(base, offset, B64)
            if found is None:
                raise unsupported(ins, f"unknown name {base}")
            return found, True
        scalar = self.type_of(base, ins)
        if scalar.size not in (4, 8):
            raise unsupported(ins, f"{base} cannot hold an address")
        wide = scalar.size == 8
        raw = B64 if wide else B32
        read = self.read(Name(base), raw, ins)
        if not offset:
            return read, wide
        step = np.array(offset & ((1 << raw.bits) - 1), raw.dtype)
        return (lambda R: read(R) + step), wide


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


def _integer(value: int, scalar: Scalar) -> Read:
    """An integer cut to the size of its use; a predicate holds unless it is 0."""
    if scalar is PRED:
        return constant(np.array(value != 0))
    cut = value & ((1 << scalar.bits) - 1)
    return constant(np.array(cut, scalar.unsigned).view(scalar.dtype))


def _slot_reader(slot: int, declared: Scalar, scalar: Scalar) -> Read:
    """A register as `scalar`: the low part if it is wider, or extended by zeros.

    PTX ISA "Operand Size Exceeding Instruction-Type Size".
    """
    dtype = scalar.dtype

    def same_size(R: Registers) -> Array:
        x = R[slot]
        return x if x.dtype is dtype else x.view(dtype)

    def other_size(R: Registers) -> Array:
        return R[slot].view(declared.unsigned).astype(scalar.unsigned).view(dtype)

    return same_size if declared.size == scalar.size else other_size


def _float_constant(operand: Float, scalar: Scalar) -> Array:
    stored = SCALARS[f"f{8 * operand.size}"]
    bits = np.array(operand.bits, stored.unsigned)
    if operand.size == scalar.size:
        return bits.view(scalar.dtype)
    return bits.view(stored.dtype).astype(scalar.dtype)


def _widened(fn: Function, dtype: np.dtype) -> Function:
    return lambda *values: widen(fn(*values), dtype)


def nothing(cohort: Cohort, mask: Mask) -> None:
    """An instruction without an effect here."""


def _assignment(slot: int, fn: Function, reads: Sequence[Read]) -> Op:
    """The op `R[slot] = fn(*reads)`; one and two sources are cases for speed."""
    a, b = reads[0], reads[-1]

    def unary(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        value = fn(a(R))
        R[slot] = value if mask is None else merge(mask, value, R[slot])

    def binary(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        value = fn(a(R), b(R))
        R[slot] = value if mask is None else merge(mask, value, R[slot])

    def general(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        value = fn(*[read(R) for read in reads])
        R[slot] = value if mask is None else merge(mask, value, R[slot])

    return {1: unary, 2: binary}.get(len(reads), general)


def own(ins: Instruction) -> Scalar:
    """The type of the instruction, for `lanewise`."""
    return ins.type


def wrapping(ins: Instruction) -> Scalar:
    """The same, unsigned: NumPy warns about signed overflow."""
    return SCALARS[f"u{ins.type.bits}"]


def word(ins: Instruction) -> Scalar:
    """u32 whatever the instruction, as shift amounts and counts are."""
    return U32T


def lanewise(fn: Function, *sources: TypeOf, to: TypeOf | None = None) -> Handler:
    """A handler of what is one function of its operands in each lane.

    sources: the types of all operands but the first; to: the type of the first, that
    of the next operand if it is None.
    """

    def translate(t: Translator, ins: Instruction) -> Op:
        types = [type_of(ins) for type_of in sources]
        result = types[0] if to is None else to(ins)
        return t.compute(ins, result.dtype, fn, *types)

    return translate


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
