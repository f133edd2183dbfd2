"""Every element type converted to every other, computed in, and converted again.

Each body converts two elements, computes in the type that they then have, and converts
the result: bits as NumPy has them, op by op, after LLVM as before it. Elements are the
extreme values of their type, each with each, and random bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from test_scalar_bodies import FORMATS, emitted, rounded

from alcop_mlir import dtypes
from alcop_mlir.runtime.emulator import emulate

COUNT = 512
SHOWN = 20
Array = np.ndarray
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
KINDS = (*FORMATS, *BITS)
STORED = tuple(kind for kind in KINDS if kind not in ("i1", "index"))
WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64} | BITS


@dataclass(frozen=True)
class Values:
    """Numbers of a type, floats as float64, integers as int64; `known` if defined."""

    kind: str
    numbers: Array
    known: Array


def is_float(kind: str) -> bool:
    return kind in FORMATS


def converted(given: Values, op: str, kind: str) -> Values:
    """MLIR's conversion ops; nothing is known where it does not say the result."""
    numbers, known = given.numbers, given.known
    match op:
        case "extf":
            pass
        case "truncf":
            numbers = rounded(numbers, kind)
        case "sitofp":
            numbers = to_float(given, kind, signed=given.kind != "i1")
            if given.kind == "i1":
                numbers = 0.0 - numbers
        case "uitofp":
            numbers = to_float(given, kind, signed=False)
        case "fptosi" | "fptoui":
            least, most = limits(kind, op == "fptosi")
            whole = np.trunc(numbers)
            fits = (whole >= least) & (whole <= most)
            numbers = np.where(fits, whole, 0)
            numbers = (
                numbers.astype(np.int64)
                if op == "fptosi"
                else numbers.astype(np.uint64).view(np.int64)
            )
            known = known & fits
        case "extui" | "index_castui":
            numbers = unsigned(given).view(np.int64)
        case "extsi" | "index_cast":
            if given.kind == "i1":
                numbers = -numbers
        case "bitcast":
            known = known & (numbers == numbers)  # NaNs differ in their bits
            numbers = from_bits(to_bits(given), kind)
    return Values(kind, wrapped(numbers, kind), known)


def wrapped(numbers: Array, kind: str) -> Array:
    """Integers as their type has them: i1 as 0 and 1, others signed."""
    if is_float(kind) or BITS[kind] == 64:
        return numbers
    if kind == "i1":
        return numbers & 1
    shift = np.int64(64 - BITS[kind])
    return (numbers << shift) >> shift


def unsigned(given: Values) -> Array:
    bits = given.numbers.view(np.uint64)
    return bits & np.uint64((1 << BITS[given.kind]) - 1)


def limits(kind: str, signed: bool) -> tuple[float, float]:
    bits = BITS[kind]
    if not signed:
        return 0.0, float(np.nextafter(2.0**bits, 0)) if bits == 64 else 2.0**bits - 1
    top = 2.0 ** (bits - 1)
    return -top, float(np.nextafter(top, 0)) if bits == 64 else top - 1


def to_float(given: Values, kind: str, signed: bool) -> Array:
    """Integers rounded once: what float64 would cut off is one sticky bit."""
    whole = given.numbers if signed else unsigned(given)
    if kind == "f64":
        return whole.astype(np.float64)
    low = whole.dtype.type(0x7FF)
    sticky = np.where(whole & low, low + whole.dtype.type(1), 0).astype(whole.dtype)
    large = (whole > 2**53) if not signed else np.abs(whole.astype(np.float64)) > 2**53
    near = np.where(large, (whole & ~low) | sticky, whole)
    return rounded(near.astype(np.float64), kind)


def to_bits(given: Values) -> Array:
    if not is_float(given.kind):
        return given.numbers
    encoded = encode(given)
    return encoded.view(f"i{encoded.itemsize}").astype(np.int64)


def from_bits(bits: Array, kind: str) -> Array:
    if not is_float(kind):
        return bits
    stored = dtypes.NUMPY_DTYPES[kind]
    narrow = bits.astype(f"i{np.dtype(stored).itemsize}")
    return dtypes.decode(narrow.view(stored), kind)


def encode(given: Values) -> Array:
    with np.errstate(over="ignore"):
        return dtypes.encode(given.numbers, given.kind)


