"""cvt between integers and floats of every width, and of two floats into one word."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from exact_floats import (
    BF16,
    F16,
    F32,
    F64,
    TF32,
    Format,
    decode,
    encode,
    finish,
    flush,
    relu_unclear,
    round_integer,
    tininess_unclear,
)
from hypothesis import given
from kernel_text import REGISTER_BYTES, run_lanes
from operand_values import (
    FIXED,
    FORMATS,
    array,
    bits_of,
    check_lanes,
    edges,
    operands,
    read,
    seeds,
    wrap,
)

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = ["f16", "f32", "f64"]
INTEGER_MODES = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def register(kind: str) -> str:
    if kind in ("f32", "f64"):
        return kind
    return f"b{max(16, bits_of(kind))}"


def width(kind: str) -> int:
    return 8 * REGISTER_BYTES[register(kind)]


def check(
    text: str,
    source: str,
    result: str,
    model: Callable[[int], int | None],
    seed: int,
    *,
    target: str = "sm_80",
    nan: Format | None = None,
) -> None:
    """Run `text` from %a (a `source`) to %d (a register of `result`)."""
    # A byte sits in a wider register whose upper bits must not matter.
    drawn = f"u{width(source)}" if bits_of(source) == 8 else source
    (column,) = operands(seed, drawn)
    inputs = {"a": (register(source), array(column, width(source)))}
    got = run_lanes(text, inputs, {"d": register(result)}, target=target)["d"]
    mask = (1 << width(result)) - 1
    wanted = [None if value is None else value & mask for value in map(model, column)]
    check_lanes(got, wanted, [column], nan=nan)


def clamp(value: int, kind: str) -> int:
    bits = bits_of(kind)
    low = -(1 << (bits - 1)) if kind[0] == "s" else 0
    return min(max(value, low), low + (1 << bits) - 1)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", INTEGERS)
@FIXED
@given(seed=seeds)
def test_integer_to_integer(result: str, source: str, seed: int) -> None:
    """Truncate or extend; a narrow result is extended to its register by its sign."""
    check(
        f"cvt.{result}.{source} %d, %a;",
        source,
        result,
        lambda a: read(read(a, source), result),
        seed,
    )
    if any(clamp(read(a, source), result) != read(a, source) for a in edges(source)):
        # .sat is legal only where the result cannot hold every source value
        check(
            f"cvt.sat.{result}.{source} %d, %a;",
            source,
            result,
            lambda a: clamp(read(a, source), result),
            seed,
        )


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", FLOATS)
@FIXED
@given(seed=seeds)
def test_integer_to_float(result: str, source: str, seed: int) -> None:
    fmt = FORMATS[result]
    for mode in ("rn", "rz", "rm", "rp"):
        check(
            f"cvt.{mode}.{result}.{source} %d, %a;",
            source,
            result,
            lambda a, mode=mode: encode(fmt, Fraction(read(a, source)), mode),
            seed,
        )


def float_to_integer(value: float, mode: str, source: str, result: str) -> int:
    """Clamped to the result's range, by the PTX ISA also without .sat."""
    if math.isnan(value):
        if source != "f64" and bits_of(result) != 64:
            return 0
        return 1 << (bits_of(result) - 1)
    if math.isinf(value):
        return clamp(int(math.copysign(1 << 70, value)), result)
    return clamp(round_integer(Fraction(value), mode), result)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("result", INTEGERS)
@FIXED
@given(seed=seeds)
def test_float_to_integer(result: str, source: str, seed: int) -> None:
    fmt = FORMATS[source]

    def model(mode: str) -> Callable[[int], int | None]:
        def convert(a: int) -> int | None:
            value = decode(fmt, a)
            if math.isnan(value) and bits_of(result) < 32:
                return None  # stated for 32 and 64 bits only
            return float_to_integer(value, mode, source, result)

        return convert

    for spelled, mode in INTEGER_MODES.items():
        check(
            f"cvt.{spelled}.{result}.{source} %d, %a;",
            source,
            result,
            model(mode),
            seed,
        )


