"""What a learned model is fitted to: features of candidates, and samples of times.

The features of a candidate are its parameters, the problem, and its prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir.tuning.analytical import PARTS, Prediction
from alcop_mlir.tuning.candidates import AXES, Candidates, FloatArray
from alcop_mlir.tuning.problem import Problem

_PARAMETERS = (*AXES, "threads", "m", "n", "k", "batch", "element bytes", "out bytes")
_QUANTITIES = (
    "resident blocks",
    "resident warps",
    "waves",
    "wave occupancy",
    "steps",
    "missing",
    "flops per byte",
    "registers per thread",
    "shared bytes",
    "of peak",
)
# Columns of `features`, in order; times are in seconds, shares of the predicted time.
NAMES = (
    *_PARAMETERS,
    *_QUANTITIES,
    *(f"{part}, share" for part in PARTS),
    "predicted seconds",
)
# How many of them do not come from the analytical model.
RAW = len(_PARAMETERS)


@dataclass(frozen=True, eq=False)
class Samples:
    """Measured candidates of one problem, by row; `seconds` > 0, without failures.

    predicted: seconds by the analytical model
    """

    features: FloatArray
    predicted: FloatArray
    seconds: FloatArray


def features(
    problem: Problem, candidates: Candidates, prediction: Prediction
) -> FloatArray:
    """One row per candidate, one column per name in `NAMES`."""
    count = len(candidates)
    sizes = (*problem.sizes, problem.element_bytes, problem.out_bytes)
    columns = [
        *(candidates.axis(name) for name in AXES),
        candidates.costs[:, 0].astype(np.float64),
        *(np.full(count, float(size)) for size in sizes),
        *(prediction.quantities[name] for name in _QUANTITIES),
        *(prediction.parts[name] / prediction.seconds for name in PARTS),
        np.log2(prediction.seconds),
    ]
    return np.stack(columns, axis=1)