def conversions(given: str, kind: str) -> Iterator[tuple[str, ...]]:
    """The ops that convert from one type to another, by way of a third if need be."""
    if given == kind:
        yield ()
    elif is_float(given) and is_float(kind):
        if WIDTHS[given] == WIDTHS[kind]:
            yield "extf f32", f"truncf {kind}"
        else:
            wider = WIDTHS[kind] > WIDTHS[given]
            yield (f"{'extf' if wider else 'truncf'} {kind}",)
    elif "index" in (given, kind):
        if is_float(given) or is_float(kind):
            yield from zip_ways(given, kind)
        else:
            yield (f"index_cast {kind}",)
            yield (f"index_castui {kind}",)
    elif is_float(kind):
        yield (f"sitofp {kind}",)
        yield (f"uitofp {kind}",)
    elif is_float(given):
        yield (f"fptosi {kind}",)
        yield (f"fptoui {kind}",)
    elif BITS[kind] > BITS[given]:
        yield (f"extsi {kind}",)
        yield (f"extui {kind}",)
    else:
        yield (f"trunci {kind}",)
    is_same_width = WIDTHS[given] == WIDTHS[kind] and "index" not in (given, kind)
    if is_float(given) != is_float(kind) and is_same_width:
        yield (f"bitcast {kind}",)


def zip_ways(given: str, kind: str) -> Iterator[tuple[str, ...]]:
    """By way of i64, signed, then unsigned."""
    ways = (conversions(given, "i64"), conversions("i64", kind))
    for first, last in itertools.islice(zip(*ways, strict=False), 2):
        yield (*first, *last)


def maximum(x: Array, y: Array) -> Array:
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y))


def divided(x: Array, y: Array) -> Array:
    """Towards zero; where the divisor is 0, anything."""
    by = np.where(y == 0, 1, y)
    quotient = x // by
    return quotient + ((quotient < 0) & (quotient * by != x)).astype(x.dtype)


FLOAT_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf %x, %y": lambda x, y: x + y,
    "arith.subf %x, %y": lambda x, y: x - y,
    "arith.mulf %x, %y": lambda x, y: x * y,
    "arith.divf %x, %y": lambda x, y: x / y,
    "arith.maximumf %x, %y": maximum,
    "arith.minimumf %x, %y": lambda x, y: -maximum(-x, -y),
    "arith.maxnumf %x, %y": np.fmax,
    "arith.minnumf %x, %y": np.fmin,
    "arith.negf %x": lambda x, y: -x,
    "math.absf %x": lambda x, y: np.abs(x),
    "math.copysign %x, %y": np.copysign,
    "math.floor %x": lambda x, y: np.floor(x),
    "math.roundeven %x": lambda x, y: np.rint(x),
    "arith.select %less, %x, %y": lambda x, y: np.where(x < y, x, y),
    "arith.select %unlike, %y, %x": lambda x, y: np.where((x < y) | (x > y), y, x),
}
FLOAT_COMPARISONS = {
    "arith.cmpf oeq, %x, %y": lambda x, y: x == y,
    "arith.cmpf ugt, %x, %y": lambda x, y: ~(x <= y),
    "arith.cmpf ole, %x, %y": lambda x, y: x <= y,
    "arith.cmpf uno, %x, %y": lambda x, y: np.isnan(x) | np.isnan(y),
}
INTEGER_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addi %x, %y": lambda x, y: x + y,
    "arith.subi %x, %y": lambda x, y: x - y,
    "arith.muli %x, %y": lambda x, y: x * y,
    "arith.divsi %x, %y": divided,
    "arith.remsi %x, %y": lambda x, y: x - divided(x, y) * y,
    "arith.maxsi %x, %y": np.maximum,
    "arith.minsi %x, %y": np.minimum,
    "arith.andi %x, %y": np.bitwise_and,
    "arith.ori %x, %y": np.bitwise_or,
    "arith.xori %x, %y": np.bitwise_xor,
    "arith.select %less, %x, %y": lambda x, y: np.where(x < y, x, y),
}
UNSIGNED_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "arith.divui %x, %y": lambda x, y: x // np.where(y == 0, y + np.uint64(1), y),
    "arith.remui %x, %y": lambda x, y: x % np.where(y == 0, y + np.uint64(1), y),
    "arith.maxui %x, %y": np.maximum,
    "arith.minui %x, %y": np.minimum,
}
SHIFTS: dict[str, Callable[[Array, Array], Array]] = {
    "arith.shli %x, %y": lambda x, y: x << y,
    "arith.shrsi %x, %y": lambda x, y: x >> y,
}
COMPARISONS = {
    "arith.cmpi slt, %x, %y": lambda x, y: x < y,
    "arith.cmpi eq, %x, %y": lambda x, y: x == y,
}
UNSIGNED_COMPARISONS = {"arith.cmpi ugt, %x, %y": lambda x, y: x > y}


def bodies(kind: str) -> list[str]:
    if is_float(kind):
        return [*FLOAT_OPS, *FLOAT_COMPARISONS]
    if kind == "i1":  # signed, 1 is -1
        names = "addi subi muli andi ori xori maxui minui".split()
        every = [*INTEGER_OPS, *UNSIGNED_OPS]
        return [one for one in every if one.split(".")[1].split()[0] in names]
    return [*INTEGER_OPS, *UNSIGNED_OPS, *SHIFTS, *COMPARISONS, *UNSIGNED_COMPARISONS]


