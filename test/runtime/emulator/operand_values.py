"""Operands for the instruction tests: awkward values first, random ones after.

One emulated launch tests many lanes, so hypothesis draws a seed, not each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from exact_floats import BF16, F16, F32, F64, Format
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

COUNT = 512

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}

# Two launches of COUNT lanes are plenty for every run; HYPOTHESIS_PROFILE=search (see
# test/conftest.py) asks for many more. A seed is not worth shrinking: the failing
# lane's operands are in the message.
PROFILE = settings()
FIXED = settings(
    max_examples=2 if PROFILE.derandomize else PROFILE.max_examples,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.differing_executors],
)

seeds = st.integers(0, 2**32 - 1)


def bits_of(kind: str) -> int:
    """Width of an operand kind such as u32, s16, b64, f16, bf16."""
    return int("".join(c for c in kind if c.isdigit()))


def edges(kind: str) -> list[int]:
    """Bit patterns that break naive implementations."""
    if kind in FORMATS:
        return float_edges(FORMATS[kind])
    bits = bits_of(kind)
    top = 1 << (bits - 1)
    mask = (1 << bits) - 1
    wanted = [0, 1, 2, 5, bits - 1, bits, bits + 1, 255, top - 1, top, top + 1]
    wanted += [mask, mask - 1, mask - 4, 0x5A5A5A5A5A5A5A5A & mask]
    return sorted({value & mask for value in wanted})


def float_edges(fmt: Format) -> list[int]:
    one = fmt.bias << fmt.fraction_bits
    smallest = 1 << fmt.fraction_bits
    positive = [
        0,
        1,  # smallest subnormal
        smallest - 1,  # largest subnormal
        smallest,
        smallest + 1,
        one - 1,
        one,
        one + 1,
        one + (1 << (fmt.fraction_bits - 1)),  # 1.5: a tie for integer rounding
        one + (1 << fmt.fraction_bits) + (1 << (fmt.fraction_bits - 2)),  # 2.5
        fmt.infinity - 1,
        fmt.infinity,
        fmt.quiet_nan,
        fmt.infinity | 1,  # a signalling NaN
    ]
    return positive + [value | fmt.sign_bit for value in positive]


def operands(seed: int, *kinds: str, count: int = COUNT) -> list[list[int]]:
    """`count` operands of each kind, as Python ints holding bit patterns."""
    generator = np.random.default_rng(seed)
    corners = corner_lanes(generator, kinds, count // 2)
    rest = count - len(corners)
    columns = [list(column) for column in zip(*corners, strict=True)]
    for column, kind in zip(columns, kinds, strict=True):
        column.extend(random_bits(generator, kind, rest))
    return columns


def corner_lanes(
    generator: np.random.Generator, kinds: tuple[str, ...], count: int
) -> list[tuple[int, ...]]:
    """Combinations of edge values: all of them if they fit, else a sample."""
    lists = [edges(kind) for kind in kinds]
    if np.prod([len(values) for values in lists]) <= count:
        return list(product(*lists))
    picks = [generator.integers(0, len(values), count) for values in lists]
    return [
        tuple(values[int(i)] for values, i in zip(lists, row, strict=True))
        for row in zip(*picks, strict=True)
    ]


def random_bits(generator: np.random.Generator, kind: str, count: int) -> list[int]:
    bits = bits_of(kind)
    raw = (
        generator.integers(0, 1 << bits, count, dtype=np.uint64, endpoint=False)
        if (bits < 64)
        else generator.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)
    )
    values = [int(value) for value in raw]
    if kind not in FORMATS:
        return values
    # Half of the floats get exponents near each other: adding them rounds and cancels.
    fmt = FORMATS[kind]
    keep = (1 << fmt.fraction_bits) - 1 | fmt.sign_bit
    for lane in range(0, count, 2):
        exponent = fmt.bias + int(generator.integers(-4, 5))
        values[lane] = values[lane] & keep | exponent << fmt.fraction_bits
    return values


def array(values: list[int], bits: int) -> np.ndarray:
    """Bit patterns as an array of unsigned integers of that width."""
    return np.array(values, dtype=np.dtype(f"u{bits // 8}"))


def signed(value: int, bits: int) -> int:
    """The two's-complement reading of a bit pattern."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def wrap(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def read(value: int, kind: str) -> int:
    """The integer that a bit pattern means for an s or u type."""
    bits = bits_of(kind)
    return signed(value, bits) if kind.startswith("s") else wrap(value, bits)


def check_lanes(
    got: np.ndarray,
    wanted: Sequence[int | None],
    given: Sequence[Sequence[int]],
    nan: Format | None = None,
) -> None:
    """Compare bit patterns lane by lane; None means that PTX leaves the lane open.

    With `nan`, any NaN of that format is as good as any other.
    """
    assert len(got) == len(wanted)
    for lane, (one, other) in enumerate(zip(got.tolist(), wanted, strict=True)):
        if other is None or one == other:
            continue
        if nan is not None and _both_nan(nan, one, other):
            continue
        shown = ", ".join(hex(column[lane]) for column in given)
        raise AssertionError(f"lane {lane}: ({shown}) gave {one:#x}, not {other:#x}")


def _both_nan(fmt: Format, one: int, other: int) -> bool:
    mask = fmt.sign_bit - 1
    return (one & mask) > fmt.infinity and (other & mask) > fmt.infinity


def sources(arity: int) -> str:
    """The registers of the first `arity` operands, as an instruction lists them."""
    return ", ".join(f"%{c}" for c in "abc"[:arity])
