"""Blocks of a cluster: barrier.cluster, and addresses in each other's shared memory.

PTX ISA "barrier.cluster", "mapa", "getctarank", "isspacep". An address in the shared
memory of another block is that in the own one, plus `RANK_STEP` times the rank and one;
`mapa` of the own rank changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, S64, U32, U64, Array
from alcop_mlir.runtime.emulator.instructions.mbarrier import widen_of
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.memory import (
    RANK_STEP,
    SHARED_WINDOW,
    WINDOW_SIZE,
)
from alcop_mlir.runtime.emulator.machine.waiting import Waited
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import U32T, U64T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Name,
    Operand,
    space_of,
    unsupported,
)


def arrive(t: Translator, ins: Instruction) -> Op:
    """barrier.cluster.arrive."""
    releases = "relaxed" not in ins.parts

    def run(cohort: Cohort, mask: Mask) -> None:
        batch, widen = cohort.batch, widen_of(cohort)
        batch.cluster_barrier.arrive(cohort, mask, ins, releases, widen, batch.releases)

    return run


@dataclass(frozen=True)
class ClusterWait(Waited):
    """A decoded barrier.cluster.wait.

    slot: -1, as it writes no predicate; may_fail: no lane goes on before the end
    """

    ins: Instruction
    slot: int = -1
    may_fail: bool = False

    def test(self, cohort: Cohort, mask: Mask) -> Array:
        """For which lanes it is over; those of a warp wait together if .aligned."""
        barrier = cohort.batch.cluster_barrier
        alive = barrier.alive[:, cohort.span]
        if "aligned" in self.ins.parts and mask is not None:
            # Lanes that come later are there when no other can go on.
            on = np.broadcast_to(mask, alive.shape)
            mask = on & (on | ~alive).all(axis=2, keepdims=True)
        ready = barrier.wait(cohort, mask, self.ins, widen_of(cohort))
        return ready[:1] if (ready == ready[:1]).all() else ready

    def cells(self, cohort: Cohort, mask: Array) -> set[int]:
        """The mbarriers that it waits for: none."""
        return set()

    def describe(self, cohort: Cohort, mask: Array) -> str:
        """Who waits for what, for the message of a deadlock."""
        block = int(np.argwhere(mask)[0][0])
        warps = np.flatnonzero(mask[block].any(axis=1)) + cohort.first_warp
        who = cohort.block_set.names.listed(block, warps.tolist())
        return (
            f"{who} wait at {cohort.batch.cluster_barrier.describe(block)}, PTX line "
            f"{self.ins.line}: {self.ins.text}"
        )


def decode_wait(t: Translator, ins: Instruction) -> ClusterWait:
    """Reads barrier.cluster.wait."""
    return ClusterWait(ins)


# --- addresses -----------------------------------------------------------------------


def _window(ins: Instruction) -> int:
    """Where the addresses of an instruction begin that names a space, or none."""
    return 0 if space_of(ins.parts) == "shared" else SHARED_WINDOW


def _address(t: Translator, operand: Operand, ins: Instruction) -> Read:
    """A shared address in a register, or that of a variable, plus a number."""
    scalar = U64T if ins.type.size == U64T.size else U32T
    if isinstance(operand, Address) or (
        isinstance(operand, Name) and t.address_of(operand.name) is not None
    ):
        base = operand if isinstance(operand, Address) else Address(operand.name, 0)
        read, _ = t.base_address(base, ins)
        window = U64.type(_window(ins))
        is_variable = base.base is not None and not t.is_register(base.base)
        shift = window if is_variable else U64.type(0)
        return lambda R: read(R).astype(U64) + shift
    read = t.read(operand, scalar, ins)
    return lambda R: read(R).astype(U64)


def map_address(t: Translator, ins: Instruction) -> Op:
    """mapa: the address of the same variable in the block of another rank."""
    window, scalar = _window(ins), ins.type
    read = _address(t, ins.operands[1], ins)
    rank_of = t.read(ins.operands[2], U32T, ins)
    write = t.writer(ins.operands[0], scalar.unsigned, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        rank = rank_of(cohort.R).astype(S64)
        own = cohort.ranks()[None, :, None]
        _check_rank(cohort, mask, rank, ins)
        offset = (read(cohort.R).view(S64) - window) % RANK_STEP
        out = np.where(rank == own, offset, offset + (rank + 1) * RANK_STEP) + window
        write(cohort, out.astype(scalar.unsigned), mask)

    return run


def _check_rank(cohort: Cohort, mask: Mask, rank: Array, ins: Instruction) -> None:
    ranks = cohort.block_set.ranks
    wrong = rank >= ranks
    if mask is not None:
        wrong = wrong & mask
    if wrong.any():
        rank = np.broadcast_to(rank, wrong.shape)
        why = f"there is no block of rank {int(rank[wrong][0])} in a cluster of {ranks}"
        raise fault(ins, why, location_of_mask(cohort, wrong))


def find_rank(t: Translator, ins: Instruction) -> Op:
    """getctarank: of the block in whose shared memory an address lies."""
    window = _window(ins)
    read = _address(t, ins.operands[1], ins)
    write = t.writer(ins.operands[0], U32, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        rank = (read(cohort.R).view(S64) - window) // RANK_STEP - 1
        own = cohort.ranks()[None, :, None]
        write(cohort, np.where(rank < 0, own, rank).astype(U32), mask)

    return run


def is_in_shared(t: Translator, ins: Instruction) -> Op:
    """isspacep.shared, .shared::cta and .shared::cluster, of a generic address."""
    if len(ins.operands) != 2:
        raise unsupported(ins)
    read = t.read(ins.operands[1], U64T, ins)
    write = t.writer(ins.operands[0], BOOL, ins)
    is_any = "shared::cluster" in ins.parts

    def run(cohort: Cohort, mask: Mask) -> None:
        offset = read(cohort.R) - U64.type(SHARED_WINDOW)
        inside = offset < U64.type(WINDOW_SIZE)
        if not is_any:
            rank = (offset // U64.type(RANK_STEP)).astype(S64) - 1
            inside = inside & ((rank < 0) | (rank == cohort.ranks()[None, :, None]))
        write(cohort, inside, mask)

    return run
