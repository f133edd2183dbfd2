"""How large the random elements of inputs are, so that a model's values stay near 1.

Uniform in [-1, 1], the weights of one layer after the other would make what they
multiply larger by the root of the number of terms, and a softmax of the result would be
decided by roundings. As frameworks initialise weights, they are smaller by that root.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from alcop_mlir.reference.expressions import Argument, without_casts
from alcop_mlir.reference.steps import Einsum, Map, Reshape, Step, operand_maps

_CASTS = ("arith.extf", "arith.truncf")


def input_scales(
    steps: Iterable[Step],
    shapes: Mapping[str, tuple[int, ...]],
    inputs: Collection[str],
) -> dict[str, float]:
    """The largest element of each input that is weights; of others it is 1.

    Weights multiply what is computed, or an input with more dimensions.
    shapes: of all arrays, with those that steps make
    """
    origins = {name: name for name in inputs}
    scales: dict[str, float] = {}
    for step in steps:
        match step:
            case Einsum():
                pair = origins.get(step.lhs), origins.get(step.rhs)
                for own, other in (pair, pair[::-1]):
                    if own is None or own == other:
                        continue
                    if other is None or len(shapes[own]) < len(shapes[other]):
                        least = 1 / math.sqrt(max(1, _terms(step, shapes)))
                        scales[own] = min(scales.get(own, 1.0), least)
            case Reshape(source=source) if source in origins:
                origins[step.out] = origins[source]
            case Map(inputs=(source,), expression=expression) if source in origins:
                if without_casts(expression, _CASTS) == Argument(0):
                    origins[step.out] = origins[source]
            case _:
                origins.pop(step.out, None)
    return scales


def _terms(step: Einsum, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many are added up."""
    (own, _), out = operand_maps(step)
    sizes = zip(own, shapes[step.lhs], strict=True)
    return math.prod(size for loop, size in sizes if loop not in out)
