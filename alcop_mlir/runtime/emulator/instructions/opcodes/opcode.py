"""What the emulator knows of an opcode: a row of the table in `table`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from alcop_mlir.runtime.emulator.instructions import (
    atomics,
    barriers,
    flags,
    matrix_multiply,
    memory,
    warpgroup_multiply,
)
from alcop_mlir.runtime.emulator.instructions.copies import bulk_copy, tensor_copy
from alcop_mlir.runtime.emulator.instructions.translator import (
    Handler,
    Op,
    Translator,
)
from alcop_mlir.runtime.emulator.machine.releases import Order
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    space_of,
    unsupported,
)


def unsupported_form(t: Translator, ins: Instruction) -> Op:
    """The handler of a form outside the subset."""
    raise unsupported(ins)


@dataclass(frozen=True)
class Opcode:
    """An opcode, or those of its forms that one handler translates alike.

    name:       the parts that the opcode begins with
    translate:  the handler; what ends a span has none
    section:    where the PTX ISA describes it
    types:      of the last part: "float", "other" (no float), or "" where any will do
    of:         types of which the opcode has to name one, if there are any
    space:      the state space that the opcode has to name, "" for none (generic);
                None where the handler decides
    reads, writes: the state spaces that it may access
    size:       how many bytes of them one lane accesses; None for the most there are
    ends:       how it ends a span, or "": lanes may go elsewhere, or wait, after it
    meets:      the lanes that wait for each other at it: all of the warp (.aligned),
                those of it that have not ended, those that the last operand names,
                or none
    selects:    whether unwritten bits among its sources matter only where they change
                its result: they are chosen among, not computed with
    orders:     whether the earlier accesses of all lanes of a warp come before it
    target:     the only target that has it, or ""
    since:      the compute capability of the first target that has it
    counted_as: its class in counters and traces
    """

    name: str
    translate: Handler = unsupported_form
    section: str = ""
    types: Literal["", "float", "other"] = ""
    of: tuple[str, ...] = ()
    space: str | None = None
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    size: Callable[[Instruction], int] | None = None
    ends: Literal[
        "",
        "branch",
        "table",
        "call",
        "return",
        "exit",
        "barrier",
        "wait",
        "registers",
        "cluster",
        "multiply",
        "trap",
    ] = ""
    meets: Literal["", "warp", "live", "members"] = ""
    orders: bool = False
    selects: bool = False
    target: str = ""
    since: int = 0
    counted_as: str = "integer"

    @property
    def touches_shared(self) -> bool:
        """Whether it may access shared memory."""
        return "shared" in self.reads | self.writes

    @property
    def reads_as_one(self) -> bool:
        """Whether all that it does to memory is a read by the whole warp."""
        return self.meets == "warp" and not self.writes

    @property
    def is_multiply(self) -> bool:
        """Whether neighbours of its kind may run as one group."""
        return self.translate is matrix_multiply.multiply

    @property
    def is_warpgroup_multiply(self) -> bool:
        """Whether it multiplies while the warp goes on."""
        return self.translate is warpgroup_multiply.multiply

    @property
    def is_bulk_copy(self) -> bool:
        """Whether it may move bytes between global and shared memory by itself."""
        copies = (bulk_copy.copy_in, bulk_copy.copy_out, tensor_copy.copy_tensor)
        return self.translate in copies

    def order(self, ins: Instruction) -> Order | None:
        """What a strong access, or a fence, of this row orders; None of others."""
        if self.translate is barriers.translate_fence:
            return barriers.memory_order(ins)
        if self.translate in (memory.load, memory.store, atomics.update_memory):
            return flags.order_of(ins)
        return None

    def fits(self, parts: tuple[str, ...]) -> bool:
        """Whether it is the row of an opcode that begins with its name."""
        if self.of and not any(name in parts for name in self.of):
            return False
        if self.types:
            scalar = SCALARS.get(parts[-1])
            is_float = scalar is not None and scalar.kind == "f"
            return is_float == (self.types == "float")
        return self.space is None or self.space == (space_of(parts) or "")
