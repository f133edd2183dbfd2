"""The element types: one row per type, by MLIR's name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ElementType:
    """The properties of one element type.

    numpy:    name of the NumPy dtype of its arrays; "" where no array has it
    rounding: the largest relative error of rounding to nearest
    largest:  the largest finite value
    """

    name: str
    numpy: str
    rounding: float
    largest: float


_ROWS = (
    ElementType("f16", "float16", 2.0**-11, 65504.0),
    # The bits: NumPy has no such type.
    ElementType("bf16", "uint16", 2.0**-8, 3.3895313892515355e38),
    ElementType("tf32", "", 2.0**-11, 3.4011621342146535e38),
    ElementType("f32", "float32", 2.0**-24, 3.4028234663852886e38),
    ElementType("f64", "float64", 2.0**-53, 1.7976931348623157e308),
    ElementType("i1", "", 0.0, 1.0),
    ElementType("i8", "int8", 0.0, 127.0),
    ElementType("i16", "int16", 0.0, 32767.0),
    ElementType("i32", "int32", 0.0, 2.0**31 - 1),
    ElementType("i64", "int64", 0.0, 2.0**63),
)
ELEMENT_TYPES = {row.name: row for row in _ROWS}
ROUNDING = {row.name: row.rounding for row in _ROWS}
