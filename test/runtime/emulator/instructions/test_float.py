"""Floating-point arithmetic: exact rationals rounded once are the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from exact_floats import (
    BINARY,
    F16,
    F32,
    F64,
    Format,
    decode,
    encode,
    encode_sqrt,
    finish,
    flush,
    fused,
    is_nan_bits,
    relu_unclear,
    tininess_unclear,
)
from float_lanes import KINDS, Kind, run
from hypothesis import given
from kernel_text import run_lanes
from operand_values import FIXED, array, check_lanes, operands, seeds, sources

ExactModel = Callable[[Sequence[float], str], float | Fraction]


def check_rounded(
    opcode: str,
    kind: Kind,
    arity: int,
    exact: ExactModel,
    seed: int,
    *,
    target: str = "sm_80",
    version: str = "7.8",
) -> None:
    """Check `opcode` (with its modifiers) against one rounding of the exact result."""
    parts = opcode.split(".")
    mode = next((part for part in parts if part in ("rn", "rz", "rm", "rp")), "rn")
    ftz, saturate, relu = "ftz" in parts, "sat" in parts, "relu" in parts
    columns = operands(seed, *[kind.name] * arity)
    got = run(f"{opcode} %d, {sources(arity)};", kind, columns, target, version)
    wanted: list[int | None] = []
    for lane in zip(*columns, strict=True):
        values = [decode(kind.fmt, bits) for bits in lane]
        if ftz:
            values = [flush(kind.fmt, value) for value in values]
        result = exact(values, mode)
        if (ftz and tininess_unclear(kind.fmt, result, mode)) or (
            relu and relu_unclear(kind.fmt, result, mode)
        ):
            wanted.append(None)
        else:
            wanted.append(
                finish(kind.fmt, result, mode, ftz=ftz, saturate=saturate, relu=relu)
            )
    check_lanes(got, wanted, columns, nan=kind.fmt)


def exact_binary(name: str) -> ExactModel:
    return lambda values, mode: BINARY[name](values[0], values[1], mode)


def exact_fma(values: Sequence[float], mode: str) -> float | Fraction:
    a, b, c = values
    return fused(a, b, c, mode)


MODES = ["rn", "rz", "rm", "rp"]
SUFFIXES = ["", ".ftz", ".sat", ".ftz.sat"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
@FIXED
@given(seed=seeds)
def test_f32(name: str, mode: str, suffix: str, seed: int) -> None:
    exact, arity = (exact_fma, 3) if name == "fma" else (exact_binary(name), 2)
    check_rounded(f"{name}.{mode}{suffix}.f32", KINDS["f32"], arity, exact, seed)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@FIXED
@given(seed=seeds)
def test_f32_without_a_mode_rounds_to_nearest(name: str, seed: int) -> None:
    check_rounded(f"{name}.f32", KINDS["f32"], 2, exact_binary(name), seed)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma", "div"])
@FIXED
@given(seed=seeds)
def test_f64(name: str, mode: str, seed: int) -> None:
    exact, arity = (exact_fma, 3) if name == "fma" else (exact_binary(name), 2)
    check_rounded(f"{name}.{mode}.f64", KINDS["f64"], arity, exact, seed)


@pytest.mark.parametrize("suffix", ["", ".ftz"])
@pytest.mark.parametrize("mode", MODES)
@FIXED
@given(seed=seeds)
def test_f32_div_rcp_sqrt(mode: str, suffix: str, seed: int) -> None:
    kind = KINDS["f32"]
    div = exact_binary("div")
    check_rounded(f"div.{mode}{suffix}.f32", kind, 2, div, seed)
    check_rounded(
        f"rcp.{mode}{suffix}.f32",
        kind,
        1,
        lambda values, mode: div([1.0, values[0]], mode),
        seed,
    )
    (column,) = operands(seed, "f32")
    got = run(f"sqrt.{mode}{suffix}.f32 %d, %a;", kind, [column], "sm_80", "7.8")
    values = [decode(F32, bits) for bits in column]
    values = [flush(F32, value) if suffix else value for value in values]
    wanted: list[int | None] = [encode_sqrt(F32, value, mode) for value in values]
    check_lanes(got, wanted, [column], nan=F32)


HALF_OPCODES = [
    *(
        f"{name}{rest}.f16"
        for name in ("add", "sub", "mul")
        for rest in ("", ".rn", ".ftz", ".rn.ftz.sat", ".sat")
    ),
    *(
        f"fma.rn{rest}.f16"
        for rest in ("", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu")
    ),
]


def half_model(opcode: str) -> tuple[int, ExactModel]:
    name = opcode.split(".")[0]
    return (3, exact_fma) if name == "fma" else (2, exact_binary(name))


@pytest.mark.parametrize("opcode", HALF_OPCODES)
@FIXED
@given(seed=seeds)
def test_f16(opcode: str, seed: int) -> None:
    arity, exact = half_model(opcode)
    check_rounded(opcode, KINDS["f16"], arity, exact, seed)


@pytest.mark.parametrize("opcode", ["fma.rn.bf16", "fma.rn.relu.bf16"])
@FIXED
@given(seed=seeds)
def test_bf16(opcode: str, seed: int) -> None:
    check_rounded(opcode, KINDS["bf16"], 3, exact_fma, seed)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@FIXED
@given(seed=seeds)
def test_bf16_arithmetic_sm90(name: str, seed: int) -> None:
    for opcode in (f"{name}.bf16", f"{name}.rn.bf16"):
        check_rounded(
            opcode, KINDS["bf16"], 2, exact_binary(name), seed, target="sm_90"
        )


def check_packed(
    text: str,
    kind: Kind,
    one: Callable[..., int | None],
    arity: int,
    seed: int,
    target: str = "sm_80",
) -> None:
    """An instruction on two halves does to each what the single one does."""
    halves = [operands(seed + half, *[kind.name] * arity) for half in range(2)]
    columns = [
        [low | high << 16 for low, high in zip(*pair, strict=True)]
        for pair in zip(*halves, strict=True)
    ]
    inputs = {
        name: ("b32", array(column, 32))
        for name, column in zip("abc", columns, strict=False)
    }
    packed = run_lanes(text, inputs, {"d": "b32"}, target=target)["d"]
    for half in range(2):
        wanted: list[int | None] = [
            one(*lane) for lane in zip(*halves[half], strict=True)
        ]
        got = (packed >> np.uint32(16 * half) & np.uint32(0xFFFF)).astype(np.uint16)
        check_lanes(got, wanted, halves[half], nan=kind.fmt)


@pytest.mark.parametrize(
    ("opcode", "kind", "target"),
    [
        ("add.f16x2", "f16", "sm_80"),
        ("sub.rn.sat.f16x2", "f16", "sm_80"),
        ("mul.f16x2", "f16", "sm_80"),
        ("fma.rn.f16x2", "f16", "sm_80"),
        ("fma.rn.relu.f16x2", "f16", "sm_80"),
        ("fma.rn.bf16x2", "bf16", "sm_80"),
        ("fma.rn.relu.bf16x2", "bf16", "sm_80"),
        ("add.rn.bf16x2", "bf16", "sm_90"),
        ("mul.bf16x2", "bf16", "sm_90"),
    ],
)
@FIXED
@given(seed=seeds)
def test_packed_arithmetic(opcode: str, kind: str, target: str, seed: int) -> None:
    fmt = KINDS[kind].fmt
    arity, exact = half_model(opcode)
    parts = opcode.split(".")

    def one(*bits: int) -> int | None:
        result = exact([decode(fmt, value) for value in bits], "rn")
        if "relu" in parts and relu_unclear(fmt, result, "rn"):
            return None
        return finish(fmt, result, "rn", saturate="sat" in parts, relu="relu" in parts)

    check_packed(
        f"{opcode} %d, {sources(arity)};", KINDS[kind], one, arity, seed, target
    )


def order(fmt: Format, bits: int) -> tuple[float, int]:
    """A key that puts -0 below +0."""
    return decode(fmt, bits), 0 if bits & fmt.sign_bit else 1


def min_max(fmt: Format, name: str, modifiers: list[str]) -> Callable[[int, int], int]:
    def flushed(bits: int) -> int:
        if "ftz" in modifiers and not is_nan_bits(fmt, bits):
            return encode(fmt, flush(fmt, decode(fmt, bits)))
        return bits

    def model(a: int, b: int) -> int:
        sign = (a ^ b) & fmt.sign_bit
        a, b = flushed(a), flushed(b)
        if "xorsign" in modifiers:
            a, b = a & ~fmt.sign_bit, b & ~fmt.sign_bit
        nans = is_nan_bits(fmt, a), is_nan_bits(fmt, b)
        if all(nans) or ("NaN" in modifiers and any(nans)):
            return fmt.canonical_nan
        if any(nans):
            result = b if nans[0] else a
        else:
            pick = min if name == "min" else max
            result = pick(a, b, key=lambda bits: order(fmt, bits))
        if "xorsign" in modifiers:
            result = result & ~fmt.sign_bit | sign
        return result

    return model


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize(
    "opcode",
    [
        "f32",
        "ftz.f32",
        "NaN.f32",
        "xorsign.abs.f32",
        "f16",
        "ftz.f16",
        "NaN.f16",
        "NaN.xorsign.abs.f16",
        "bf16",
        "NaN.bf16",
        "f64",
    ],
)
@FIXED
@given(seed=seeds)
def test_min_max(name: str, opcode: str, seed: int) -> None:
    *modifiers, kind_name = opcode.split(".")
    kind = KINDS[kind_name]
    target = "sm_86" if "xorsign" in modifiers else "sm_80"
    columns = operands(seed, kind.name, kind.name)
    got = run(f"{name}.{opcode} %d, %a, %b;", kind, columns, target, "7.8")
    model = min_max(kind.fmt, name, modifiers)
    wanted: list[int | None] = [model(a, b) for a, b in zip(*columns, strict=True)]
    # The sign of a NaN under xorsign is not described.
    loose = kind.fmt if "xorsign" in modifiers or kind.name == "f64" else None
    check_lanes(got, wanted, columns, nan=loose)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["min", "max"])
@FIXED
@given(seed=seeds)
def test_packed_min_max(name: str, kind: str, seed: int) -> None:
    model = min_max(KINDS[kind].fmt, name, [])
    check_packed(f"{name}.{kind}x2 %d, %a, %b;", KINDS[kind], model, 2, seed)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@FIXED
@given(seed=seeds)
def test_abs_and_neg(kind: str, seed: int) -> None:
    fmt = KINDS[kind].fmt
    (column,) = operands(seed, kind)
    for name, wanted in (
        ("abs", [bits & ~fmt.sign_bit for bits in column]),
        ("neg", [bits ^ fmt.sign_bit for bits in column]),
    ):
        got = run(f"{name}.{kind} %d, %a;", KINDS[kind], [column], "sm_80", "7.8")
        check_lanes(got, list(wanted), [column], nan=fmt)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@FIXED
@given(seed=seeds)
def test_packed_abs_and_neg(kind: str, seed: int) -> None:
    sign = KINDS[kind].fmt.sign_bit
    check_packed(f"abs.{kind}x2 %d, %a;", KINDS[kind], lambda a: a & ~sign, 1, seed)
    check_packed(f"neg.{kind}x2 %d, %a;", KINDS[kind], lambda a: a ^ sign, 1, seed)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@FIXED
@given(seed=seeds)
def test_copysign(kind: str, seed: int) -> None:
    fmt = KINDS[kind].fmt
    columns = operands(seed, kind, kind)
    got = run(f"copysign.{kind} %d, %a, %b;", KINDS[kind], columns, "sm_80", "7.8")
    wanted: list[int | None] = [
        a & fmt.sign_bit | b & ~fmt.sign_bit for a, b in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns, nan=fmt)


CLASSES: dict[str, Callable[[Format, int], bool]] = {
    "finite": lambda fmt, bits: math.isfinite(decode(fmt, bits)),
    "infinite": lambda fmt, bits: math.isinf(decode(fmt, bits)),
    "number": lambda fmt, bits: not math.isnan(decode(fmt, bits)),
    "notanumber": lambda fmt, bits: math.isnan(decode(fmt, bits)),
    "normal": lambda fmt, bits: (
        fmt.smallest_normal <= abs(decode(fmt, bits)) < math.inf
    ),
    "subnormal": lambda fmt, bits: 0 < abs(decode(fmt, bits)) < fmt.smallest_normal,
}


@pytest.mark.parametrize("kind", ["f32", "f64"])
@FIXED
@given(seed=seeds)
def test_testp(kind: str, seed: int) -> None:
    fmt = KINDS[kind].fmt
    (column,) = operands(seed, kind)
    body = "mov.u32 %d, 0;\n" + "\n".join(
        f"testp.{name}.{kind} %q0, %a; @%q0 or.b32 %d, %d, {1 << place};"
        for place, name in enumerate(CLASSES)
    )
    got = run_lanes(body, {"a": (kind, array(column, fmt.bits))}, {"d": "b32"})["d"]
    wanted: list[int | None] = [
        sum(test(fmt, bits) << i for i, test in enumerate(CLASSES.values()))
        for bits in column
    ]
    check_lanes(got, wanted, [column])


ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compare_floats(name: str, a: float, b: float) -> bool:
    unordered = math.isnan(a) or math.isnan(b)
    if name == "num":
        return not unordered
    if name == "nan":
        return unordered
    if name in ORDERED:
        return not unordered and ORDERED[name](a, b)
    return unordered or ORDERED[name[:-1]](a, b)  # equ, neu, ltu, leu, gtu, geu


FLOAT_COMPARE = [*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan"]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "ftz.f32", "f64"])
@FIXED
@given(seed=seeds)
def test_setp(kind: str, seed: int) -> None:
    plain = KINDS[kind.removeprefix("ftz.")]
    columns = operands(seed, plain.name, plain.name)
    columns[1][::3] = columns[0][::3]
    body = "mov.u32 %d, 0;\n" + "\n".join(
        f"setp.{name}.{kind} %q0, %a, %b; @%q0 or.b32 %d, %d, {1 << place};"
        for place, name in enumerate(FLOAT_COMPARE)
    )
    inputs = {
        name: (plain.register, array(column, plain.fmt.bits))
        for name, column in zip("ab", columns, strict=True)
    }
    target = "sm_90" if kind == "bf16" else "sm_80"
    got = run_lanes(body, inputs, {"d": "b32"}, target=target)["d"]
    wanted: list[int | None] = []
    for lane in zip(*columns, strict=True):
        a, b = (decode(plain.fmt, bits) for bits in lane)
        if kind.startswith("ftz"):
            a, b = flush(plain.fmt, a), flush(plain.fmt, b)
        wanted.append(
            sum(compare_floats(n, a, b) << i for i, n in enumerate(FLOAT_COMPARE))
        )
    check_lanes(got, wanted, columns)


@FIXED
@given(seed=seeds)
def test_setp_of_two_halves(seed: int) -> None:
    columns = operands(seed, "u32", "u32")
    columns[1][::3] = columns[0][::3]
    inputs = {n: ("b32", array(c, 32)) for n, c in zip("ab", columns, strict=True)}
    body = "setp.lt.f16x2 %q0|%q1, %a, %b;\n"
    body += "selp.u32 %d, 1, 0, %q0; @%q1 or.b32 %d, %d, 2;"
    got = run_lanes(body, inputs, {"d": "b32"})["d"]

    def less(a: int, b: int, half: int) -> bool:
        first, second = (decode(F16, bits >> 16 * half & 0xFFFF) for bits in (a, b))
        return first < second

    wanted: list[int | None] = [
        less(a, b, 0) + 2 * less(a, b, 1) for a, b in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns)


@FIXED
@given(seed=seeds)
def test_set_gives_a_number(seed: int) -> None:
    columns = operands(seed, "f32", "f32")
    inputs = {n: ("f32", array(c, 32)) for n, c in zip("ab", columns, strict=True)}
    text = "set.ge.f32.f32 %d, %a, %b; set.ge.u32.f32 %e, %a, %b;"
    got = run_lanes(text, inputs, {"d": "f32", "e": "b32"})
    holds = [decode(F32, a) >= decode(F32, b) for a, b in zip(*columns, strict=True)]
    check_lanes(got["d"], [0x3F800000 * held for held in holds], columns)
    check_lanes(got["e"], [0xFFFFFFFF * held for held in holds], columns)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_sums_that_vanish(kind: str, mode: str) -> None:
    """A sum that is too small for the format is no exact zero: it keeps its sign."""
    fmt = KINDS[kind].fmt
    one = fmt.bias << fmt.fraction_bits
    below_one, large = one - 1, (1 << fmt.fraction_bits) - 1  # largest subnormal
    sign = fmt.sign_bit
    lanes = [
        (below_one | sign, large, large),  # a tiny positive number
        (below_one, large, large | sign),  # a tiny negative one
        (1, 1, sign),  # tiny, beside -0
        (1 | sign, 1, 0),
        (one | sign, large, large),  # exactly zero
        (one, large, large | sign),
    ]
    columns = [list(column) * 32 for column in zip(*lanes, strict=True)]
    got = run_lanes(
        f"fma.{mode}.{kind} %d, %a, %b, %c;",
        {
            name: (kind, array(column, fmt.bits))
            for name, column in zip("abc", columns, strict=True)
        },
        {"d": kind},
        block=192,
    )["d"]
    wanted = [
        encode(fmt, exact_fma([decode(fmt, bits) for bits in lane], mode), mode)
        for lane in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns)


def test_fma_rounds_once() -> None:
    """(1 + e)(1 - e) - 1 = -e*e is lost by a separate multiplication."""
    e = 2.0**-20
    inputs = {
        "a": ("f32", np.full(32, 1 + e, np.float32)),
        "b": ("f32", np.full(32, 1 - e, np.float32)),
        "c": ("f32", np.full(32, -1, np.float32)),
    }
    text = "fma.rn.f32 %d, %a, %b, %c; mul.rn.f32 %f, %a, %b; add.rn.f32 %f, %f, %c;"
    got = run_lanes(text, inputs, {"d": "f32", "f": "f32"}, block=32)
    assert got["d"].view(np.float32)[0] == np.float32(-(e * e))
    assert got["f"].view(np.float32)[0] == 0.0


def test_f64_square_root() -> None:
    (column,) = operands(1, "f64")
    got = run("sqrt.rn.f64 %d, %a;", KINDS["f64"], [column], "sm_80", "7.8")
    wanted: list[int | None] = [
        encode_sqrt(F64, decode(F64, bits), "rn") for bits in column
    ]
    check_lanes(got, wanted, [column], nan=F64)
