"""A kernel made ready to run: instructions to closures, one straight stretch at a time.

Translation is lazy: a *span* is what runs from an instruction to the next branch,
barrier, exit or label, and it is made when it is first reached. All opcodes are known
to be in the subset before the run starts, so that an unknown one is an error even in
code that is never reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import (
    async_copy,
    matrix_access,
    matrix_multiply,
    translate_convert,
    translate_float,
    translate_integer,
    translate_memory,
    translate_multiply,
    translate_predicate,
    translate_warp,
)
from alcop_mlir.runtime.emulator.barriers import BarrierCall, decode_barrier
from alcop_mlir.runtime.emulator.cohort import is_special
from alcop_mlir.runtime.emulator.layout import Layout
from alcop_mlir.runtime.emulator.matrix_multiply import MatrixMultiply, MultiplyGroup
from alcop_mlir.runtime.emulator.scalars import PRED, SCALARS, U32T
from alcop_mlir.runtime.emulator.syntax import (
    Instruction,
    Integer,
    Kernel,
    Name,
    unsupported,
)
from alcop_mlir.runtime.emulator.translator import (
    Handler,
    Mask,
    Op,
    Read,
    Translator,
    guarded,
    nothing,
)

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator.cohort import Cohort

HANDLERS: dict[str, Handler] = {
    **translate_integer.HANDLERS,
    **translate_multiply.HANDLERS,
    **translate_convert.HANDLERS,
    **translate_predicate.HANDLERS,
    **translate_memory.HANDLERS,
    **translate_warp.HANDLERS,
    **matrix_access.HANDLERS,
    **matrix_multiply.HANDLERS,
    **async_copy.HANDLERS,
}
FLOAT_HANDLERS = translate_float.HANDLERS
BRANCHES = ("bra", "brx")
EXITS = ("ret", "exit")
FENCES = ("membar", "fence")


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


def is_meeting(ins: Instruction) -> bool:
    """Warp instructions with .sync: lanes wait for one another there."""
    return ("sync" in ins.parts and ins.parts[0] not in ("bar", "barrier", "cp")) or (
        ins.parts[:2] == ("bar", "warp")
    )


def orders_lanes(ins: Instruction) -> bool:
    """Warp instructions after which the lanes' earlier accesses count as ordered.

    Besides bar.warp.sync, which does it itself. The PTX memory model promises it for
    no other, but a warp that has executed a matrix instruction as one has issued all
    that came before. Shuffles and votes need not run as one instruction, and what
    stmatrix writes is not ordered by stmatrix itself.
    """
    return ins.parts[0] in ("mma", "ldmatrix", "movmatrix")


def ends_span(ins: Instruction) -> bool:
    name = ins.parts[0]
    if name in BRANCHES or name in EXITS or name == "trap":
        return True
    return name in ("bar", "barrier") and ins.parts[1] != "warp"


def touches_shared(ins: Instruction) -> str:
    """ "read", "write" or "" for how a span's epochs must treat an instruction."""
    name = ins.parts[0]
    if name == "ldmatrix":
        return "read"
    if name in ("stmatrix", "cp", "atom", "red", "st"):
        return "" if "global" in ins.parts and name != "cp" else "write"
    if name == "ld":
        named = translate_convert.space_of(ins.parts)
        return "write" if named in (None, "shared") else ""
    return ""


