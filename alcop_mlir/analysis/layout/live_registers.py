"""How many registers of a thread the vectors of a warp take in a loop's iteration.

A warp distributes a tile of m x n elements to its lanes: each holds a 32nd part. Of a
vector with an element per row it holds one per eight rows, as of accumulators it has
two of sixteen rows. Constants take none, and booleans are predicates. Nothing is
changed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import ancestor_in, body, defining_op
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.slices import captured_by_regions
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.target import MAX_REGISTERS_PER_THREAD, WARP_SIZE

# Registers for vectors, where fragments of an iteration are held besides: what is left
# are addresses, counters and masks. Attention of `bench/attention_tiles.py` with two
# register stages, ptxas 13.5: where 144 and 208 are counted, it takes 137 and 182, but
# causal, with 208, it spills 84 bytes; with 252 it takes 230, and spills 12 if causal;
# with 308 to 340 it spills 24 to 788.
VECTOR_REGISTERS = MAX_REGISTERS_PER_THREAD - 55

_CONTRACT = "vector.contract"
_WORD_BITS = 32
_LANES_OF_ROW = 4  # [PTX] mma.sync: a row of accumulators is distributed to a quad
_NEEDS_NONE = ("arith.constant", "ub.poison", "vector.step")


def is_of_warps(loop: ir.Operation) -> bool:
    """Whether the loop's vectors belong to warps: whether it contracts any."""
    return bool(walk(loop, _CONTRACT))


def live_registers(loop: ir.Operation, early: Sequence[ir.Operation] = ()) -> int:
    """The most registers that vectors take at any op of the loop's body.

    early: reads whose results are held from one iteration to the next, beside those
           that are being used
    """
    block = body(loop)
    always = {value for value in captured_by_regions(loop) if _is_vector(value)}
    always |= set(list(block.arguments)[1:])
    held = sum(map(registers, always))
    held += sum(registers(result) for read in early for result in read.results)
    last = _last_uses(block)
    live: set[Any] = set()
    most = 0
    for op in (one.operation for one in block.operations):
        live -= {value for value in live if last.get(value) == op}
        live |= {value for value in op.results if registers(value)}
        inner = max((_largest(region) for region in op.regions), default=0)
        most = max(most, inner + sum(map(registers, live)))
    return held + most


def registers(value: Any) -> int:
    """Registers of a thread for its part of a vector; 0 for other values."""
    if not _is_vector(value) or _costs_nothing(value):
        return 0
    shape = [extent for extent in value.type.shape if extent > 1]
    bits = element_bits(value.type.element_type) or 0
    if bits == 1:
        return 0
    lanes = WARP_SIZE if len(shape) > 1 else WARP_SIZE // _LANES_OF_ROW
    return -(-math.prod(shape) * bits // (lanes * _WORD_BITS))


def _largest(region: ir.Region) -> int:
    """Registers of the largest vector that an op in a region makes."""
    made = (
        registers(result)
        for block in region.blocks
        for op in block.operations
        for result in op.operation.results
    )
    return max(made, default=0)


def _is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)


def _costs_nothing(value: Any) -> bool:
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "vector.broadcast":  # lanes hold what it is made of
        return True
    return op.name in _NEEDS_NONE or op.name == "vector.shape_cast"


def _last_uses(block: ir.Block) -> dict[Any, Any]:
    """The last op of the block that uses each value, itself or in its regions."""
    last: dict[Any, Any] = {}
    for op in block.operations:
        for result in op.operation.results:
            for use in result.uses:
                user = ancestor_in(use.owner, block)
                known = last.get(result)
                if known is None or known.is_before_in_block(user):
                    last[result] = user
    return last
