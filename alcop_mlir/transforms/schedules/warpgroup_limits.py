"""Which contractions wgmma multiplies, of tiles that TMA copies: `unfit`."""

from __future__ import annotations

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.layout.tensor_boxes import beyond_limits
from alcop_mlir.analysis.linalg.contractions import Contraction, as_in_memory
from alcop_mlir.element_types import EIGHT_BIT_FLOATS, ROUNDED_INPUTS
from alcop_mlir.target import CP_ASYNC_BYTES, TENSOR_MAP_RANK

STEP_BYTES = 128  # of a row along K: the widest swizzle
LEAST_STEPS = 3  # of K: fewer fill no ring
_ACROSS_K = ("f16", "bf16")  # that wgmma transposes: PTX ISA, wgmma.mma_async


def unfit(contraction: Contraction) -> str:
    """Why TMA does not copy its tiles, or wgmma does not multiply them as they are; ""
    where both do.
    """
    contraction = as_in_memory(contraction)
    return unfit_types(contraction) or _unfit_arrays(contraction)


def unfit_types(contraction: Contraction) -> str:
    """Why wgmma does not multiply its operands as they are; "" where it does."""
    given = contraction.lhs_type, contraction.rhs_type
    kinds = {ROUNDED_INPUTS.get(one, one) for one in given}
    if contraction.taps is not None:
        return "A or B consists of windows, whose rows no tensor map has"
    if contraction.packed or contraction.is_computed:
        return "A or B is computed of what memory holds"
    if len(kinds) > 1 and not kinds <= {*EIGHT_BIT_FLOATS}:
        return f"A and B are of two types, {' and '.join(sorted(kinds))}"
    across = [
        name
        for name, loops in (("A", contraction.lhs), ("B", contraction.rhs))
        if loops[-1] != "k"
    ]
    if across and not kinds <= {*_ACROSS_K}:
        return (
            f"{' and '.join(across)} of {' and '.join(sorted(kinds))} "
            f"{'is' if len(across) == 1 else 'are'} stored across K, expected along K, "
            f"or {' or '.join(_ACROSS_K)}"
        )
    return ""


def _beyond_limits(contraction: Contraction) -> str | None:
    """Which limit of tensor maps A or B exceeds; of sizes without an op, none."""
    if contraction.op is None:
        return None
    kinds = [operand.type for operand in list(contraction.op.operands)[:2]]
    beyond = (beyond_limits(one, element_bytes(one)) for one in kinds)
    return next(filter(None, beyond), None)


def _unfit_arrays(contraction: Contraction) -> str:
    widest = max(CP_ASYNC_BYTES)
    rank = 2 + len(contraction.batches)
    if contraction.has_variants or contraction.has_narrow_copies:
        return (
            "rows of A or B have lengths or distances that are known at run time only, "
            "and are not known to begin at multiples of 16 bytes"
        )
    for name, divisor in zip("AB", contraction.row_bytes, strict=True):
        if divisor != widest:
            return (
                f"rows of {name} are known to begin at multiples of {divisor} bytes, "
                f"expected {widest}"
            )
    if rank > TENSOR_MAP_RANK:
        return f"it has {rank} dimensions, a tensor map has at most {TENSOR_MAP_RANK}"
    if (why := _beyond_limits(contraction)) is not None:
        return why
    if "m" not in contraction.lhs:
        return "A is a vector"
    if any(letter not in contraction.out_loops for letter, _ in contraction.batches):
        return "C is reduced over a batch"
    least = LEAST_STEPS * STEP_BYTES // contraction.element_bytes
    if contraction.k is not None and contraction.k < least:
        return f"K is {contraction.k}, expected {least} at least to fill a ring"
    return ""
