"""Tensor maps of a host function, as a manifest has them."""

from __future__ import annotations

import re

from alcop_mlir.analysis.host.host_values import HostValues
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import constant, made_by, without
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.manifest.kernels import TensorMap
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.polynomials import constant as number

_CREATE = "nvgpu.tma.create.descriptor"
_CAST = "builtin.unrealized_conversion_cast"
_SWIZZLE = re.compile(r"swizzle = (?:none|swizzle_(\d+)b)")
_PROMOTION = re.compile(r"l2promo = (?:none|l2promo_(\d+)b)")
_FILL = re.compile(r"oob = (zero|nan)")
_FILLS = {"zero": "zeros", "nan": "nan"}


def tensor_map(value: ir.Value, values: HostValues) -> TensorMap | None:
    """The tensor map that a kernel's operand is; None where it is none that is known.

    Of upstream's `nvgpu.tma.create.descriptor`: its box and sizes are in the order of
    the memref, those of the manifest from the innermost on. Its elements are those of
    the memref, or what these are rounded to on the way, see `alcop.rounded`.
    """
    op = made_by(without(value, _CAST), _CREATE)
    if op is None:
        return None
    array = without(op.operands[0], "memref.cast")
    kind = array.type
    pointer = values.argument(array)
    box = [constant(extent) for extent in list(op.operands)[1:]]
    shape = [values.dimension(array, n) for n in range(kind.rank)]
    strides = _strides(array, shape, values)
    if pointer is None or None in box or None in shape or strides is None:
        return None
    text = str(op.results[0].type)
    return TensorMap(
        array=pointer.array,  # type: ignore[union-attr]
        dtype=alcop.rounded(op) or str(kind.element_type),
        shape=tuple(reversed([one for one in shape if one is not None])),
        strides=tuple(reversed(strides[:-1])),
        box=tuple(reversed([one for one in box if one is not None])),
        element_strides=(1,) * kind.rank,
        swizzle=_bytes(_SWIZZLE, text),  # type: ignore[arg-type]
        l2_promotion=_bytes(_PROMOTION, text),  # type: ignore[arg-type]
        fill=_FILLS[_of(_FILL, text)],  # type: ignore[arg-type]
    )


def _strides(
    array: ir.Value, shape: list[Polynomial | None], values: HostValues
) -> list[Polynomial] | None:
    """In bytes; None where one is not known."""
    kind, size = array.type, element_bytes(array.type)
    found: list[Polynomial] = []
    for dimension in range(kind.rank):
        stride = values.stride_of(array, dimension, shape, follows_shape(kind))
        if stride is None:
            return None
        found.append(stride * number(size))
    return found


def _bytes(pattern: re.Pattern[str], text: str) -> int:
    return int(_of(pattern, text) or 0)


def _of(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return "" if found is None or found[1] is None else found[1]
