"""What roles of warps wait for: `Ring`, `Signal` and `Turns`, builders of IR.

Slots and iterations are counted in 32 bits: an index has 64, which are two registers
and two instructions.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import arith, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.transforms.roles.tensor_loads import Barriers, RemoteBarriers


def to_word(value: ir.Value) -> Any:
    """An index in 32 bits."""
    return arith.index_castui(build.integer(32), value)


def to_index(value: ir.Value) -> Any:
    """32 bits as an index."""
    return arith.index_castui(ir.IndexType.get(), value)


@frozen
class Ring:
    """The slots that one role fills and the other reads, in turn.

    full, empty: the mbarriers of each slot
    counter:     number of the loop's carried value that counts the slots
    readers:     warps that read a slot before it is free
    """

    full: Barriers
    empty: Barriers
    slots: int
    counter: int
    readers: int

    def next(self, slot: ir.Value, parity: ir.Value) -> tuple[Any, Any]:
        """The next slot, of 32 bits, and its parity: another one after the last."""
        following = arith.addi(slot, build.i32(1))
        wraps = arith.cmpi(arith.CmpIPredicate.eq, following, build.i32(self.slots))
        return arith.select(wraps, build.i32(0), following), arith.xori(parity, wraps)

    def skip(self, slot: ir.Value, parity: ir.Value, count: int) -> tuple[Any, Any]:
        """The slot so many behind, and its parity."""
        whole, rest = divmod(count, self.slots)
        following = arith.addi(slot, build.i32(rest))
        least = arith.CmpIPredicate.uge
        wraps = arith.cmpi(least, following, build.i32(self.slots))
        begun = arith.subi(following, build.i32(self.slots))
        if whole % 2:
            parity = arith.xori(parity, build.true())
        return arith.select(wraps, begun, following), arith.xori(parity, wraps)


@frozen
class Signal:
    """How a warp says that it has read a slot.

    speaks: whether a lane does it for its warp; of a cluster, a lane for each block
    to:     the mbarriers that the lane arrives at
    """

    speaks: ir.Value
    to: Barriers | RemoteBarriers

    def free(self, slot: ir.Value, condition: ir.Value | None) -> None:
        """Free a slot, of 32 bits, where the condition holds."""
        speaks = build.both(condition, self.speaks)
        build.branch(speaks, lambda: self.to.arrive(to_index(slot)))


@frozen
class Turns:
    """Two groups of warps that take tiles in turn; the loop of one is run at a time.

    Who waits for a slot that the other one reads before could not tell the phases
    apart: a parity says which of two it is.

    second: whether the warp is of the second group
    order:  an mbarrier for each group, whose phase ends when it is its turn
    speaks: whether a lane does so for its warp
    """

    second: ir.Value
    order: Barriers
    speaks: ir.Value

    COUNT = 2

    @property
    def first_parity(self) -> Any:
        """Of the phase that a group waits for: the first group's is as if ended."""
        return arith.xori(self.second, build.true())

    def wait(self, parity: ir.Value) -> None:
        """Until it is this group's turn."""
        self.order.wait(self._number(0, 1), parity)

    def end(self) -> None:
        """Let it be the other group's."""
        build.branch(self.speaks, lambda: self.order.arrive(self._number(1, 0)))

    def _number(self, of_first: int, of_second: int) -> Any:
        return build.select(self.second, of_second, of_first)
