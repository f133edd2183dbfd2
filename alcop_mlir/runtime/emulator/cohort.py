"""The state of a run: a batch of blocks, and the cohorts of warps that execute it.

A *batch* is some blocks of the grid that run together, with their shared memory and
race shadow. A *cohort* is a set of warps, the same in every block of the batch, that
share program counters and register arrays: all warps in the lockstep schedule, one
warp in the others. (Warp-specialised Hopper code would split cohorts at run time.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alcop_mlir.runtime.emulator.clocks import Clocks
from alcop_mlir.runtime.emulator.lanes import LANES, Mask
from alcop_mlir.runtime.emulator.memory import BlockMemory, GlobalMemory
from alcop_mlir.runtime.emulator.scalars import U32
from alcop_mlir.runtime.emulator.shadow import SharedShadow

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator.async_copy import Copy
    from alcop_mlir.runtime.emulator.counters import CounterSet, OpenGroup
    from alcop_mlir.runtime.emulator.global_shadow import GlobalShadow
    from alcop_mlir.runtime.emulator.program import Program
    from alcop_mlir.runtime.emulator.reports import Reports
    from alcop_mlir.runtime.emulator.syntax import Instruction
    from alcop_mlir.runtime.emulator.trace import Tracer

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator.cohort import Cohort

Array = np.ndarray
POISON = 0xFF
Dim3 = tuple[int, int, int]


class Batch:
    """Blocks `numbers` of the grid (linear block numbers), run together."""

    def __init__(
        self,
        program: Program,
        numbers: Array,
        grid: Dim3,
        block: Dim3,
        memory: GlobalMemory,
        early: bool,
        reports: Reports | None,
        global_shadow: GlobalShadow | None,
    ):
        self.program = program
        self.numbers = numbers
        self.marks = (numbers + 1).astype(np.int32)
        self.grid, self.block = grid, block
        self.blocks = len(numbers)
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // LANES)
        self.memory = memory
        self.early = early
        self.global_shadow = global_shadow
        layout = program.translator.layout
        self.shared = BlockMemory(self.blocks, layout.shared_size, POISON)
        self.parameters = BlockMemory(1, len(layout.parameter_bytes), 0)
        data = np.frombuffer(layout.parameter_bytes, np.uint8)
        self.parameters.data[0, : data.size] = data
        self.clocks = Clocks(self.warps)
        self.shadow: SharedShadow | None = None
        if reports is not None:
            self.shadow = SharedShadow(
                layout.shared_size,
                program.granule,
                self.clocks,
                reports,
                self.coordinates,
            )

    def coordinates(self, index: int) -> Dim3:
        """`%ctaid` of the block at `index` of the batch."""
        return block_coordinates(int(self.numbers[index]), self.grid)


def block_coordinates(number: int, grid: Dim3) -> Dim3:
    """`%ctaid` of a block by its number, x fastest."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


