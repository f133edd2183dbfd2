"""call: of `__assertfail`, with which a kernel ends when an assertion does not hold.

PTX ISA "Control Flow Instructions: call"; CUDA C++ Programming Guide "Assertion" for
what `__assertfail` takes: message, file, line, function, and the size of a character.
Other functions are not supported.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.memory import GlobalMemory
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import B32, B64
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    Vector,
    unsupported,
)

_ASSERT = "__assertfail"
_MAX_TEXT = 1000  # characters that are shown


def call(t: Translator, ins: Instruction) -> Op:
    match ins.operands:
        case (Name(name), Vector((message, file, line, _, _))) if name == _ASSERT:
            pass
        case _:
            raise unsupported(ins, f"calls but those of {_ASSERT}")
    reads = t.read(message, B64, ins), t.read(file, B64, ins), t.read(line, B32, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        every = np.ones((1, 1, LANES), bool) if mask is None else mask
        failed = np.broadcast_to(every, (cohort.blocks, cohort.warps, LANES))
        first = tuple(np.argwhere(failed)[0])
        values = (np.broadcast_to(read(cohort.R), failed.shape) for read in reads)
        text, where, number = (int(value[first]) for value in values)
        memory = cohort.batch.memory
        raise fault(
            ins,
            f"assertion failed: {_text(memory, text)} "
            f"({_text(memory, where)}:{number})",
            location_of_mask(cohort, failed),
        )

    return run


def _text(memory: GlobalMemory, address: int) -> str:
    """The text that begins at an address, up to a zero byte; "?" where none does."""
    at = memory.buffer_at(address)
    if at < 0 or address >= memory.buffers[at].stop:
        return "?"
    buffer = memory.buffers[at]
    data = bytes(memory.bytes_of(buffer)[address - buffer.start :][:_MAX_TEXT])
    return data.split(b"\0")[0].decode("utf-8", "replace")
