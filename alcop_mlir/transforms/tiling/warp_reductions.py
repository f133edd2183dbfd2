"""Builders of warp reductions: the values of all lanes combined."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.linalg.warp_reductions import NEUTRAL
from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE


def neutral(combine: ir.Operation) -> Any:
    """The neutral element of `combine`, which a reduction without terms has."""
    return arith.constant(combine.results[0].type, NEUTRAL[combine.name])


def combined(combine: ir.Operation, left: ir.Value, right: ir.Value) -> Any:
    """`combine` on two other values."""
    mapping = dict(zip(combine.operands, (left, right), strict=True))
    return build.clone(combine, mapping).results[0]


def over_warp(combine: Any, value: ir.Value) -> Any:
    """The `value`s of all lanes of a warp combined; the same in each lane."""
    distance = WARP_SIZE // 2
    while distance:
        value = combined(combine, value, build.shuffle(value, distance))
        distance //= 2
    return value
