"""The code of a process: a kernel as its threads run it, without what does not matter.

Loops and branches become jumps, so that where a process stands is a number. Branches
on the number of a thread are taken; values are registers. Only what events, branches
and trip counts need is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.rings.events import Event
from alcop_mlir.verifier.rings.kernel import FOR, IF, LONG, YIELD, Kernel
from alcop_mlir.verifier.rings.numbers import LONG_NAME, Open
from alcop_mlir.verifier.rings.products import takes_registers_apart
from alcop_mlir.verifier.rings.unproven import Unproven
from alcop_mlir.verifier.values import constant, is_computable, origins, rule_of

_COMPARE = "arith.cmpi"
_CASTS = (
    "arith.index_cast",
    "arith.index_castui",
    "arith.extui",
    "arith.extsi",
    "arith.trunci",
)
# What all threads of a block are given alike, besides what is outside of the kernel.
_GIVEN = (
    "gpu.block_id",
    "gpu.block_dim",
    "gpu.grid_dim",
    "memref.dim",
    "memref.extract_strided_metadata",
)
_AXES = 3  # arguments of gpu.launch: first the numbers of the block
_NO_SUMS = None


@dataclass(frozen=True)
class Loop:
    """A loop around an instruction: its index, its bound, and how it is compared.

    most: one more than all constants that the index is compared with; None where it is
          used for more than comparisons
    """

    number: int
    index: int
    upper: int
    most: int | None


@dataclass(frozen=True, eq=False)
class Instruction:
    """One step of a process.

    kind:   of a jump or of arithmetic, or of an event: a method of `run.Run`
    uses:   registers that it reads, or integers as they are
    defs:   registers that it sets
    target: where a jump leads
    loops:  around it, outermost first
    """

    kind: str
    op: Any
    uses: tuple[Any, ...] = ()
    defs: tuple[int, ...] = ()
    target: int = -1
    data: Any = None
    loops: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class Register:
    """The number of a register, told apart from an integer."""

    number: int


@dataclass
class Compiler:
    """Makes the code of the process that a thread belongs to.

    start: what registers hold before it runs
    """

    kernel: Kernel
    thread: int
    code: list[Instruction] = field(default_factory=list)
    start: dict[int, int | Open] = field(default_factory=dict)
    _registers: dict[Any, int] = field(default_factory=dict)
    _loops: tuple[Loop, ...] = ()
    _number: int = 0

    def compile(self) -> list[Instruction]:
        """The code."""
        op = self.kernel.ops.kernel
        for region in op.regions:
            self._block(region.blocks[0])
        self._add("end", op)
        return self.code

    @property
    def registers(self) -> int:
        """How many there are."""
        return len(self._registers)

    def accumulators(self) -> list[int]:
        """The registers that hold accumulators."""
        return [
            self._registers[v] for v in self.kernel.accumulators if v in self._registers
        ]

    def _add(self, kind: str, op: Any, **fields: Any) -> int:
        self.code.append(Instruction(kind, op, loops=self._loops, **fields))
        return len(self.code) - 1

    def _jump_here(self, place: int) -> None:
        self.code[place] = replace(self.code[place], target=len(self.code))

    def _block(self, block: Any) -> list[Any]:
        """Add the ops of a block; the operands of its terminator."""
        yielded: list[Any] = []
        for one in block.operations:
            op = one.operation
            if op.name == YIELD:
                yielded = list(op.operands)
            else:
                self._op(op)
        return yielded

    def _op(self, op: Any) -> None:
        is_needed = any(self._is_needed(result) for result in op.results)
        event = self.kernel.events.get(op)
        if event is not None:
            self._event(op, event)
        if op.name == FOR and (is_needed or op in self.kernel.eventful):
            self._for(op)
        elif op.name == IF and (is_needed or op in self.kernel.eventful):
            self._if(op)
        elif op in self.kernel.eventful:
            for region in op.regions:
                self._block(region.blocks[0])
        elif is_needed and event is None and not takes_registers_apart(op):
            self._compute(op)

    def _is_needed(self, value: Any) -> bool:
        """Whether a register is for a value."""
        return value in self.kernel.needed or value in self.kernel.accumulators

    def _event(self, op: Any, event: Event) -> None:
        accumulators = (
            event.accumulators
            if isinstance(event.accumulators, tuple)
            else (event.accumulators,)
        )
        held = [
            self._of(one) for one in accumulators if one in self.kernel.accumulators
        ]
        held = list(dict.fromkeys(held))
        uses = (*(self._of(one) for one in event.operands), *held)
        defs = ()
        if event.kind in ("multiply", "issue"):
            defs = (self._register(op.results[0]).number,)
        self._add(event.kind, op, uses=uses, defs=defs, data=event.data)

    def _compute(self, op: Any) -> None:
        result = op.results[0]
        if self._is_known(result) or self._is_leaf(result):
            return
        uses = tuple(self._of(one) for one in op.operands)
        defs = (self._register(op.results[0]).number,)
        if op.name == _COMPARE:
            data = int(op.attributes["predicate"])
            self._add("compare", op, uses=uses, defs=defs, data=data)
            return
        assert is_computable(op), op
        data = (rule_of(op), _what(op))
        self._add("compute", op, uses=uses, defs=defs, data=data)

    def _is_known(self, value: Any) -> bool:
        return self.kernel.threads.values(value) is not None

    def _if(self, op: Any) -> None:
        condition = self._of(op.operands[0])
        ways = [
            region.blocks[0] if len(region.blocks) else None for region in op.regions
        ]
        if isinstance(condition, int):
            self._way(op, ways[0 if condition else 1])
            return
        branch = self._add("branch", op, uses=(condition,))
        self._way(op, ways[0])
        jump = self._add("jump", op)
        self._jump_here(branch)
        self._way(op, ways[1])
        self._jump_here(jump)

    def _way(self, op: Any, block: Any) -> None:
        if block is not None:
            self._move(op, op.results, self._block(block))

    def _for(self, op: Any) -> None:
        block = op.regions[0].blocks[0]
        lower, upper, step, *inits = op.operands
        index = self._register(block.arguments[0])
        limit = self._upper(upper)
        loop = Loop(self._number, index.number, limit.number, self._compared(block))
        self._number += 1
        self._move(op, block.arguments[1:], inits)
        self._add("enter", op, uses=(self._of(lower),), defs=(index.number,), data=loop)
        outer, self._loops = self._loops, (*self._loops, loop)
        head = self._add("loop", op, uses=(index, limit), data=loop)
        yielded = self._block(block)
        self._move(op, block.arguments[1:], yielded)
        data = (None, ("arith.addi",))
        self._add(
            "compute", op, uses=(index, self._of(step)), defs=(index.number,), data=data
        )
        self._add("jump", op, target=head)
        self._loops = outer
        self._jump_here(head)
        self._move(op, op.results, block.arguments[1:])

    def _upper(self, value: Any) -> Register:
        """The bound of a loop; a large one as a number that is not known."""
        known = self._of(value)
        if isinstance(known, Register):
            return known
        register = self._register(("bound", known))
        self.start[register.number] = (
            known if known <= LONG else self.kernel.atoms.named((LONG_NAME, known))
        )
        return register

    def _compared(self, block: Any) -> int | None:
        """See `Loop.most`."""
        most, pending = 0, [block.arguments[0]]
        while pending:
            value = pending.pop()
            for use in value.uses:
                user = use.owner.operation
                results = list(user.results)
                if not any(self._is_needed(result) for result in results):
                    if user not in self.kernel.eventful:
                        continue
                if user.name in _CASTS:
                    pending += results
                    continue
                other = user.operands[1 - use.operand_number] if results else None
                number = None if other is None else constant(other)
                if user.name != _COMPARE or number is None:
                    return None
                most = max(most, number + 1)
        return most

    def _move(self, op: Any, to: Iterable[Any], values: Iterable[Any]) -> None:
        moved = [
            (one, value)
            for one, value in zip(to, values, strict=True)
            if self._is_needed(one)
        ]
        self._write_sums(op, moved)
        pairs = [
            (
                self._register(one).number,
                self._of(value, one in self.kernel.accumulators),
            )
            for one, value in moved
            if one not in self.kernel.same
        ]
        if pairs:
            defs, uses = zip(*pairs, strict=True)
            self._add("move", op, uses=uses, defs=defs)

    def _write_sums(self, op: Any, moved: Iterable[tuple[Any, Any]]) -> None:
        """Registers of accumulators of lowered wgmma that get other values."""
        same = self.kernel.same
        written = [one for one, value in moved if one in same and value not in same]
        if written:
            uses = tuple({self._register(one) for one in written})
            self._add("use_sums", op, uses=uses)

    def _of(self, value: Any, is_sum: bool = False) -> Any:
        """A number that is known of a value, or the register that holds it."""
        if value is None or isinstance(value, int):
            return value
        if value in self.kernel.of_lanes:
            return self.kernel.of_lanes[value][self.thread]
        if is_sum and value not in self.kernel.accumulators:
            return _NO_SUMS
        known = None if is_sum else self.kernel.threads.values(value)
        if isinstance(known, int):
            return known
        if value in self._registers or not self._is_leaf(value):
            return self._register(value)
        if not _is_given(value, self.kernel.ops.kernel):
            owner = value.owner
            op = owner.owner if isinstance(owner, ir.Block) else owner
            raise Unproven(op.operation, "makes a number that roles depend on")
        register = self._register(value)
        name = _name(value)
        if self.kernel.threads.blocks > 1 and _is_of_block(value):
            name = (name, self.thread // self.kernel.threads.block)
        self.start[register.number] = self.kernel.atoms.named(name)
        return register

    def _is_leaf(self, value: Any) -> bool:
        if value in self.kernel.accumulators:
            return False
        return origins(value) is None or _is_outside(value, self.kernel.ops.kernel)

    def _register(self, value: Any) -> Register:
        value = self.kernel.same.get(value, value)
        return Register(self._registers.setdefault(value, len(self._registers)))


def _what(op: Any) -> tuple[str, ...]:
    """The name of an op and its attributes."""
    names = sorted(op.attributes, key=str)
    return (op.name, *(f"{name}={op.attributes[name]}" for name in names))


def _is_given(value: Any, kernel: Any) -> bool:
    """Whether a value that is not computed is the same for all threads, at any time."""
    owner = value.owner
    if _is_outside(value, kernel):
        return True
    if isinstance(owner, ir.Block):
        return owner.owner.operation == kernel
    return owner.operation.name in _GIVEN


def _is_outside(value: Any, kernel: Any) -> bool:
    owner = value.owner
    op = (owner.owner if isinstance(owner, ir.Block) else owner).operation
    while op is not None:
        if op == kernel:
            return isinstance(owner, ir.Block) and owner.owner.operation == kernel
        op = op.parent.operation if op.parent is not None else None
    return True


def _is_of_block(value: Any) -> bool:
    """Whether a number is one of the block, others of its cluster have other ones."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation.name == "gpu.launch" and value.arg_number < _AXES
    return owner.operation.name == "gpu.block_id"


def _name(value: Any) -> Any:
    """What an unknown number is: equal for ops that find the same."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in _GIVEN:
        return value
    op = owner.operation
    operands = tuple(
        known if (known := constant(one)) is not None else one for one in op.operands
    )
    return (*_what(op), list(op.results).index(value), operands)