@FIXED
@given(seed=seeds)
def test_float_to_integer_ftz_and_sat(seed: int) -> None:
    def model(a: int) -> int:
        value = flush(F32, decode(F32, a))
        return float_to_integer(value, "rp", "f32", "s32")

    check("cvt.rpi.ftz.s32.f32 %d, %a;", "f32", "s32", model, seed)
    check("cvt.rpi.ftz.sat.s32.f32 %d, %a;", "f32", "s32", model, seed)


NARROWING = [("f32", "f16"), ("f64", "f32"), ("f64", "f16")]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(("source", "result"), NARROWING)
@FIXED
@given(seed=seeds)
def test_narrowing(source: str, result: str, mode: str, seed: int) -> None:
    fmt = FORMATS[result]
    check(
        f"cvt.{mode}.{result}.{source} %d, %a;",
        source,
        result,
        lambda a: encode(fmt, decode(FORMATS[source], a), mode),
        seed,
        nan=fmt,
    )
    check(
        f"cvt.{mode}.sat.{result}.{source} %d, %a;",
        source,
        result,
        lambda a: finish(fmt, decode(FORMATS[source], a), mode, saturate=True),
        seed,
        nan=fmt,
    )


@FIXED
@given(seed=seeds)
def test_narrowing_ftz(seed: int) -> None:
    """.ftz concerns the f32 side only: f16 subnormals stay."""
    check(
        "cvt.rn.ftz.f16.f32 %d, %a;",
        "f32",
        "f16",
        lambda a: encode(F16, flush(F32, decode(F32, a))),
        seed,
        nan=F16,
    )

    def to_single(a: int) -> int | None:
        value = decode(F64, a)
        exact = Fraction(value) if math.isfinite(value) and value else value
        if tininess_unclear(F32, exact, "rn"):
            return None
        return finish(F32, exact, "rn", ftz=True)

    check("cvt.rn.ftz.f32.f64 %d, %a;", "f64", "f32", to_single, seed, nan=F32)


@pytest.mark.parametrize(
    ("source", "result"), [("f16", "f32"), ("f32", "f64"), ("f16", "f64")]
)
@FIXED
@given(seed=seeds)
def test_widening(source: str, result: str, seed: int) -> None:
    fmt = FORMATS[result]
    check(
        f"cvt.{result}.{source} %d, %a;",
        source,
        result,
        lambda a: encode(fmt, decode(FORMATS[source], a)),
        seed,
        nan=fmt,
    )


@FIXED
@given(seed=seeds)
def test_widening_ftz_and_sat(seed: int) -> None:
    check(
        "cvt.sat.f32.f16 %d, %a;",
        "f16",
        "f32",
        lambda a: finish(F32, decode(F16, a), "rn", saturate=True),
        seed,
        nan=F32,
    )
    check(
        "cvt.ftz.f64.f32 %d, %a;",
        "f32",
        "f64",
        lambda a: encode(F64, flush(F32, decode(F32, a))),
        seed,
        nan=F64,
    )


@pytest.mark.parametrize("kind", FLOATS)
@FIXED
@given(seed=seeds)
def test_round_to_a_whole_float(kind: str, seed: int) -> None:
    fmt = FORMATS[kind]

    def model(mode: str) -> Callable[[int], int]:
        def convert(a: int) -> int:
            value = decode(fmt, a)
            if not math.isfinite(value) or value == 0:
                return encode(fmt, value)
            whole = round_integer(Fraction(value), mode)
            return encode(fmt, Fraction(whole) if whole else math.copysign(0.0, value))

        return convert

    for spelled, mode in INTEGER_MODES.items():
        check(
            f"cvt.{spelled}.{kind}.{kind} %d, %a;",
            kind,
            kind,
            model(mode),
            seed,
            nan=fmt,
        )


