"""Values for the arrays of a small model, the same wherever they are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def drawn(number: int, shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
    """Values of argument `number`: NumPy's of that dtype, bf16 not among them.

    Vectors are around one, as scales and variances are; rows of larger arrays are
    of about the length one. Integers name rows of tables.
    """
    generator = np.random.default_rng(number)
    if np.dtype(dtype).kind == "i":
        return generator.integers(0, 16, shape).astype(dtype)
    if len(shape) < 2:
        return generator.uniform(0.5, 1.5, shape).astype(dtype)
    width = math.prod(shape[1:])
    return (generator.standard_normal(shape) / math.sqrt(width)).astype(dtype)
