"""Operand transforms of the zeros that fill tiles up where K ends inside of a K step.

Elements beyond the end of A's rows and B's columns are zero in shared memory, so that
they add nothing. An operand transform of zero need not be zero: 1 / x is not even
finite. Evaluates the transforms at zero; changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from alcop_mlir.analysis.linalg.operand_transforms import OperandTransform
from alcop_mlir.analysis.linalg.scalar_code import expression
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ARRAY_FLOATS, ELEMENT_TYPES
from alcop_mlir.reference.evaluation import evaluate
from alcop_mlir.reference.expressions import Expression, Operation, arguments, parts

# The longest K step: if K is a multiple of it, tiles are not filled up.
LONGEST_STEP_BYTES = 256
# Finite in any type, as a power of two: 2^15, as the largest f16 is just above.
_LARGEST = 2.0 ** math.floor(
    math.log2(min(ELEMENT_TYPES[name].largest for name in ARRAY_FLOATS))
)
# Ops that are exact at zero in any float type; divisions and functions are not.
_EXACT = frozenset(
    """
    arith.negf arith.extf arith.truncf arith.extsi arith.trunci arith.sitofp
    arith.fptosi arith.addf arith.subf arith.mulf arith.maximumf arith.minimumf
    arith.maxnumf arith.minnumf arith.addi arith.subi arith.muli arith.maxsi
    arith.minsi arith.select math.absf math.absi math.fma
    """.split()
)


def why_fill_disturbs(
    body: ir.Block, transforms: Sequence[OperandTransform]
) -> str | None:
    """Why terms of zeros that fill tiles up may not be zero; None if they are."""
    found = [_at_zero(body, transform) for transform in transforms]
    if None not in found and 0.0 in found:
        return None
    what = "have no known finite value" if None in found else "are not zero"
    return (
        f"tiles are filled up with zeros, for which its operand transforms {what}, and "
        "K is not known to be a multiple of the K step"
    )


def _at_zero(body: ir.Block, transform: OperandTransform) -> float | None:
    """The transform of an element that is zero; None if it may not be finite.

    A value that is not exact counts as 1, not as zero.
    """
    found = expression(body, transform.value)
    if found is None or arguments(found) - {transform.operand}:
        return None
    zeros = [0.0] * len(body.arguments)
    values = [float(evaluate(part, zeros)) for part in parts(found)]
    if not all(math.isfinite(value) and abs(value) < _LARGEST for value in values):
        return None
    return values[0] if values[0] or _is_exact(found) else 1.0


def _is_exact(found: Expression) -> bool:
    names = [part.name for part in parts(found) if isinstance(part, Operation)]
    return all(name in _EXACT or name.startswith("arith.cmp") for name in names)