class Cohort:
    """Warps [first_warp, first_warp + warps) of every block of a batch."""

    def __init__(
        self,
        batch: Batch,
        first_warp: int,
        warps: int,
        counters: CounterSet | None,
        trace: Tracer | None,
    ):
        self.batch = batch
        self.first_warp, self.warps = first_warp, warps
        self.blocks = batch.blocks
        self.counters, self.trace = counters, trace
        self.R: list[Array] = []
        self.sums: dict[int, tuple[Array, list[Array]]] = {}
        self.copies: list[Copy] = []
        self.committed = np.zeros((1, 1, 1), np.int64)
        self.fronts: dict[int, Mask] = {}
        self.parked: dict[int, Array] = {}
        self.alive: Mask = self._lanes_in_block()
        self.done = False
        self.issued = 0
        # Instructions (mma) that each warp has issued before the running span; only
        # kept for counters and traces. `pending` is the running span itself.
        self.clock = np.zeros((1, 1), np.int64)
        self.multiplies = np.zeros((1, 1), np.int64)
        self.open_groups: list[OpenGroup] = []
        self.span_start = 0
        self.pending: tuple[Mask, int, int] | None = None
        self._local: BlockMemory | None = None
        self._warp_of: dict[int, Array] = {}
        self._lane_of: dict[int, Array] = {}

    def start(self) -> None:
        """Sets every register and begins at the first instruction."""
        translator = self.batch.program.translator
        self.R = list(translator.initial)
        for name, slot in translator.specials.items():
            self.R[slot] = special_register(self, name)
        self.fronts = {0: self.alive}

    def grow(self) -> None:
        """Registers that were met after the start (translation is lazy)."""
        translator = self.batch.program.translator
        known = len(self.R)
        if len(translator.initial) == known:
            return
        self.R.extend(translator.initial[known:])
        for name, slot in translator.specials.items():
            if slot >= known:
                self.R[slot] = special_register(self, name)

    def _lanes_in_block(self) -> Mask:
        """All lanes, but for a last warp that the block does not fill."""
        first = self.first_warp * LANES
        thread = first + np.arange(self.warps * LANES).reshape(1, self.warps, LANES)
        inside = thread < self.batch.threads
        return None if inside.all() else inside

    def local_memory(self) -> BlockMemory:
        """`.local` memory, one copy per thread, made when first used."""
        if self._local is None:
            size = self.batch.program.translator.layout.local_size
            copies = self.blocks * self.warps * LANES
            self._local = BlockMemory(copies, size, POISON)
        return self._local

    def warp_of(self, width: int) -> Array:
        """The warp of each of `width` lanes of every warp, flat."""
        found = self._warp_of.get(width)
        if found is None:
            span = np.arange(self.first_warp, self.first_warp + self.warps)
            found = self._warp_of[width] = np.repeat(span, width)
        return found

    def lane_of(self, width: int) -> Array:
        """The lane of each of `width` lanes of every warp, flat."""
        found = self._lane_of.get(width)
        if found is None:
            found = self._lane_of[width] = np.tile(np.arange(width), self.warps)
        return found

    def warp_sync(self, mask: Mask) -> None:
        """The lanes of each active warp have met: a new epoch for it."""
        batch = self.batch
        if batch.shadow is None:
            return
        active = None
        if mask is not None:
            active = np.asarray(mask.any(axis=2))
            if active.shape[0] > 1:
                batch.shadow.widen(self.blocks)
            active = np.broadcast_to(active, (active.shape[0], self.warps))
        batch.clocks.advance(self.first_warp, self.warps, active)

    def warp_barrier(self, mask: Mask, member_mask: Array) -> None:
        """bar.warp.sync: orders the lanes that name each other in their masks."""
        batch = self.batch
        if batch.shadow is None:
            return
        bit = np.uint32(1) << np.arange(LANES, dtype=np.uint32)
        every = np.ones((1, 1, LANES), bool)
        alive = every if self.alive is None else self.alive & every
        on = every if mask is None else mask & every
        named = (member_mask[..., None] & bit) != 0  # [l, m]: m in the mask of l
        met = on[..., :, None] & on[..., None, :] & named
        wanted = alive & on.any(axis=2, keepdims=True)
        if (met | ~(wanted[..., :, None] & wanted[..., None, :])).all():
            self.warp_sync(mask)
            return
        if met.shape[0] > 1:
            batch.shadow.widen(self.blocks)
        met = np.broadcast_to(met, (met.shape[0], self.warps, LANES, LANES))
        batch.clocks.advance_pairs(self.first_warp, self.warps, met)

    def fence(self, mask: Mask) -> None:
        """A fence of gpu or sys scope by the active lanes."""
        shadow = self.batch.global_shadow
        if shadow is None:
            return
        numbers = self.batch.numbers
        if mask is not None:
            on = mask.any(axis=(1, 2))
            numbers = numbers[np.broadcast_to(on, numbers.shape)]
        shadow.on_fence(numbers)

    def positions(self, ins: Instruction) -> Array:
        """Warp instructions issued by each warp before `ins`; (1|blocks, 1|warps)."""
        index = self.batch.program.index_of[ins.line]
        return self.clock + (index - self.span_start)

    def multiply_positions(self, ins: Instruction) -> Array:
        """The same, counting mma only."""
        program = self.batch.program
        before = program.multiplies_before
        index = program.index_of[ins.line]
        return self.multiplies + (before[index] - before[self.span_start])

    def settle(self) -> None:
        """Adds the last span (mask, instructions, mma) to the clocks of its warps."""
        if self.pending is None:
            return
        mask, count, multiplies = self.pending
        self.pending = None
        active = 1 if mask is None else mask.any(axis=2).astype(np.int64)
        self.clock = self.clock + count * active
        self.multiplies = self.multiplies + multiplies * active

    def push(self, pc: int, mask: Mask) -> None:
        """Lanes `mask` go on at instruction `pc`."""
        waiting = self.parked.pop(pc, None)
        if waiting is not None and mask is not None:
            mask = mask | waiting
        if pc in self.fronts:
            old = self.fronts[pc]
            mask = None if old is None or mask is None else old | mask
        self.fronts[pc] = mask

    def exit(self, mask: Mask) -> None:
        """Lanes `mask` have ended; those parked may have waited for them."""
        if mask is None:
            self.alive = np.zeros((1, 1, 1), bool)
            self.done = True
            return
        alive = np.ones((1, 1, 1), bool) if self.alive is None else self.alive
        self.alive = alive & ~mask
        self.done = not self.alive.any()
        for pc in list(self.parked):
            self.push(pc, self.parked.pop(pc))


