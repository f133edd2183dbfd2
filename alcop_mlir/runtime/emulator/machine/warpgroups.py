"""wgmma on its way: what was issued and not waited for, and who issued what.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". Four warps whose numbers
begin with a multiple of four are a warpgroup. Each has a quarter of the rows of D in
its registers. They issue the same multiplications in the same order, each when it
comes to it; but one of them is a single operation of the warpgroup (a wgmma-group is
one of it, "wgmma.commit_group"), so that whoever has waited for it knows that all of
its operands have been read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.faults import fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import (
    LANES,
    WARPGROUP,
    BlockSet,
    WarpRange,
)
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

WARPS = WARPGROUP
# Kinds of reports.
REGISTER_IN_FLIGHT = "register-in-flight"
MISSING_FENCE = "missing-wgmma-fence"
NEVER_WAITED = "wgmma-in-flight-at-exit"


@dataclass(frozen=True)
class WarpgroupForm:
    """One decoded `wgmma.mma_async`.

    shape: rows, columns, and K; types: of D, A and B; d: the slots of D; a: those of
    A, if it is in registers; k_major: whether A, B lie K-major in shared memory; sign:
    1 or -1, by which A times B is multiplied; saturates: whether D stops at the ends of
    its range
    """

    ins: Instruction
    shape: tuple[int, int, int]
    types: tuple[str, str, str]
    d: tuple[int, ...]
    a: tuple[int, ...]
    k_major: tuple[bool, bool]
    sign: int
    saturates: bool

    @property
    def layout(self) -> tuple[object, ...]:
        """What registers that two of them use in turn have to agree in."""
        return self.shape, self.types[0]


@dataclass(frozen=True)
class OperandRead:
    """What the warps `active`, bool (1|blocks, warps), read of shared memory.

    offset: of each piece of `size` bytes, int64 (1|blocks, 1|warps, pieces); number:
    which wgmma of each warp does it, (1|blocks, 1|warps)
    """

    owner: WarpRange
    active: Array
    offset: Array
    size: int
    ins: Instruction
    number: Array

    def lanes(self) -> Lanes:
        """With an entry for each piece that a warp reads."""
        mask = None if self.active.all() else self.active[:, :, None]
        width = self.offset.shape[2]
        return Lanes.of(self.owner, self.offset, mask, self.size, self.ins, width)


@dataclass(frozen=True)
class PendingMultiply:
    """A multiplication that some warps have issued and not waited for.

    active: which warps, bool (1|blocks, warps); group: the number of the wgmma-group of
    each; a, b: the addresses of the chunks that are read, (1|blocks, 1|warps, x, y), of
    A those of each warp's own rows, None where A is in registers; registers: these;
    adds: whether D is added to, bool (1|blocks, 1|warps); number: which one of the warp
    it is, from 1 on, (1|blocks, warps); operands: what was read, if that was before the
    wait, and by whom; is_read: whether another warp of the warpgroup has waited for it
    """

    form: WarpgroupForm
    active: Array
    group: Array
    a: Array | None
    b: Array
    registers: tuple[Array, ...]
    adds: Array
    number: Array
    operands: tuple[Array, Array, Array] | None = None
    is_read: bool = False

    def split(
        self, done: Array
    ) -> tuple[PendingMultiply | None, PendingMultiply | None]:
        """That of the warps `done`, and that of the others."""
        ready, rest = self.active & done, self.active & ~done
        if not rest.any():
            return self, None
        if not ready.any():
            return None, self
        return replace(self, active=ready), replace(self, active=rest)


@dataclass
class Accumulators:
    """D of some warps as matrices, float32 or int64 (blocks, warps, 16, columns).

    registers: what the slots of D held when it was written there, or None if it has
    not been: a multiplication in flight still adds to it
    """

    active: Array
    total: Array
    registers: list[Array] | None


@dataclass
class WarpgroupState:
    """Of the warps of a cohort.

    slots: the registers of what is pending; fenced: the warps that have executed a
    wgmma.fence; touched: the registers accessed since, by which warps and instruction
    """

    pending: list[PendingMultiply] = field(default_factory=list)
    committed: Array = field(default_factory=lambda: np.zeros((1, 1), np.int64))
    kept: dict[tuple[int, ...], Accumulators] = field(default_factory=dict)
    slots: frozenset[int] = frozenset()
    fenced: Array = field(default_factory=lambda: np.zeros((1, 1), bool))
    touched: dict[int, tuple[Array, Instruction, object]] = field(default_factory=dict)

    def settle(self, pending: Sequence[PendingMultiply]) -> None:
        """Sets what is pending."""
        self.pending = list(pending)
        forms = (one.form for one in self.pending)
        self.slots = frozenset(slot for form in forms for slot in (*form.d, *form.a))


class WarpgroupOrder:
    """What the warps of each warpgroup have issued, to find those that differ.

    open: for a block, a warpgroup and the number of a multiplication, what the first
    warp issued, and by which warps; it is forgotten when all four have done so
    over: how many of each warpgroup are known to be complete, (blocks, warpgroups)
    is_awaited, moved: whether a warp waits for others to issue theirs, and whether some
    have since
    """

    def __init__(self, block_set: BlockSet):
        self.count = np.zeros((block_set.blocks, block_set.warps), np.int64)
        groups = -(-block_set.warps // WARPS)
        self.over = np.zeros((block_set.blocks, groups), np.int64)
        self.is_awaited = self.moved = False
        # The last warps of a block may be no whole warpgroup.
        self.whole = -(-block_set.launch.threads // LANES) // WARPS * WARPS
        self.open: dict[tuple[int, int, int], tuple[Instruction, object, set[int]]] = {}

    def issue(
        self,
        owner: WarpRange,
        ins: Instruction,
        active: Array,
        descriptors: Sequence[Array],
    ) -> None:
        """Warps `active`, bool (1|blocks, warps), issue `ins`.

        Raises `EmulationError` for warps of a warpgroup that issue something else.
        """
        if self.whole < owner.block_set.block_warps:
            if active[:, owner.numbers_in_block() >= self.whole].any():
                raise fault(ins, "the last warps of the block are no whole warpgroup")
        self.moved = self.is_awaited
        counts = self.count[:, owner.span]
        if self._all_agree(owner, active, counts, descriptors):
            counts += active
            return
        given = [np.broadcast_to(x, counts.shape) for x in descriptors]
        for block, warp in np.argwhere(np.broadcast_to(active, counts.shape)).tolist():
            what = tuple(int(x[block, warp]) for x in given)
            number = owner.first_warp + warp
            self._one(owner, ins, block, number, int(counts[block, warp]), what)
        counts += active

    def _all_agree(
        self,
        owner: WarpRange,
        active: Array,
        counts: Array,
        descriptors: Sequence[Array],
    ) -> bool:
        """Whether whole warpgroups do the same, as nearly always."""
        if owner.first_warp % WARPS or owner.warps % WARPS or self.open:
            return False

        def alike(x: Array) -> bool:
            if x.shape[1] == 1:
                return True
            groups = x.reshape(len(x), -1, WARPS)
            return bool((groups == groups[:, :, :1]).all())

        return alike(active) and alike(counts) and all(map(alike, descriptors))

    def _one(
        self,
        owner: WarpRange,
        ins: Instruction,
        block: int,
        warp: int,
        number: int,
        what: object,
    ) -> None:
        key = (block, warp // WARPS, number)
        first, known, seen = self.open.setdefault(key, (ins, what, set()))
        if first is not ins or known != what:
            names = owner.block_set.names
            other, mine = names.warp(min(seen)), names.warp(warp)
            how = "with other descriptors" if first is ins else f"line {first.line}"
            raise fault(
                ins,
                f"warps {other} and {mine} are of one warpgroup, and differ in their "
                f"wgmma number {number + 1}: warp {other} executed {how}",
                f"block {names.block(block, warp)}",
            )
        seen.add(warp)
        if len(seen) == WARPS:
            del self.open[key]

    def issued(self) -> Array:
        """How many all warps of each warpgroup have issued, (blocks, warpgroups)."""
        blocks, warps = self.count.shape
        rest = np.full((blocks, -warps % WARPS), np.iinfo(np.int64).max)
        every = np.concatenate([self.count, rest], axis=1)
        return every.reshape(blocks, -1, WARPS).min(axis=2)

    def check_end(self, owner: WarpRange) -> None:
        """Raises `EmulationError` where only a part of a warpgroup has issued one."""
        for (block, _, _), (ins, _, seen) in self.open.items():
            names = owner.block_set.names
            warps = " and ".join(str(names.warp(warp)) for warp in sorted(seen))
            raise fault(
                ins,
                f"only warps {warps} of a warpgroup have executed this",
                f"block {names.block(block, min(seen))}",
            )
