"""A kernel made ready to run: instructions to closures, one straight stretch at a time.

Translation is lazy: a *span* is what runs from an instruction to the next branch,
barrier, exit or label, and it is made when it is first reached. All opcodes are known
to be in the subset before the run starts, so that an unknown one is an error even in
code that is never reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.instructions.barriers import decode_barrier, new_epoch
from alcop_mlir.runtime.emulator.instructions.matrix_multiply import (
    MatrixMultiply,
    MultiplyGroup,
    decode_multiply,
)
from alcop_mlir.runtime.emulator.instructions.memory import MAX_VECTOR_BYTES
from alcop_mlir.runtime.emulator.instructions.table import Opcode, opcode_of
from alcop_mlir.runtime.emulator.instructions.translator import (
    Op,
    Translator,
    guarded,
    nothing,
)
from alcop_mlir.runtime.emulator.machine.barriers import BarrierCall
from alcop_mlir.runtime.emulator.machine.loaded_kernel import (
    Listing,
    LoadedKernel,
    Read,
    RegisterTable,
)
from alcop_mlir.runtime.emulator.machine.memory_map import MemoryMap
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    PtxKernel,
    unsupported,
)


@dataclass(frozen=True)
class End:
    """The last instruction of a span: where the lanes go."""

    ins: Instruction
    kind: str  # branch, table, exit, barrier or trap
    guard: tuple[int, bool] | None = None  # predicate slot, is negated
    target: int = -1
    table: tuple[int, ...] = ()
    index: Read | None = None
    barrier: BarrierCall | None = None


@dataclass(frozen=True)
class Span:
    """Straight code [start, stop) and how it ends.

    `meetings`: instructions at which the lanes of a warp must come together.
    """

    start: int
    stop: int
    ops: tuple[Op, ...]
    end: End | None
    meetings: tuple[int, ...]
    aligned: bool  # some meeting needs all lanes of the warp


class TranslatedKernel:
    """One kernel with its translation so far."""

    def __init__(self, kernel: PtxKernel, memory_map: MemoryMap, dynamic_shared: int):
        self.kernel = kernel
        self.code = kernel.instructions
        registers = RegisterTable()
        self.translator = Translator(kernel, memory_map, registers)
        self.rows = _rows(self.code)
        classes = [row.counted_as for row in self.rows]
        self.listing = Listing(kernel.name, self.code, classes)
        self.loaded = LoadedKernel(self.listing, memory_map, registers, dynamic_shared)
        self.leaders = {0, *kernel.labels.values()}
        self.granule = _shared_granule(self.code, self.rows)
        self._spans: dict[int, Span] = {}
        self._ops: dict[int, Op] = {}

    def span(self, pc: int) -> Span:
        """The span that starts at instruction `pc`."""
        found = self._spans.get(pc)
        if found is None:
            found = self._spans[pc] = self._make_span(pc)
        return found

    def op(self, pc: int) -> Op:
        """The closure of one instruction, with its guard."""
        found = self._ops.get(pc)
        if found is None:
            found = self._ops[pc] = self._translate(pc)
        return found

    def _make_span(self, start: int) -> Span:
        rows = self.rows
        stop = start
        end: End | None = None
        while stop < len(rows):
            ins, row = self.code[stop], rows[stop]
            stop += 1
            if row.ends:
                try:
                    end = self._end(ins, row.ends)
                except (IndexError, ValueError) as e:
                    raise unsupported(ins, "its operands are not as expected") from e
                break
            if stop in self.leaders:
                break
        body = stop - 1 if end is not None else stop
        is_barrier = end is not None and end.kind == "barrier"
        ops = tuple(self._joined(start, body, is_barrier))
        meetings = tuple(i for i in range(start, body) if rows[i].meets)
        aligned = any(rows[i].meets == "warp" for i in meetings)
        return Span(start, stop, ops, end, meetings, aligned)

    def _joined(self, start: int, stop: int, before_barrier: bool) -> list[Op]:
        """The ops of a span: `mma` in groups, new epochs where they are needed.

        After a warp-synchronising instruction the warp needs a new epoch before its
        next shared access; several such instructions in a row share one.
        """
        ops: list[Op] = []
        synced, written = False, True
        i = start
        while i < stop:
            row = self.rows[i]
            # A load by single lanes needs a new epoch before it, as a store does.
            by_lanes = row.touches_shared and not row.reads_as_one
            if synced and (by_lanes or (row.touches_shared and written)):
                ops.append(new_epoch)
                synced, written = False, False
            written = written or by_lanes
            if row.is_multiply and self.code[i].guard is None:
                op, i = self._multiply_run(i, stop)
            else:
                op = self.op(i)
                i += 1
            synced = synced or row.orders
            if op is not nothing:
                ops.append(op)
        if synced and not before_barrier:
            ops.append(new_epoch)
        return ops

    def _multiply_run(self, start: int, stop: int) -> tuple[Op, int]:
        """The longest run of independent `mma` of one type from `start`."""
        members: list[MatrixMultiply] = []
        written: set[int] = set()
        i = start
        while i < stop:
            ins = self.code[i]
            if ins.guard is not None or not self.rows[i].is_multiply:
                break
            new = decode_multiply(self.translator, ins)
            if members and not new.may_join(members[0], written):
                break
            members.append(new)
            written.update(new.d)
            i += 1
        return MultiplyGroup(members), i

    def _translate(self, pc: int) -> Op:
        ins = self.code[pc]
        try:
            op = self.rows[pc].translate(self.translator, ins)
        # Parts or operands are missing, or a type has no such form.
        except (IndexError, KeyError, ValueError) as e:
            raise unsupported(ins, "its operands are not as expected") from e
        guard = None if op is nothing else self._guard(ins)
        return op if guard is None else guarded(op, *guard)

    def _guard(self, ins: Instruction) -> tuple[int, bool] | None:
        """The slot of the predicate, and whether it is negated; None without one."""
        if ins.guard is None:
            return None
        name, negated = ins.guard
        if self.translator.type_of(name, ins) is not PRED:
            raise unsupported(ins, f"{name} is not a predicate")
        return self.translator.slot(name, ins), negated

    def _end(self, ins: Instruction, kind: str) -> End:
        guard = self._guard(ins)
        if kind == "branch":
            return End(ins, kind, guard, target=self._label(ins, ins.operands[0]))
        if kind == "table":
            return self._table(ins, guard)
        if kind == "barrier":
            return End(ins, kind, guard, barrier=decode_barrier(self.translator, ins))
        return End(ins, kind, guard)

    def _label(self, ins: Instruction, operand: object) -> int:
        name = operand.name if isinstance(operand, Name) else None
        if name is None or name not in self.kernel.labels:
            raise EmulationError(f"PTX line {ins.line}: no such label: {ins.text}")
        return self.kernel.labels[name]

    def _table(self, ins: Instruction, guard: tuple[int, bool] | None) -> End:
        index, listed = ins.operands
        names = self.kernel.targets.get(getattr(listed, "name", ""))
        if names is None:
            raise unsupported(ins)
        table = tuple(self._label(ins, Name(name)) for name in names)
        read = self.translator.read(index, U32T, ins)
        return End(ins, "table", guard, table=table, index=read)


def _rows(code: Sequence[Instruction]) -> list[Opcode]:
    """The row of each instruction, looked up once for each opcode."""
    known: dict[tuple[str, ...], Opcode] = {}
    rows: list[Opcode] = []
    for ins in code:
        row = known.get(ins.parts)
        if row is None:
            row = known[ins.parts] = opcode_of(ins)
        rows.append(row)
    return rows


def _shared_granule(code: Sequence[Instruction], rows: Sequence[Opcode]) -> int:
    """The smallest shared access of the kernel, in bytes."""
    sizes = [
        row.size(ins)
        for ins, row in zip(code, rows, strict=True)
        if row.size is not None and row.touches_shared
    ]
    return min([MAX_VECTOR_BYTES, *sizes])
