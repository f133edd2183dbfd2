"""What the machine knows of the kernel that it runs: code, registers, memory.

Registers are arrays that broadcast to (blocks, warps, 32), by number of their slot. A
value is never changed in place: it may be held by several registers, and by the
accumulators that `instructions.matrix_multiply` remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.memory_map import MemoryMap
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Registers = list[Array]
Read = Callable[[Registers], Array]
MULTIPLY = "mma"  # the class of instructions that the arithmetic of a loop is told by


class RegisterTable:
    """The slots of a kernel's registers, which grow as code is translated.

    `slots`: name -> slot; `initial`: the value of each slot at the start; `specials`:
    the slots of special registers, which each cohort fills for itself.
    """

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.initial: Registers = []
        self.specials: dict[str, int] = {}

    def known(self, name: str, value: Array) -> int:
        """The slot of that name, made with `value` where there is none."""
        found = self.slots.get(name)
        return self.add(name, value) if found is None else found

    def add(self, name: str, value: Array) -> int:
        """A new slot that starts with `value`."""
        self.slots[name] = len(self.initial)
        self.initial.append(value)
        return self.slots[name]


class Listing:
    """The code of a kernel, with the index of each instruction by its PTX line.

    `classes`: under which each instruction is counted. `multiplies_before[i]`: how many
    `mma` come before instruction i in the text.
    """

    def __init__(self, name: str, code: Sequence[Instruction], classes: Sequence[str]):
        self.name = name
        self.code = code
        self.classes = classes
        self.index_of = {ins.line: i for i, ins in enumerate(code)}
        multiplies = (one == MULTIPLY for one in classes)
        self.multiplies_before = [0, *accumulate(multiplies)]


class Printed:
    """What a run prints, up to the size of CUDA's buffer, beyond which it is lost."""

    MOST = 2**20  # characters; CUDA: cudaLimitPrintfFifoSize is 1 MiB

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        """Appends a text, if there is room."""
        self._size += len(text)
        if self._size <= self.MOST:
            self._texts.append(text)

    def all(self) -> str:
        """All that was printed."""
        return "".join(self._texts)


@dataclass(frozen=True)
class LoadedKernel:
    """The code, registers and memory of a kernel, and what it has printed.

    `dynamic_shared` is in bytes, `entry` the index of its first instruction,
    `registers_at_entry` what .maxnreg says.
    """

    listing: Listing
    memory_map: MemoryMap
    registers: RegisterTable
    dynamic_shared: int
    entry: int
    printed: Printed
    registers_at_entry: int | None = None


def merge(mask: Array, new: Array, old: Array) -> Array:
    """`new` where the mask is on, `old` elsewhere, in the type of `new`."""
    if old.dtype is not new.dtype:
        old = old.view(new.dtype)
    return np.where(mask, new, old)