@FIXED
@given(seed=seeds)
def test_same_type(seed: int) -> None:
    check(
        "cvt.ftz.f32.f32 %d, %a;",
        "f32",
        "f32",
        lambda a: encode(F32, flush(F32, decode(F32, a))),
        seed,
        nan=F32,
    )
    check(
        "cvt.sat.f32.f32 %d, %a;",
        "f32",
        "f32",
        lambda a: finish(F32, decode(F32, a), "rn", saturate=True),
        seed,
        nan=F32,
    )


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("result", ["f16", "bf16"])
@FIXED
@given(seed=seeds)
def test_f32_to_half_types(result: str, mode: str, relu: str, seed: int) -> None:
    fmt = FORMATS[result]

    def one(a: int) -> int | None:
        value = decode(F32, a)
        if relu and relu_unclear(fmt, value, mode):
            return None
        return finish(fmt, value, mode, relu=bool(relu))

    check(f"cvt.{mode}{relu}.{result}.f32 %d, %a;", "f32", result, one, seed, nan=fmt)

    # two at once: the first source goes to the upper half
    columns = operands(seed, "f32", "f32")
    inputs = {n: ("f32", array(c, 32)) for n, c in zip("ab", columns, strict=True)}
    text = f"cvt.{mode}{relu}.{result}x2.f32 %d, %a, %b;"
    packed = run_lanes(text, inputs, {"d": "b32"})["d"]
    for shift, column in ((16, columns[0]), (0, columns[1])):
        half = (packed >> np.uint32(shift) & np.uint32(0xFFFF)).astype(np.uint16)
        wanted: list[int | None] = [one(a) for a in column]
        check_lanes(half, wanted, columns, nan=fmt)


@FIXED
@given(seed=seeds)
def test_bf16_to_f32(seed: int) -> None:
    check(
        "cvt.f32.bf16 %d, %a;",
        "bf16",
        "f32",
        lambda a: encode(F32, decode(BF16, a)),
        seed,
        target="sm_90",
        nan=F32,
    )


def to_tf32(mode: str, relu: bool = False) -> Callable[[int], int | None]:
    def convert(a: int) -> int | None:
        value = decode(F32, a)
        if math.isnan(value) or (relu and relu_unclear(TF32, value, mode)):
            return None
        return finish(TF32, value, mode, relu=relu) << 13

    return convert


@FIXED
@given(seed=seeds)
def test_tf32(seed: int) -> None:
    """The lower 13 bits of the register are checked too: they come out as zero."""
    check("cvt.rna.tf32.f32 %d, %a;", "f32", "b32", to_tf32("rna"), seed)


@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("relu", ["", ".relu"])
@FIXED
@given(seed=seeds)
def test_tf32_sm90(mode: str, relu: str, seed: int) -> None:
    check(
        f"cvt.{mode}{relu}.tf32.f32 %d, %a;",
        "f32",
        "b32",
        to_tf32(mode, bool(relu)),
        seed,
        target="sm_90",
    )


def test_tf32_keeps_nan() -> None:
    inputs = {"a": ("f32", np.full(32, np.nan, np.float32))}
    got = run_lanes("cvt.rna.tf32.f32 %d, %a;", inputs, {"d": "b32"}, block=32)["d"]
    assert np.isnan(got.view(np.float32)).all()


def test_narrow_register_of_a_wide_one() -> None:
    """cvt reads the low part of a wider source register."""
    values = np.array([0x1_0000_0080, 0xFFFF_FFFF_0000_FF7F] * 16, np.uint64)
    text = "cvt.s32.s8 %d, %a; cvt.u32.u16 %e, %a; cvt.s64.s8 %f, %a;"
    outputs = {"d": "b32", "e": "b32", "f": "b64"}
    got = run_lanes(text, {"a": ("b64", values)}, outputs, block=32)
    assert got["d"][:2].tolist() == [wrap(-128, 32), 127]
    assert got["e"][:2].tolist() == [0x80, 0xFF7F]
    assert got["f"][:2].tolist() == [wrap(-128, 64), 127]
