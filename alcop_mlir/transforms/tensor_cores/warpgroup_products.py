"""Lowers contractions that are marked `alcop.wgmma`, as alcop-lower-mma meets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.layout.fragments import READ
from alcop_mlir.analysis.layout.warpgroups import (
    WarpgroupProduct,
    is_cast_of_operand,
    reads_memory,
    warpgroup_product,
)
from alcop_mlir.bindings import gpu, ir, nvvm
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE, WARPGROUP
from alcop_mlir.transforms.tensor_cores.fragment_access import Pieces
from alcop_mlir.transforms.tensor_cores.warpgroup_arithmetic import (
    multiply,
    multiply_held,
    no_sums,
    opaque,
    packed,
    unpacked,
    warpgroup_number,
)

SUMS = 2  # operand of a contraction


def is_of_warpgroup(contract: ir.Operation) -> bool:
    """Whether a warpgroup computes a contraction."""
    return alcop.WGMMA in contract.attributes


def is_zero(value: ir.Value) -> bool:
    """Whether all elements of a vector are the constant 0."""
    return loops.splat(value) == 0


def is_read_by_warpgroup(value: ir.Value) -> bool:
    """Whether a value is an operand of wgmma, which reads memory itself.

    Of what is cast for a vector.contract, what it is cast from is one, too.
    """
    uses = [(use.owner.operation, use.operand_number) for use in value.uses]
    return bool(uses) and all(
        (is_of_warpgroup(user) and number < SUMS and reads_memory(user, number))
        or (is_cast_of_operand(user) and is_read_by_warpgroup(user.results[0]))
        for user, number in uses
    )


@dataclass
class Products:
    """The contractions by wgmma of a kernel of so many threads.

    unfinished: what the next one goes on with, a struct for each instruction
    group: the number of a thread's warpgroup, where it is computed
    numbers: of fragments that accumulators begin with
    """

    threads: int
    body: Any
    unfinished: dict[Any, list[Any]] = field(default_factory=dict)
    group: Any = None
    numbers: Iterator[int] = field(default_factory=count)

    def has(self, value: ir.Value) -> bool:
        """Whether one that another goes on with made these accumulators."""
        return value in self.unfinished

    def lower(
        self,
        op: ir.Operation,
        held: Sequence[Any] | None,
        a: Pieces | None = None,
    ) -> tuple[Any, ...] | None:
        """Build the wgmma of one; those in a row on the same ones are a group, unless A
        is in registers: those of a step are free again when its own group has ended.

        held: fragments of what it adds to; None where these are zero, or of the one
            before
        a: fragments of A, where these are in registers
        Returns fragments of its accumulators; None where the next goes on with them.
        """
        product = warpgroup_product(op)
        if isinstance(product, str):
            raise PassError(op, f"is marked for wgmma: {product}")
        before, result = op.operands[SUMS], op.results[0]
        sums = self.unfinished.pop(before, None)
        is_new = sums is None and held is None
        if sums is None:
            # Orders registers and wgmma: PTX ISA, wgmma.fence.
            if held is None:
                sums = no_sums(product)
            else:
                if a is None and _is_first(before):
                    held = [opaque(one, next(self.numbers)) for one in held]
                sums = packed(product, held)
            if a is None:
                nvvm.WgmmaFenceAlignedOp()
        if a is None:
            sums = multiply(product, op, sums, self._group(product), is_new)
        else:
            sums = multiply_held(product, sums, a, is_new)
        if a is None and _goes_on(op):
            self.unfinished[result] = sums
            return None
        nvvm.WgmmaGroupSyncAlignedOp()  # commits the group
        return unpacked(product, sums)

    def _group(self, product: WarpgroupProduct) -> Any:
        """The number of a thread's warpgroup, of those that compute a tile.

        Computed once, where all are together.
        """
        if product.threads == WARPGROUP * WARP_SIZE:
            return build.i32(0)
        if self.group is None:
            with ir.InsertionPoint.at_block_begin(self.body):
                thread = gpu.thread_id(gpu.Dimension.x, upper_bound=self.threads)
                self.group = warpgroup_number(thread)
        return self.group


def _is_first(sums: ir.Value) -> bool:
    """Whether no contraction made what one adds to: those of a group in flight stay
    where they are.
    """
    op = loops.defining_op(sums)
    return op is not None and not is_of_warpgroup(op) and not len(op.regions)


def _goes_on(op: ir.Operation) -> bool:
    """Whether the next contraction of a warpgroup adds to the same accumulators, and
    nothing between them waits for the group, or frees what it reads.
    """
    uses = list(op.results[0].uses)
    if len(uses) != 1 or uses[0].operand_number != SUMS:
        return False
    user = uses[0].owner.operation
    if not is_of_warpgroup(user) or user.block != op.block:
        return False
    ops = [one.operation for one in op.block.operations]
    between = ops[ops.index(op.operation) + 1 : ops.index(user)]
    return all(one.name == READ or is_pure(one) for one in between)
