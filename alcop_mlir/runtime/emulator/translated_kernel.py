"""A kernel made ready to run: instructions to closures, one straight stretch at a time.

Every instruction is translated before the run starts, so that one outside the subset is
an error even in code that is never reached. A *span* is what runs from an instruction
to the next branch, barrier, exit or label; it is made when it is first reached.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.instructions import (
    cluster,
    device_runtime,
    mbarrier,
    warpgroup_multiply,
    warpgroup_wait,
)
from alcop_mlir.runtime.emulator.instructions.barriers import (
    decode_barrier,
    decode_registers,
    new_epoch,
)
from alcop_mlir.runtime.emulator.instructions.calls import Callee, CallSite
from alcop_mlir.runtime.emulator.instructions.matrix_multiply import (
    MatrixMultiply,
    MultiplyGroup,
    decode_multiply,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.first_targets import (
    first_target,
    first_target_of,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.rows import (
    moves_by_engine,
    orders_by_flags,
    rows_of,
    shared_granule,
)
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
    Printed,
    Read,
    RegisterTable,
)
from alcop_mlir.runtime.emulator.machine.memory_map import Frame, MemoryMap
from alcop_mlir.runtime.emulator.machine.waiting import Waited
from alcop_mlir.runtime.emulator.ptx.program import Part, Program, read_call
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    unsupported,
)
from alcop_mlir.runtime.emulator.unwritten import Flow


@dataclass(frozen=True)
class End:
    """The last instruction of a span: where the lanes go."""

    ins: Instruction
    kind: str  # as `Opcode.ends` has it, runtime for a call of the device runtime
    guard: tuple[int, bool] | None = None  # predicate slot, is negated
    target: int = -1
    table: tuple[int, ...] = ()
    index: Read | None = None
    barrier: BarrierCall | None = None
    wait: Waited | None = None
    site: CallSite | None = None
    runtime: Op | None = None
    callee: Callee | None = None  # the function that returns


@dataclass(frozen=True)
class Span:
    """Straight code [start, stop) and how it ends.

    `meetings`: instructions at which the lanes of a warp must come together.
    """

    start: int
    stop: int
    ops: tuple[Op, ...]
    after: tuple[int, ...]  # where each op leaves off
    end: End | None
    meetings: tuple[int, ...]
    aligned: bool  # some meeting needs all lanes of the warp
    multiplied: bool = False  # it accesses registers that some wgmma uses


class TranslatedKernel:
    """One kernel and its functions, with their translation so far."""

    def __init__(self, program: Program, memory_map: MemoryMap, dynamic_shared: int):
        self.program = program
        self.code = program.code
        registers = RegisterTable()
        self.translators = [
            _translator(part, memory_map, frame, registers)
            for part, frame in zip(program.parts, memory_map.frames, strict=True)
        ]
        self._starts = [part.start for part in program.parts]
        self._callees: dict[str, Callee] = {}
        self.sites: dict[int, CallSite] = {}
        self.rows = rows_of(self.code)
        classes = [row.counted_as for row in self.rows]
        self.listing = Listing(program.kernel.name, self.code, classes)
        self.loaded = LoadedKernel(
            self.listing,
            memory_map,
            registers,
            dynamic_shared,
            program.entry,
            Printed(),
            program.kernel.max_registers,
        )
        self.leaders = program.labels
        self.granule = shared_granule(self.code, self.rows)
        self.has_engines = moves_by_engine(self.rows)
        self.has_flags = orders_by_flags(self.code, self.rows)
        self._spans: dict[int, Span] = {}
        self._ops: dict[int, Op] = {}
        self._flows: dict[int, Flow] = {}

    def translator(self, pc: int) -> Translator:
        """That of the function to which an instruction belongs."""
        return self.translators[self._part(pc)]

    def _part(self, pc: int) -> int:
        return bisect_right(self._starts, pc) - 1

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

    def check(self, target: str) -> None:
        """Translates every instruction, also what is never reached.

        Raises `EmulationError` for the first that is not supported. A call of a
        function without a body is an error only where it is reached.
        """
        capability = int(target.strip("smaf_"))
        kernel = self.program.kernel
        since = first_target_of(kernel)
        if capability < since:
            why = f"{target}: targets from sm_{since} on have clusters"
            raise EmulationError(f"PTX line {kernel.line}: kernel {kernel.name}: {why}")
        for pc, row in enumerate(self.rows):
            if row.target not in ("", target):
                raise unsupported(self.code[pc], f"{target}: only {row.target} has it")
            since = max(row.since, first_target(self.code[pc]))
            if capability < since:
                why = f"{target}: targets from sm_{since} on have it"
                raise unsupported(self.code[pc], why)
            if not row.ends:
                self.op(pc)
            elif row.ends != "call":
                self._end_at(pc)

    def _end_at(self, pc: int) -> End:
        ins = self.code[pc]
        try:
            return self._end(ins, pc, self.rows[pc].ends)
        except (IndexError, KeyError, ValueError) as e:
            raise unsupported(ins, "its operands are not as expected") from e

    def _make_span(self, start: int) -> Span:
        rows = self.rows
        stop = start
        end: End | None = None
        while stop < len(rows):
            row = rows[stop]
            stop += 1
            if row.ends:
                end = self._end_at(stop - 1)
                break
            if stop in self.leaders:
                break
        body = stop - 1 if end is not None else stop
        is_barrier = end is not None and end.kind == "barrier"
        ops, after = self._joined(start, body, is_barrier)
        meetings = tuple(i for i in range(start, stop) if rows[i].meets)
        aligned = any(rows[i].meets == "warp" for i in meetings)
        multiplied = any(self.multiplied_by(at) for at in range(start, body))
        return Span(
            start, stop, tuple(ops), tuple(after), end, meetings, aligned, multiplied
        )

    @cached_property
    def _multiplied(self) -> frozenset[int]:
        """The registers of all wgmma."""
        forms = [
            warpgroup_multiply.decode(self.translator(at), self.code[at])[0]
            for at, row in enumerate(self.rows)
            if row.is_warpgroup_multiply
        ]
        return frozenset(slot for form in forms for slot in (*form.d, *form.a))

    def multiplied_by(self, at: int) -> frozenset[int]:
        """The registers of wgmma that another instruction accesses."""
        if not self._multiplied or self.rows[at].is_warpgroup_multiply:
            return frozenset()
        flow = self.flow(at)
        return self._multiplied.intersection((*flow.results, *flow.sources))

    def flow(self, pc: int) -> Flow:
        """The registers of one instruction, to follow what is in them."""
        found = self._flows.get(pc)
        if found is None:
            ins, row, op = self.code[pc], self.rows[pc], self.op(pc)
            found = Flow.of(self.translator(pc), ins, row, op)
            self._flows[pc] = found
        return found

    def _joined(
        self, start: int, stop: int, before_barrier: bool
    ) -> tuple[list[Op], list[int]]:
        """The ops of a span: `mma` in groups, new epochs where they are needed.

        After a warp-synchronising instruction the warp needs a new epoch before its
        next shared access; several such instructions in a row share one.
        """
        ops: list[Op] = []
        after: list[int] = []
        synced, written = False, True
        i = start
        while i < stop:
            row = self.rows[i]
            # A load by single lanes needs a new epoch before it, as a store does.
            by_lanes = row.touches_shared and not row.reads_as_one
            if synced and (by_lanes or (row.touches_shared and written)):
                ops.append(new_epoch)
                after.append(i)
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
                after.append(i)
        if synced and not before_barrier:
            ops.append(new_epoch)
            after.append(stop)
        return ops, after

    def _multiply_run(self, start: int, stop: int) -> tuple[Op, int]:
        """The longest run of independent `mma` of one type from `start`."""
        members: list[MatrixMultiply] = []
        written: set[int] = set()
        i = start
        while i < stop:
            ins = self.code[i]
            if ins.guard is not None or not self.rows[i].is_multiply:
                break
            new = decode_multiply(self.translator(i), ins)
            if members and not new.may_join(members[0], written):
                break
            members.append(new)
            written.update(new.d)
            i += 1
        return MultiplyGroup(members), i

    def _translate(self, pc: int) -> Op:
        ins = self.code[pc]
        try:
            op = self.rows[pc].translate(self.translator(pc), ins)
        # Parts or operands are missing, or a type has no such form.
        except (IndexError, KeyError, ValueError) as e:
            raise unsupported(ins, "its operands are not as expected") from e
        guard = None if op is nothing else self._guard(ins, pc)
        return op if guard is None else guarded(op, *guard)

    def _guard(self, ins: Instruction, pc: int) -> tuple[int, bool] | None:
        """The slot of the predicate, and whether it is negated; None without one."""
        if ins.guard is None:
            return None
        name, negated = ins.guard
        translator = self.translator(pc)
        if translator.type_of(name, ins) is not PRED:
            raise unsupported(ins, f"{name} is not a predicate")
        return translator.slot(name, ins), negated

    def _end(self, ins: Instruction, pc: int, kind: str) -> End:
        guard = self._guard(ins, pc)
        if kind == "branch":
            return End(ins, kind, guard, target=self._label(ins, pc, ins.operands[0]))
        if kind == "table":
            return self._table(ins, pc, guard)
        if kind == "barrier":
            call = decode_barrier(self.translator(pc), ins)
            return End(ins, kind, guard, barrier=call)
        if kind in _WAITS:
            return End(ins, kind, guard, wait=_WAITS[kind](self.translator(pc), ins))
        if kind == "call":
            return self._call(ins, pc, guard)
        part = self.program.parts[self._part(pc)]
        if kind == "return" and not part.function.is_entry:
            return End(ins, kind, guard, callee=self._callee(part.function.name))
        return End(ins, "exit" if kind == "return" else kind, guard)

    def _label(self, ins: Instruction, pc: int, operand: object) -> int:
        part = self.program.parts[self._part(pc)]
        name = operand.name if isinstance(operand, Name) else None
        if name is None or name not in part.function.labels:
            raise EmulationError(f"PTX line {ins.line}: no such label: {ins.text}")
        return part.start + part.function.labels[name]

    def _table(self, ins: Instruction, pc: int, guard: tuple[int, bool] | None) -> End:
        index, listed = ins.operands
        translator = self.translator(pc)
        names = translator.kernel.targets.get(getattr(listed, "name", ""))
        if names is None:
            raise unsupported(ins)
        table = tuple(self._label(ins, pc, Name(name)) for name in names)
        read = translator.read(index, U32T, ins)
        return End(ins, "table", guard, table=table, index=read)

    def _call(self, ins: Instruction, pc: int, guard: tuple[int, bool] | None) -> End:
        """A call: of the device runtime, of a function by name, or by its address."""
        translator, program = self.translator(pc), self.program
        runtime = device_runtime.translate(translator, ins)
        if runtime is not None:
            return End(ins, "runtime", guard, runtime=runtime)
        target, caller = read_call(ins).target, translator.kernel.name
        if target in program.part_of:
            callees = {-1: self._callee(target)}
        elif translator.is_register(target):
            known = program.addresses
            callees = {known[n]: self._callee(n) for n in program.part_of}
        else:
            raise unsupported(ins, f"function {target} has no body")
        names = [callee.function.name for callee in callees.values()]
        saves = any(program.saves(caller, name) for name in names)
        site = CallSite(translator, ins, pc, callees, saves)
        self.sites[pc] = site
        return End(ins, "call", guard, site=site)

    def _callee(self, name: str) -> Callee:
        found = self._callees.get(name)
        if found is None:
            number = self.program.part_of[name]
            translator = self.translators[number]
            back = translator.registers.add(
                f"{translator.prefix}%back", np.zeros((1, 1, 1), np.int64)
            )
            frame = self.loaded.memory_map.frames[number]
            start = self.program.parts[number].start
            found = self._callees[name] = Callee(translator, start, frame, back)
        return found


# What reads the instructions at which lanes wait until something is over.
_WAITS: dict[str, Callable[[Translator, Instruction], Waited]] = {
    "wait": mbarrier.decode_wait,
    "registers": decode_registers,
    "cluster": cluster.decode_wait,
    "multiply": warpgroup_wait.decode,
}


def _translator(
    part: Part, memory_map: MemoryMap, frame: Frame, registers: RegisterTable
) -> Translator:
    """That of one function, which sees its own variables and parameters."""
    if part.function.is_entry:
        return Translator(part.function, memory_map, registers)
    own = replace(memory_map, local=frame.local, parameters={})
    prefix = f"{part.function.name}:"
    slot = None
    if part.on_stack:
        slot = registers.add(f"{prefix}%frame", np.zeros((1, 1, 1), np.uint64))
    return Translator(part.function, own, registers, prefix, slot)
