"""Contractions as the tuner's problems, as far as its models cover them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from alcop_mlir.analysis.linalg.contraction_letters import (
    BATCHES,
    loop_name,
    matrix_loops,
)
from alcop_mlir.analysis.linalg.contractions import Contraction, as_in_memory
from alcop_mlir.errors import PassError
from alcop_mlir.target import Target
from alcop_mlir.transforms.schedules.warpgroup_limits import unfit

if TYPE_CHECKING:
    from alcop_mlir.tuning.open_problem import OpenProblem, Range
    from alcop_mlir.tuning.problem import Problem


def problem_of(contraction: Contraction, target: Target) -> Problem | None:
    """What the tuner chooses a schedule for; None where no model knows one.

    On a target with wgmma of types as memory holds them, where that multiplies these.
    """
    if not target.has_wgmma or unfit(contraction):
        problem = plain_problem_of(contraction)
        return problem and replace(problem, has_roles=not target.has_wgmma)
    return plain_problem_of(as_in_memory(contraction))


def plain_problem_of(contraction: Contraction) -> Problem | None:
    """The tuner's description of a contraction; None where it is `unmodelled`."""
    from alcop_mlir.tuning.problem import Problem

    sizes = contraction.m, contraction.n, contraction.k, contraction.batch
    if unmodelled(contraction) or None in sizes:
        return None
    m, n, k, batch = (size or 1 for size in sizes)
    problem = Problem(
        m,
        n,
        k,
        batch=batch if contraction.is_batched else 1,
        op=_operator(contraction),
        dtypes=_dtypes(contraction),
        layout=_layout(contraction),
        taps=contraction.taps,
        places=contraction.places,
    )
    if contraction.row_bytes == problem.dense_row_bytes:
        return problem
    return replace(problem, row_bytes=contraction.row_bytes)


def open_problem_of(contraction: Contraction) -> OpenProblem | None:
    """That of one with open sizes or strides; None for others, and unmodelled."""
    from alcop_mlir.tuning.open_problem import OpenProblem

    if not contraction.has_variants or _unmodelled_types(contraction):
        return None
    if 0 in _sizes(contraction).values():
        return None
    # Those of rows that begin anywhere might as well have any strides.
    unknown = {*contraction.open_strides, *contraction.open_beginnings}
    return OpenProblem(
        m=_range(contraction, "m", contraction.m),
        n=_range(contraction, "n", contraction.n),
        k=_range(contraction, "k", contraction.k),
        batch=_batch_range(contraction),
        op=_operator(contraction),
        dtypes=_dtypes(contraction),
        layout=_layout(contraction),
        row_bytes=contraction.row_bytes,
        open_strides="".join(one for one in "ABC" if one in unknown),
        taps=contraction.taps,
    )


def unmodelled(contraction: Contraction) -> str:
    """Why no model knows a schedule of the contraction; "" where they do."""
    sizes = {"M": contraction.m, "N": contraction.n, "K": contraction.k}
    if contraction.is_batched:
        sizes["the batch"] = contraction.batch
    for name, size in sizes.items():
        if size is None:
            return f"{name} is known at run time only"
        if size == 0:
            return f"{name} is 0"
    if contraction.taps is not None and contraction.has_narrow_copies:
        return "the channels of pixels are not aligned to 16 bytes"
    return _unmodelled_types(contraction)


def _unmodelled_types(contraction: Contraction) -> str:
    if set(contraction.stored or ()) - {contraction.element_bytes}:
        return f"memory holds other types than the {contraction.lhs_type} multiplied"
    return ""


def check_ranges(contraction: Contraction) -> None:
    """PassError where operands expect different sizes, or others than known ones."""
    sizes = _sizes(contraction)
    for loop, (low, high) in contraction.size_ranges:
        name, size = loop_name(loop), sizes[loop]
        expected = f"{low} at least, {high} at most"
        if low > high:
            why = f"no size of {name} is in all its ranges: {expected}"
            raise PassError(contraction.op, why)
        if size is not None and not low <= size <= high:
            why = f"the size of {name} is {size}, and in no range: {expected}"
            raise PassError(contraction.op, why)


def _sizes(contraction: Contraction) -> dict[str, int | None]:
    """By loop."""
    matrix = {"m": contraction.m, "n": contraction.n, "k": contraction.k}
    return {**dict(contraction.batches), **matrix}


def _range(contraction: Contraction, loop: str, size: int | None) -> Range:
    from alcop_mlir.tuning.open_problem import LARGEST, LARGEST_BATCH

    if size is not None:
        return size, size
    largest = LARGEST_BATCH if loop in BATCHES else LARGEST
    return dict(contraction.size_ranges).get(loop, (1, largest))


def _batch_range(contraction: Contraction) -> Range:
    """Of the number of matrices; of several batch loops LARGEST_BATCH at most."""
    from alcop_mlir.tuning.open_problem import LARGEST_BATCH

    ranges = [_range(contraction, loop, size) for loop, size in contraction.batches]
    low, high = (math.prod(ends) for ends in zip((1, 1), *ranges, strict=True))
    return (low, high) if len(ranges) < 2 else (low, max(low, min(high, LARGEST_BATCH)))


def _operator(contraction: Contraction) -> str:
    return "batch_matmul" if contraction.is_batched else "matmul"


def _dtypes(contraction: Contraction) -> tuple[str, str, str, str]:
    from alcop_mlir.tuning.problem import dtypes

    inputs = contraction.lhs_type, contraction.rhs_type
    return dtypes(inputs, contraction.out_type, contraction.precision)


def _layout(contraction: Contraction) -> str:
    """The loops of A and B, where several batch loops are one, the outermost."""
    operands = contraction.lhs, contraction.rhs
    if len(contraction.batches) > 1:
        matrices = [matrix_loops(loops) for loops in operands]
        operands = [
            own if own == loops else f"b{own}"
            for own, loops in zip(matrices, operands, strict=True)
        ]
    return ",".join(operands)
