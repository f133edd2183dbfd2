"""cvt to and from 8-bit floats, and cvt.pack; and 128-bit registers."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise

import numpy as np
import pytest
from exact_floats import F16, F32, decode, encode
from hypothesis import given
from kernel_text import run_lanes, run_warp
from operand_values import FIXED, array, check_lanes, operands, seeds, signed

TYPES = ("e4m3", "e5m2")


def value_of(kind: str, byte: int) -> float:
    """OCP 8-bit floating point: e4m3 has no infinities and one NaN."""
    sign = -1.0 if byte & 0x80 else 1.0
    size = byte & 0x7F
    if kind == "e5m2":
        if size > 0x7C:
            return math.nan
        if size == 0x7C:
            return sign * math.inf
        exponent, fraction, width, bias = size >> 2, size & 3, 2, 15
    else:
        if size == 0x7F:
            return math.nan
        exponent, fraction, width, bias = size >> 3, size & 7, 3, 7
    lead = 1 if exponent else 0
    return sign * (lead + fraction / 2**width) * 2.0 ** (max(exponent, 1) - bias)


FINITE = {
    kind: [v for v in (value_of(kind, b) for b in range(128)) if math.isfinite(v)]
    for kind in TYPES
}


def nearest(kind: str, value: float, relu: bool) -> int:
    """The byte for a value: to nearest, ties to the even byte, no infinities."""
    if math.isnan(value):
        return 0x7F
    if relu and value <= 0:
        return 0
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    known, size = FINITE[kind], abs(value)
    above = bisect_left(known, size)
    if above == len(known):
        return sign | (above - 1)
    if known[above] == size or not above:
        return sign | above
    low, high = size - known[above - 1], known[above] - size
    if low == high:
        return sign | (above if above % 2 == 0 else above - 1)
    return sign | (above if high < low else above - 1)


def singles(seed: int, kind: str) -> list[list[int]]:
    """Two columns of f32: the usual, and the halfway cases of the type."""
    columns = operands(seed, "f32", "f32")
    known = FINITE[kind]
    ties = [(a + b) / 2 for a, b in pairwise(known)]
    ties += [known[-1] * scale for scale in (1.03, 1.07, 2.0)]
    for lane, tie in enumerate(ties[: len(columns[0]) // 2]):
        bits = encode(F32, tie) | (0x80000000 if lane % 3 == 0 else 0)
        columns[lane % 2][2 * lane] = bits
    return columns


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("kind", TYPES)
@FIXED
@given(seed=seeds)
def test_f32_to_eight_bits(kind: str, relu: str, seed: int) -> None:
    columns = singles(seed, kind)
    inputs = {n: ("f32", array(c, 32)) for n, c in zip("ab", columns, strict=True)}
    body = f"cvt.rn.satfinite{relu}.{kind}x2.f32 %d, %a, %b;"
    got = run_lanes(body, inputs, {"d": "b16"}, target="sm_89", version="8.1")["d"]
    wanted: list[int | None] = [
        nearest(kind, decode(F32, a), bool(relu)) << 8
        | nearest(kind, decode(F32, b), bool(relu))
        for a, b in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns)


@pytest.mark.parametrize("kind", TYPES)
@FIXED
@given(seed=seeds)
def test_packed_halves_to_eight_bits(kind: str, seed: int) -> None:
    low, high = operands(seed, "f16", "f16")
    words = [a | b << 16 for a, b in zip(low, high, strict=True)]
    body = f"cvt.rn.satfinite.{kind}x2.f16x2 %d, %a;"
    got = run_lanes(
        body,
        {"a": ("b32", array(words, 32))},
        {"d": "b16"},
        target="sm_89",
        version="8.1",
    )
    wanted: list[int | None] = [
        nearest(kind, decode(F16, a), False) | nearest(kind, decode(F16, b), False) << 8
        for a, b in zip(low, high, strict=True)
    ]
    check_lanes(got["d"], wanted, [low, high])


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_byte_to_halves(kind: str, relu: str) -> None:
    low = list(range(256))
    high = low[77:] + low[:77]
    pairs = [a | b << 8 for a, b in zip(low, high, strict=True)]
    body = f"cvt.rn{relu}.f16x2.{kind}x2 %d, %a;"
    got = run_lanes(
        body,
        {"a": ("b16", array(pairs, 16))},
        {"d": "b32"},
        target="sm_89",
        version="8.1",
    )

    def half(byte: int) -> int:
        value = value_of(kind, byte)
        return encode(F16, 0.0 if relu and value <= 0 else value)

    wanted: list[int | None] = [
        half(a) | half(b) << 16 for a, b in zip(low, high, strict=True)
    ]
    check_lanes(got["d"], wanted, [low, high])


@pytest.mark.parametrize("kind", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
@FIXED
@given(seed=seeds)
def test_cvt_pack(kind: str, seed: int) -> None:
    """Clamps a and b, b below a; the other bits are those of c."""
    bits = int(kind[1:])
    columns = operands(seed, "s32", "s32", "b32")
    for lane in range(0, len(columns[0]), 2):  # most numbers are far out of range
        for column in columns[:2]:
            column[lane] = (signed(column[lane], 32) % 70 - 35) & 0xFFFFFFFF
    inputs = {n: ("b32", array(c, 32)) for n, c in zip("abc", columns, strict=True)}
    wide = bits == 16
    body = f"cvt.pack.sat.{kind}.s32 %d, %a, %b;"
    if not wide:
        body = f"cvt.pack.sat.{kind}.s32.b32 %d, %a, %b, %c;"
    got = run_lanes(body, inputs, {"d": "b32"})["d"]
    low = 0 if kind[0] == "u" else -(2 ** (bits - 1))
    high = low + 2**bits - 1

    def clamp(word: int) -> int:
        return min(max(signed(word, 32), low), high) % 2**bits

    wanted: list[int | None] = []
    for a, b, c in zip(*columns, strict=True):
        rest = 0 if wide else c << 2 * bits
        wanted.append((rest | clamp(a) << bits | clamp(b)) & 0xFFFFFFFF)
    check_lanes(got, wanted, columns)


def test_registers_of_128_bits() -> None:
    given_words = np.random.default_rng(1).integers(0, 2**64, (32, 2), np.uint64)
    given_words[:4] = [[0x7FF0000000000001, 0xFFF8000000000000]] * 4  # NaN as floats
    body = """
    .reg .b128 %x, %y;
    mad.wide.u32 %in, %lane, 16, %in; mad.wide.u32 %out, %lane, 16, %out;
    ld.global.b128 %x, [%in];
    mov.b128 {%w0, %w1}, %x;
    mov.b128 %y, {%w1, %w0};
    mov.b128 %x, %y;
    st.global.b128 [%out], %x;
    """
    run_warp(body, given_words, given_words[:, ::-1].copy(), target="sm_80")