def computed(body: str, x: Values, y: Values) -> Values:
    """The body's result, rounded once or wrapped around."""
    a, b, known = x.numbers, y.numbers, x.known & y.known
    if ".cmp" in body:
        table = FLOAT_COMPARISONS | COMPARISONS
        if body in UNSIGNED_COMPARISONS:
            result = UNSIGNED_COMPARISONS[body](unsigned(x), unsigned(y))
        else:
            result = table[body](a, b)
        return Values("i1", result.astype(np.int64), known)
    if is_float(x.kind):
        if "num" in body:  # either zero will do
            known = known & ((a != 0) | (b != 0))
        if "copysign" in body:  # the sign of a NaN may be either
            known = known & (b == b)
        return Values(x.kind, rounded(FLOAT_OPS[body](a, b), x.kind), known)
    if body in UNSIGNED_OPS:
        known = known & ((b != 0) | ("div" not in body and "rem" not in body))
        result = UNSIGNED_OPS[body](unsigned(x), unsigned(y)).view(np.int64)
    elif body in SHIFTS:
        known = known & (b >= 0) & (b < BITS[x.kind])
        result = SHIFTS[body](a, np.clip(b, 0, BITS[x.kind] - 1))
    else:
        if "divsi" in body or "remsi" in body:
            least = -(1 << (BITS[x.kind] - 1))
            undefined = (b == 0) | ((b == -1) & (a == least))
            known, b = known & ~undefined, np.where(undefined, 1, b)
        result = INTEGER_OPS[body](a, b)
    return Values(x.kind, wrapped(result, x.kind), known)


def drawn(random: np.random.Generator, kind: str, turn: int) -> Array:
    """Extreme values, each of one turn with each of the other; then random bits."""
    stored = np.dtype(dtypes.NUMPY_DTYPES[kind])
    values = random.integers(0, 256, COUNT * stored.itemsize, np.uint8).view(stored)
    small, large = dtypes.extremes(kind)
    if large:
        chosen = dtypes.encode(np.array([*small, *large, 1.0, -1.5, 300.5]), kind)
    else:
        chosen = np.array([*small, 1, 2, 77], np.int64).astype(stored)
    pairs = np.array(list(itertools.product(chosen, chosen)))[:COUNT, turn]
    values[: len(pairs)] = pairs.astype(stored)
    if large:  # as many of the rest are numbers that integers have
        few = values[len(pairs) :: 2]
        few[:] = dtypes.encode(random.normal(0, 100, len(few)), kind)
    return values


@dataclass(frozen=True)
class Way:
    """A function of a kernel: from one type to another, and on to types of results.

    first, last: conversions before, and after each body
    """

    name: str
    stored: str
    first: tuple[str, ...]
    kind: str
    last: tuple[tuple[str, ...], ...]

    def outputs(self) -> list[str]:
        """The type that each body's result is stored as."""
        return [(ops[-1].split()[1] if ops else self.kind) for ops in self.last]


def ways(stored: str, kind: str, random: np.random.Generator) -> Iterator[Way]:
    """Results as they are, converted back, and converted to any type."""
    back = [*conversions(kind, stored)]
    every = [one for other in STORED for one in conversions(kind, other)]
    for number, first in enumerate(conversions(stored, kind)):
        for turn in range(3):
            last: list[tuple[str, ...]] = []
            for place, body in enumerate(bodies(kind)):
                if ".cmp" in body:
                    chosen = ("extui i8",)
                elif turn == 0:
                    chosen = {"i1": ("extui i8",), "index": ("index_cast i64",)}.get(
                        kind, ()
                    )
                elif turn == 1:
                    chosen = back[place % len(back)]
                else:
                    chosen = every[random.integers(len(every))]
                last.append(chosen)
            yield Way(f"f{number}_{turn}", stored, first, kind, tuple(last))


def chain(start: str, kind: str, ops: tuple[str, ...], prefix: str) -> list[str]:
    """The conversions of `start`, the last of which is `%PREFIX`."""
    lines = []
    for number, one in enumerate(ops):
        op, to = one.split()
        name = f"%{prefix}" if number == len(ops) - 1 else f"%{prefix}_{number}"
        lines.append(f"{name} = arith.{op} {start} : {kind} to {to}")
        start, kind = name, to
    return lines


