"""The samples that a model is fitted to."""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.tuning.space import FloatArray


@dataclass(frozen=True, eq=False)
class Samples:
    """Measured candidates of one problem, by row; `seconds` > 0, without failures.

    predicted: seconds by the analytical model
    """

    features: FloatArray
    predicted: FloatArray
    seconds: FloatArray