class Program:
    """One kernel with its translation so far."""

    def __init__(self, kernel: Kernel, layout: Layout, dynamic_shared: int):
        self.kernel = kernel
        self.code = kernel.instructions
        self.translator = Translator(kernel, layout)
        self.dynamic_shared = dynamic_shared
        self.index_of = {ins.line: i for i, ins in enumerate(self.code)}
        multiplies = (ins.parts[0] == "mma" for ins in self.code)
        self.multiplies_before = [0, *accumulate(multiplies)]
        self.leaders = {0, *kernel.labels.values()}
        self.granule = _granule(self.code)
        self._spans: dict[int, Span] = {}
        self._ops: dict[int, Op] = {}
        self._check_known()

    def _check_known(self) -> None:
        seen: set[tuple[str, ...]] = set()
        for ins in self.code:
            if ins.parts in seen:
                continue
            seen.add(ins.parts)
            name = ins.parts[0]
            known = name in HANDLERS or name in FLOAT_HANDLERS or name in FENCES
            if not (
                known or ends_span(ins) or ins.parts[:3] == ("bar", "warp", "sync")
            ):
                raise unsupported(ins)
            if "cluster" in ins.parts or "shared::cluster" in ins.parts:
                raise unsupported(ins, "thread block clusters")

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
            found = self._ops[pc] = self._translate(self.code[pc])
        return found

    def _make_span(self, start: int) -> Span:
        code = self.code
        stop = start
        end: End | None = None
        while stop < len(code):
            ins = code[stop]
            stop += 1
            if ends_span(ins):
                try:
                    end = self._end(ins)
                except (IndexError, ValueError) as e:
                    raise unsupported(ins, "its operands are not as expected") from e
                break
            if stop in self.leaders:
                break
        body = stop - 1 if end is not None else stop
        is_barrier = end is not None and end.kind == "barrier"
        ops = tuple(self._joined(start, body, is_barrier))
        meetings = tuple(i for i in range(start, body) if is_meeting(code[i]))
        aligned = any("aligned" in code[i].parts for i in meetings)
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
            ins = self.code[i]
            use = touches_shared(ins)
            if synced and (use == "write" or (use == "read" and written)):
                ops.append(_new_epoch)
                synced, written = False, False
            written = written or use == "write"
            if ins.parts[0] == "bar" and synced:
                ops.append(_new_epoch)
                synced = False
            if ins.parts[0] == "mma" and ins.guard is None:
                op, i = self._multiply_run(i, stop)
            else:
                op = self.op(i)
                i += 1
            synced = synced or orders_lanes(ins)
            if op is not nothing:
                ops.append(op)
        if synced and not before_barrier:
            ops.append(_new_epoch)
        return ops

    def _multiply_run(self, start: int, stop: int) -> tuple[Op, int]:
        """The longest run of independent `mma` of one type from `start`."""
        members: list[MatrixMultiply] = []
        written: set[int] = set()
        i = start
        while i < stop:
            ins = self.code[i]
            if ins.guard is not None or ins.parts != self.code[start].parts:
                break
            new = matrix_multiply.decode_multiply(self.translator, ins)
            if new.depends_on(written):
                break
            members.append(new)
            written.update(new.d)
            i += 1
        return MultiplyGroup(members), i

    def _translate(self, ins: Instruction) -> Op:
        try:
            op = self._handler(ins)(self.translator, ins)
        except (IndexError, ValueError) as e:  # parts or operands are missing
            raise unsupported(ins, "its operands are not as expected") from e
        self._check_specials(ins)
        if ins.guard is None or op is nothing:
            return op
        name, negated = ins.guard
        if self.translator.type_of(name, ins) is not PRED:
            raise unsupported(ins, f"{name} is not a predicate")
        return guarded(op, self.translator.slot(name, ins), negated)

    def _handler(self, ins: Instruction) -> Handler:
        name = ins.parts[0]
        if name in FENCES:
            return _fence
        if ins.parts[:2] == ("bar", "warp"):
            return _warp_barrier
        scalar = SCALARS.get(ins.parts[-1])
        if scalar is not None and scalar.kind == "f" and name in FLOAT_HANDLERS:
            return FLOAT_HANDLERS[name]
        found = HANDLERS.get(name)
        if found is None or (
            scalar is not None and scalar.kind == "f" and name in _INTEGER_ONLY
        ):
            raise unsupported(ins)
        return found

    def _check_specials(self, ins: Instruction) -> None:
        for operand in ins.operands:
            if isinstance(operand, Name) and operand.name in self.translator.specials:
                if not is_special(operand.name):
                    raise unsupported(ins, f"special register {operand.name}")

    def _end(self, ins: Instruction) -> End:
        guard = None
        if ins.guard is not None:
            guard = (self.translator.slot(ins.guard[0], ins), ins.guard[1])
        name = ins.parts[0]
        if name == "bra":
            return End(ins, "branch", guard, target=self._label(ins, ins.operands[0]))
        if name == "brx":
            return self._table(ins, guard)
        if name in EXITS:
            return End(ins, "exit", guard)
        if name == "trap":
            return End(ins, "trap", guard)
        return End(ins, "barrier", guard, barrier=decode_barrier(self.translator, ins))

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


_INTEGER_ONLY = frozenset(translate_integer.HANDLERS | translate_multiply.HANDLERS)


def _new_epoch(cohort: Cohort, mask: Mask) -> None:
    cohort.warp_sync(mask)


def _warp_barrier(t: Translator, ins: Instruction) -> Op:
    read = t.read(ins.operands[0], U32T, ins)
    return lambda cohort, mask: cohort.warp_barrier(mask, read(cohort.R))


def _fence(t: Translator, ins: Instruction) -> Op:
    """Fences of gpu or sys scope; those of a block order nothing that is checked."""
    if "cta" in ins.parts or "proxy" in ins.parts:
        return nothing
    return lambda cohort, mask: cohort.fence(mask)


def _granule(code: list[Instruction]) -> int:
    """The smallest shared access of the kernel, in bytes."""
    smallest = 16
    for ins in code:
        name = ins.parts[0]
        if name == "cp" and len(ins.operands) >= 3:
            size = ins.operands[2]
            if isinstance(size, Integer):
                smallest = min(smallest, max(size.value, 1))
        elif name in ("ld", "st", "atom", "red") and ins.operands:
            space = translate_convert.space_of(ins.parts)
            scalar = SCALARS.get(ins.parts[-1])
            if space in (None, "shared") and scalar is not None:
                at = ins.operands[0] if name == "ld" else ins.operands[-1]
                count = len(getattr(at, "items", (at,)))
                smallest = min(smallest, scalar.size * count)
    return smallest
