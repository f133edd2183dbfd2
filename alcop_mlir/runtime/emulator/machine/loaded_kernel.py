"""What the machine knows of the kernel that it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from alcop_mlir.runtime.emulator.machine.memory_map import MemoryMap
from alcop_mlir.runtime.emulator.machine.registers import RegisterTable
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

MULTIPLY = "mma"  # the class of instructions that the arithmetic of a loop is told by


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


@dataclass(frozen=True)
class LoadedKernel:
    """The code, registers and memory of a kernel; `dynamic_shared` is in bytes."""

    listing: Listing
    memory_map: MemoryMap
    registers: RegisterTable
    dynamic_shared: int