def special_register(cohort: Cohort, name: str) -> Array:
    """The value of a special register (PTX ISA "Special Registers"), uint32."""
    batch = cohort.batch
    name = name.removeprefix("%")
    stem, _, axis = name.partition(".")
    if axis in ("x", "y", "z"):
        value = _by_axis(cohort, stem, "xyz".index(axis))
    elif stem == "laneid":
        value = np.arange(LANES).reshape(1, 1, LANES)
    elif stem == "warpid":
        span = np.arange(cohort.first_warp, cohort.first_warp + cohort.warps)
        value = span.reshape(1, -1, 1)
    elif stem.startswith("lanemask_"):
        value = _lane_mask(stem.removeprefix("lanemask_"))
    else:
        layout = batch.program.translator.layout
        known = {
            "nwarpid": batch.warps,
            "smid": 0,
            "nsmid": 1,
            "gridid": 0,
            "total_smem_size": layout.shared_size,
            "cluster_ctarank": 0,
            "dynamic_smem_size": batch.program.dynamic_shared,
            "cluster_nctarank": 1,
        }
        value = np.array(known[stem]).reshape(1, 1, 1)
    return value.astype(U32)


SPECIAL_STEMS = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
)
SPECIAL_NAMES = (
    "laneid",
    "warpid",
    "nwarpid",
    "smid",
    "nsmid",
    "gridid",
    "total_smem_size",
    "dynamic_smem_size",
    "cluster_ctarank",
    "cluster_nctarank",
    "lanemask_eq",
    "lanemask_lt",
    "lanemask_le",
    "lanemask_gt",
    "lanemask_ge",
)


def is_special(name: str) -> bool:
    """Whether a name is a special register known here."""
    stem, _, axis = name.removeprefix("%").partition(".")
    return stem in SPECIAL_NAMES or (stem in SPECIAL_STEMS and axis in ("x", "y", "z"))


def _by_axis(cohort: Cohort, stem: str, axis: int) -> Array:
    batch = cohort.batch
    step = int(np.prod([1, *batch.block][: axis + 1]))
    if stem == "tid":
        thread = cohort.first_warp * LANES + np.arange(cohort.warps * LANES)
        value = (thread // step % batch.block[axis]).reshape(1, -1, LANES)
        return _narrowed(value)
    if stem == "ctaid":
        stride = int(np.prod([1, *batch.grid][: axis + 1]))
        value = (batch.numbers // stride % batch.grid[axis]).reshape(-1, 1, 1)
        return _narrowed(value)
    sizes = {"ntid": batch.block[axis], "nctaid": batch.grid[axis]}
    sizes["nclusterid"] = batch.grid[axis]
    if stem == "clusterid":  # clusters of one block
        return _by_axis(cohort, "ctaid", axis)
    default = 0 if stem == "cluster_ctaid" else 1
    return np.array(sizes.get(stem, default)).reshape(1, 1, 1)


def _narrowed(x: Array) -> Array:
    """Drops every axis along which the value does not change."""
    for axis in range(3):
        first = x.take([0], axis=axis)
        if (x == first).all():
            x = first
    return x


def _lane_mask(kind: str) -> Array:
    lane = np.arange(LANES, dtype=np.int64)
    one = np.int64(1) << lane
    below, full = one - 1, (1 << LANES) - 1
    value = {
        "eq": one,
        "lt": below,
        "le": below | one,
        "gt": full & ~(below | one),
        "ge": full & ~below,
    }[kind]
    return value.reshape(1, 1, LANES)
