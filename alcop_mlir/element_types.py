"""The element types: one row per type, by MLIR's name.

Every other list of types is derived from these rows: what arrays, references and the
tuner take, what `mma.sync` multiplies, adds up in and is rounded to. The emulator has a
table of its own, as it checks what was made by this one.
"""

from __future__ import annotations

import re

from alcop_mlir.frozen import frozen

FLOAT, INTEGER, BOOLEAN = "float", "integer", "boolean"  # integers are signed
_INDEX_BYTES = 8
_BITS = re.compile(r"[a-z]+(\d+)")  # of integers of any width, as "i4"


@frozen
class ElementType:
    """The properties of one element type.

    name:        MLIR's spelling, which `ir.Type.parse` takes
    kind:        FLOAT, INTEGER (signed) or BOOLEAN
    bits:        of one element in an array or a register
    numpy:       name of the NumPy dtype of its arrays; "" where no array has it
    rounding:    the largest relative error of rounding to nearest
    largest:     the largest finite value
    ptx:         PTX's spelling
    tiny:        the largest absolute error of rounding near zero: half of the smallest
                 subnormal; the smallest normal where kernels may flush to zero
    memory:      the type that it is in memory, where that is another one
    accumulator: the type of mma.sync's accumulators; "" where it does not multiply
                 the type
    output_of:   the type of accumulators that contractions round to it; "" for none
    ml_dtype:    name of the dtype that the package ml_dtypes has for it, where NumPy
                 has none: `numpy` then holds the bits
    upper_of:    name of the NumPy dtype of whose bits its own are the upper ones
    everywhere:  whether all targets multiply it by mma.sync, if it has accumulators; on
                 others than those of `Target.multiplied` it is widened first
    """

    name: str
    kind: str
    bits: int
    numpy: str
    rounding: float
    largest: float
    ptx: str
    tiny: float = 0.0
    memory: str = ""
    accumulator: str = ""
    output_of: str = ""
    ml_dtype: str = ""
    upper_of: str = ""
    everywhere: bool = True

    @property
    def bytes(self) -> int:
        """Of one element in an array."""
        return -(-self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == FLOAT

    @property
    def stored_as(self) -> str:
        """The type that it is in memory."""
        return self.memory or self.name

    def holds(self, other: ElementType) -> bool:
        """Whether all values of the other type of floats are values of this one."""
        return (
            (self.is_float and other.is_float)
            and self.rounding <= other.rounding
            and self.largest >= other.largest
            and self.tiny <= other.tiny
        )


# Accumulators: [PTX] mma.sync. Its K in elements is `target.mma_shape` of their bytes.
_ROWS = (
    ElementType(
        name="f16",
        kind=FLOAT,
        bits=16,
        numpy="float16",
        rounding=2.0**-11,
        largest=65504.0,
        ptx="f16",
        tiny=2.0**-25,
        accumulator="f32",
        output_of="f32",
    ),
    ElementType(
        name="bf16",
        kind=FLOAT,
        bits=16,
        numpy="uint16",
        rounding=2.0**-8,
        largest=3.3895313892515355e38,
        ptx="bf16",
        tiny=2.0**-126,
        accumulator="f32",
        output_of="f32",
        ml_dtype="bfloat16",
        upper_of="float32",
    ),
    # Open Compute Project, "OCP 8-bit Floating Point Specification (OFP8)": E4M3 has no
    # infinities, and one NaN of either sign.
    ElementType(
        name="f8E4M3FN",
        kind=FLOAT,
        bits=8,
        numpy="uint8",
        rounding=2.0**-4,
        largest=448.0,
        ptx="e4m3",
        tiny=2.0**-10,
        accumulator="f32",
        output_of="f32",
        ml_dtype="float8_e4m3fn",
        everywhere=False,
    ),
    ElementType(
        name="f8E5M2",
        kind=FLOAT,
        bits=8,
        numpy="uint8",
        rounding=2.0**-3,
        largest=57344.0,
        ptx="e5m2",
        tiny=2.0**-17,
        accumulator="f32",
        output_of="f32",
        ml_dtype="float8_e5m2",
        everywhere=False,
    ),
    ElementType(
        name="tf32",
        kind=FLOAT,
        bits=32,  # 19, in a register of f32 whose last bits are zero
        numpy="",
        rounding=2.0**-11,
        largest=3.4011621342146535e38,
        ptx="tf32",
        tiny=2.0**-126,
        memory="f32",
        accumulator="f32",
    ),
    ElementType(
        name="f32",
        kind=FLOAT,
        bits=32,
        numpy="float32",
        rounding=2.0**-24,
        largest=3.4028234663852886e38,
        ptx="f32",
        tiny=2.0**-126,
        output_of="f32",
    ),
    ElementType(
        name="f64",
        kind=FLOAT,
        bits=64,
        numpy="float64",
        rounding=2.0**-53,
        largest=1.7976931348623157e308,
        ptx="f64",
    ),
    # In arrays each is a byte, of 0 or 1.
    ElementType("i1", BOOLEAN, 1, "bool", 0.0, 1.0, "pred"),
    ElementType("i8", INTEGER, 8, "int8", 0.0, 127.0, "s8", accumulator="i32"),
    ElementType("i16", INTEGER, 16, "int16", 0.0, 32767.0, "s16"),
    ElementType("i32", INTEGER, 32, "int32", 0.0, 2.0**31 - 1, "s32", output_of="i32"),
    ElementType("i64", INTEGER, 64, "int64", 0.0, 2.0**63, "s64"),
)
ELEMENT_TYPES = {row.name: row for row in _ROWS}
ROUNDING = {row.name: row.rounding for row in _ROWS}
TINY = {row.name: row.tiny for row in _ROWS}

# What callers' arrays may have; what SIMT fallbacks compute floats in.
ARRAY_TYPES = tuple(row.name for row in _ROWS if row.numpy)
ARRAY_FLOATS = tuple(row.name for row in _ROWS if row.numpy and row.is_float)
# What references compute in.
REFERENCE_FLOATS = tuple(row.name for row in _ROWS if row.is_float)
REFERENCE_INTEGERS = tuple(row.name for row in _ROWS if not row.is_float)
# The accumulators' type for each type that mma.sync multiplies.
ACCUMULATORS = {row.name: row.accumulator for row in _ROWS if row.accumulator}
# Floats of eight bits: several of these may be multiplied by each other.
EIGHT_BIT_FLOATS = tuple(row.name for row in _ROWS if row.is_float and row.bits == 8)
# What inputs are rounded to, on request, for each type that mma.sync does not take.
ROUNDED_INPUTS = {row.memory: row.name for row in _ROWS if row.memory}
# Types of the output, for each type that inputs of a contraction have in memory.
OUTPUT_TYPES = {
    ELEMENT_TYPES[multiplied].stored_as: tuple(
        row.name for row in _ROWS if row.output_of == accumulator
    )
    for multiplied, accumulator in ACCUMULATORS.items()
}
# What contractions are computed in: accumulators, and what is rounded from these.
CONTRACTION_TYPES = tuple(row.name for row in _ROWS if row.output_of)
# What operands of a contraction may have in memory, if they are computed from it.
STORED_TYPES = tuple(
    row.name
    for row in _ROWS
    if row.name in OUTPUT_TYPES or row.name in ACCUMULATORS.values()
)


def widened(name: str) -> str:
    """The type in which every target multiplies elements of `name` by mma.sync: itself,
    or the narrowest float that holds them.
    """
    row = ELEMENT_TYPES[name]
    if row.everywhere:
        return name
    fitting = [one for one in _ROWS if one.accumulator and one.everywhere]
    return min(
        (one for one in fitting if one.holds(row)), key=lambda one: one.bits
    ).name


def element_bytes(dtype: str) -> int:
    """Bytes of one element, by MLIR's name of its type, such as "bf16" or "index"."""
    row = ELEMENT_TYPES.get(dtype)
    if row is not None:
        return row.bytes
    if dtype == "index":
        return _INDEX_BYTES
    found = _BITS.match(dtype)
    assert found, dtype
    return -(-int(found[1]) // 8)