def function(way: Way) -> str:
    """Each thread stores all bodies of its pair of elements, one below the other."""
    kinds = sorted(set(way.outputs()))
    rows = {kind: way.outputs().count(kind) for kind in kinds}
    lines, seen = [], dict.fromkeys(kinds, 0)
    for name in "xy":
        given = f"%{name}" if not way.first else f"%{name}_s"
        lines.append(
            f"{given} = memref.load %a{name}[%t] : memref<{COUNT}x{way.stored}>"
        )
        lines += chain(given, way.stored, way.first, name)
    compare = "arith.cmpf olt" if is_float(way.kind) else "arith.cmpi slt"
    lines.append(f"%less = {compare}, %x, %y : {way.kind}")
    if is_float(way.kind):
        lines.append(f"%unlike = arith.cmpf one, %x, %y : {way.kind}")
    for number, (body, ops, out) in enumerate(
        zip(bodies(way.kind), way.last, way.outputs(), strict=True)
    ):
        result = f"%r{number}"
        lines.append(f"{result} = {body} : {way.kind}")
        kind = "i1" if ".cmp" in body else way.kind
        lines += chain(result, kind, ops, f"o{number}")
        lines.append(f"%p{number} = arith.constant {seen[out]} : index")
        lines.append(
            f"memref.store %{'o' if ops else 'r'}{number}, %d{out}[%p{number}, %t] : "
            f"memref<{rows[out]}x{COUNT}x{out}>"
        )
        seen[out] += 1
    parameters = [f"%p{n}: memref<1x{way.stored}>" for n in "xy"]
    parameters += [f"%p{kind}: memref<1x{kind}>" for kind in kinds]
    views = [
        f"%a{n} = memref.reinterpret_cast %p{n} to offset: [0], sizes: [{COUNT}], "
        f"strides: [1] : memref<1x{way.stored}> to memref<{COUNT}x{way.stored}>"
        for n in "xy"
    ]
    views += [
        f"%d{kind} = memref.reinterpret_cast %p{kind} to offset: [0], "
        f"sizes: [{rows[kind]}, {COUNT}], strides: [{COUNT}, 1] : memref<1x{kind}> to "
        f"memref<{rows[kind]}x{COUNT}x{kind}>"
        for kind in kinds
    ]
    text = "\n".join([*views, "%t = gpu.thread_id x", *lines])
    return f"""gpu.func @{way.name}({", ".join(parameters)}) kernel attributes
        {{known_block_size = array<i32: {COUNT}, 1, 1>}} {{ {text} gpu.return }}"""


def wrong(way: Way, code: str, x: Array, y: Array) -> Iterator[str]:
    """What the kernel computes otherwise than MLIR says."""
    outputs = way.outputs()
    kinds = sorted(set(outputs))
    arrays = {
        kind: np.zeros((outputs.count(kind), COUNT), dtypes.NUMPY_DTYPES[kind])
        for kind in kinds
    }
    arguments = [x, y, *arrays.values()]
    emulate(code, way.name, (1, 1, 1), (COUNT, 1, 1), arguments, hazards=False)
    given = [loaded(array, way.stored) for array in (x, y)]
    with np.errstate(all="ignore"):
        left, right = (through(one, way.first) for one in given)
        rows = {kind: iter(array) for kind, array in arrays.items()}
        for body, ops, kind in zip(bodies(way.kind), way.last, outputs, strict=True):
            want = through(computed(body, left, right), ops)
            got = loaded(next(rows[kind]), kind).numbers
            differs = want.known & ~same(got, want.numbers)
            if differs.any():
                at = int(differs.argmax())
                yield (
                    f"{way.stored} {' '.join(way.first)}: {body} {' '.join(ops)} of "
                    f"{given[0].numbers[at]!r} and {given[1].numbers[at]!r}: "
                    f"{got[at]!r}, not {want.numbers[at]!r} "
                    f"({differs.sum()} of {want.known.sum()})"
                )


def same(got: Array, want: Array) -> Array:
    """Also zeros by their sign."""
    equal = (got == want) | ((got != got) & (want != want))
    if got.dtype.kind != "f":
        return equal
    return equal & ((got != 0) | (np.signbit(got) == np.signbit(want)))


def loaded(array: Array, kind: str) -> Values:
    if is_float(kind):
        numbers = dtypes.decode(array, kind)
    else:
        numbers = array.astype(np.int64)
    return Values(kind, numbers, np.ones(len(array), bool))


def through(given: Values, ops: tuple[str, ...]) -> Values:
    for one in ops:
        given = converted(given, *one.split())
    return given


@pytest.mark.parametrize("kind", KINDS)
def test_all_pairs_of_types(kind: str) -> None:
    """Elements of each type, computed in `kind`."""
    random = np.random.default_rng(5)
    found = []
    for stored in STORED:
        x, y = (drawn(random, stored, turn) for turn in range(2))
        every = list(ways(stored, kind, random))
        text = "\n".join(map(function, every))
        code = emitted(f"gpu.module @all {{ {text} }}")
        for way in every:
            found += wrong(way, code, x, y)
    assert not found, "\n".join([f"{len(found)} wrong:", *found[:SHOWN]])
