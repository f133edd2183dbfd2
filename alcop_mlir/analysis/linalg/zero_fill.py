"""What becomes of the zeros that fill tiles up where the sum ends inside of a step.

Elements beyond the end of A's rows and B's columns are zero in shared memory, so that
they add nothing. A factor that is computed of them need not be zero: 1 / x is not even
finite. Evaluates the factors at zero; changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.linalg.operand_transforms import OperandTransform
from alcop_mlir.analysis.linalg.scalar_code import expression
from alcop_mlir.reference.evaluation import evaluate
from alcop_mlir.reference.expressions import Expression, Operation, arguments, parts

# Steps along K are at most this long: a sum of whole such steps needs no fill.
LONGEST_STEP_BYTES = 256
_LARGEST = 2.0**15  # of any type; f16 ends just above
# At zero as exact in any float type as in float64; divisions and functions are not.
_EXACT = frozenset(
    """
    arith.negf arith.extf arith.truncf arith.extsi arith.trunci arith.sitofp
    arith.fptosi arith.addf arith.subf arith.mulf arith.maximumf arith.minimumf
    arith.maxnumf arith.minnumf arith.addi arith.subi arith.muli arith.maxsi
    arith.minsi arith.select math.absf math.absi math.fma
    """.split()
)


def why_fill_disturbs(body: Any, factors: Sequence[OperandTransform]) -> str | None:
    """Why the sum would change by what it gets of zeros; None if it surely does not."""
    found = [_at_zero(body, factor) for factor in factors]
    if None in found:
        return (
            "what its factors are where tiles are filled up with zero cannot be told, "
            "and the sum is not known to be whole steps"
        )
    if 0.0 in found:
        return None
    return (
        "its factors are not zero where tiles are filled up with zero, and the sum is "
        "not known to be whole steps"
    )


def _at_zero(body: Any, factor: OperandTransform) -> float | None:
    """The factor of an element that is zero; None where it is not known to be finite.

    A value that is only near zero counts as one, to be on the safe side.
    """
    found = expression(body, factor.value)
    if found is None or arguments(found) - {factor.array}:
        return None
    zeros = [0.0] * len(body.arguments)
    values = [float(evaluate(part, zeros)) for part in parts(found)]
    if not all(math.isfinite(value) and abs(value) < _LARGEST for value in values):
        return None
    return values[0] if values[0] or _is_exact(found) else 1.0


def _is_exact(found: Expression) -> bool:
    names = [part.name for part in parts(found) if isinstance(part, Operation)]
    return all(name in _EXACT or name.startswith("arith.cmp") for name in names)
