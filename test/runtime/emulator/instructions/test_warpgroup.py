"""wgmma against matrices multiplied in NumPy, in each shape, type and layout."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from kernel_text import module
from warpgroup_kernels import (
    Packed,
    accumulators,
    fragment,
    pack_apart,
    pack_k_major,
    pack_mn_major,
    run,
    together,
    vector,
)

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import prepare

FENCES = "wgmma.fence.sync.aligned;\n{}\nwgmma.commit_group.sync.aligned;\n"
WAIT = "wgmma.wait_group.sync.aligned 0;\n"
DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
SWIZZLES = ["none", "32", "64", "128"]
INTEGERS = ("s8", "u8")


def floats(bits: np.ndarray, kind: str) -> np.ndarray:
    """What bits of a small type stand for, by its exponent, bias and fraction."""
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    if kind in ("bf16", "tf32"):
        wide = bits.astype(np.uint32) << (16 if kind == "bf16" else 0)
        mask = np.uint32(0xFFFFE000 if kind == "tf32" else 0xFFFFFFFF)
        return (wide & mask).view(np.float32).astype(np.float64)
    if kind in INTEGERS:
        return bits.view(np.int8 if kind == "s8" else np.uint8).astype(np.float64)
    fraction, bias = (3, 7) if kind == "e4m3" else (2, 15)
    sign = np.where(bits & 0x80, -1.0, 1.0)
    exponent = (bits & 0x7F) >> fraction
    rest = (bits & ((1 << fraction) - 1)) / (1 << fraction)
    normal = (1 + rest) * 2.0 ** (exponent.astype(int) - bias)
    return sign * np.where(exponent == 0, rest * 2.0 ** (1 - bias), normal)


def random_bits(
    kind: str, shape: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Elements of magnitude around 1, as unsigned integers."""
    x = generator.standard_normal(shape).astype(np.float32)
    if kind == "f16":
        return x.astype(np.float16).view(np.uint16)
    if kind == "bf16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    if kind == "tf32":
        return x.view(np.uint32)
    if kind in INTEGERS:
        return generator.integers(0, 256, shape).astype(np.uint8)
    low, high = (0x20, 0x48) if kind == "e4m3" else (0x30, 0x44)
    signs = generator.integers(0, 2, shape) << 7
    return (generator.integers(low, high, shape) | signs).astype(np.uint8)


def packed(matrix: np.ndarray, start: int, swizzle: str, k_major: bool, step: int = 0):
    """(extent, k) as the layout has it."""
    if k_major:
        rows = np.ascontiguousarray(matrix).view(np.uint8).reshape(len(matrix), 32)
        return pack_k_major(rows, start, swizzle, step)
    return pack_mn_major(np.ascontiguousarray(matrix.T), start, swizzle)


def multiply(
    n: int,
    types: tuple[str, str, str],
    *,
    swizzles: tuple[str, str] = ("128", "128"),
    k_major: tuple[bool, bool] = (True, True),
    in_registers: bool = False,
    adds: bool = True,
    signs: tuple[int, int] = (1, 1),
    steps: tuple[int, int] = (0, 0),
    saturates: bool = False,
    visibility: str = "late",
    schedule: str = "lockstep",
) -> None:
    """Runs one wgmma on random operands, and compares D."""
    d_type, a_type, b_type = types
    generator = np.random.default_rng(n)
    depth = DEPTHS[a_type]
    a = random_bits(a_type, (64, depth), generator)
    b = random_bits(b_type, (n, depth), generator)
    starts = [0, 16384]
    parts = [
        packed(x, start, swizzle, major, step)
        for x, start, swizzle, major, step in zip(
            (a, b), starts, swizzles, k_major, steps, strict=True
        )
    ]
    wanted = floats(a, a_type) @ floats(b, b_type).T * signs[0] * signs[1]
    if d_type == "s32":
        old = generator.integers(-(2**31), 2**31, (64, n))
        wanted = wanted.astype(np.int64) + (old if adds else 0)
        if saturates:
            wanted = np.clip(wanted, -(2**31), 2**31 - 1)
        stored, wanted = old.astype(np.int32), wanted.astype(np.int32)
    else:
        dtype = np.float16 if d_type == "f16" else np.float32
        stored = generator.standard_normal((64, n)).astype(dtype)
        wanted = wanted + (stored.astype(np.float64) if adds else 0)
    per = 2 if d_type == "f16" else 1
    d = accumulators(stored, per).view(np.uint32).reshape(128, -1)
    code = text_of(n, types, parts, k_major, in_registers, adds, signs, saturates)
    a_registers = None
    if in_registers:
        held = fragment(a, 4 // a.itemsize)
        a_registers = held.view(np.uint32).reshape(128, 4)
    memory = together(parts, starts)
    got, result = run(
        code, memory, d, a_registers, visibility=visibility, schedule=schedule
    )
    assert result.hazards == ()
    expected = accumulators(wanted, per).reshape(128, -1)
    if d_type == "s32":
        np.testing.assert_array_equal(got.view(np.int32), expected)
        return
    tolerance = 2e-3 if d_type == "f16" else 1e-5
    found = got.view(np.float16 if d_type == "f16" else np.float32)
    limit = tolerance * np.maximum(np.abs(expected), np.sqrt(depth))
    assert (np.abs(found.astype(np.float64) - expected) <= limit).all()


def text_of(
    n: int,
    types: tuple[str, str, str],
    parts: list[Packed],
    k_major: tuple[bool, bool],
    in_registers: bool,
    adds: bool,
    signs: tuple[int, int],
    saturates: bool = False,
) -> str:
    d_type, a_type, b_type = types
    count = n // 4 if d_type == "f16" else n // 2
    shape = f"m64n{n}k{DEPTHS[a_type]}"
    tail = ""
    if a_type not in INTEGERS:
        tail = f", {signs[0]}, {signs[1]}"
    if a_type in ("f16", "bf16"):
        given = [k_major[1]] if in_registers else k_major
        tail += "".join(f", {0 if major else 1}" for major in given)
    if saturates:
        shape += ".satfinite"
    first = vector("a", 4) if in_registers else "%x"
    code = (
        f"mov.b64 %x, {parts[0].descriptor}; mov.b64 %y, {parts[1].descriptor};\n"
        f"setp.ne.b32 %p0, {int(adds)}, 0;\n"
    )
    wgmma = (
        f"wgmma.mma_async.sync.aligned.{shape}.{d_type}.{a_type}.{b_type} "
        f"{vector('d', count)}, {first}, %y, %p0{tail};"
    )
    return code + FENCES.format(wgmma) + WAIT


ALL = [(d, kind, kind) for kind in ("f16", "e4m3", "e5m2") for d in ("f16", "f32")]
ALL += [(d, "e4m3", "e5m2") for d in ("f16", "f32")]
ALL += [("f32", "bf16", "bf16"), ("f32", "tf32", "tf32")]
ALL += [("s32", a, b) for a in INTEGERS for b in INTEGERS]


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("types", ALL, ids=".".join)
def test_types(types: tuple[str, str, str], swizzle: str) -> None:
    multiply(64, types, swizzles=(swizzle, swizzle))
    multiply(32, types, swizzles=(swizzle, "128"), in_registers=True, adds=False)


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_columns(n: int) -> None:
    multiply(n, ("f32", "f16", "f16"))
    multiply(n, ("f16", "f16", "f16"), k_major=(False, n % 16 != 0))
    if n in (8, 24) or n % 16 == 0:
        multiply(n, ("s32", "s8", "u8"), swizzles=("64", "32"))


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("k_major", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_layouts(kind: str, k_major: tuple[bool, bool], swizzle: str) -> None:
    other = {"none": "128", "128": "none", "32": "64", "64": "32"}[swizzle]
    for n in (16, 64, 144):
        multiply(n, ("f32", kind, kind), k_major=k_major, swizzles=(swizzle, other))


@pytest.mark.parametrize(("swizzle", "count"), [("128", 4), ("64", 2)])
def test_steps_along_k_inside_of_a_pattern(swizzle: str, count: int) -> None:
    """The swizzle is one of addresses: descriptors that begin inside find the same."""
    for step in range(count):
        multiply(
            96, ("f32", "f16", "f16"), swizzles=(swizzle, swizzle), steps=(step, step)
        )


@pytest.mark.parametrize("base", [0, 3, 7])
@pytest.mark.parametrize("gaps", [(0, 0), (2, 0), (1, 3)])
def test_patterns_that_lie_apart(
    gaps: tuple[int, int], base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any strides, and patterns that begin at any 128 bytes: "Base Offset"."""

    def packed(matrix: np.ndarray, start: int, *_: object) -> Packed:
        return pack_apart(matrix.T, start, gaps, base)

    monkeypatch.setitem(globals(), "packed", packed)
    multiply(128, ("f32", "f16", "f16"), k_major=(False, False))


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)])
@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("in_registers", [True, False])
def test_signs(signs: tuple[int, int], adds: bool, in_registers: bool) -> None:
    for types in (("f32", "f16", "f16"), ("f32", "tf32", "tf32")):
        multiply(40, types, signs=signs, adds=adds, in_registers=in_registers)


def test_integers_stop_at_the_ends_of_their_range() -> None:
    multiply(64, ("s32", "s8", "s8"), saturates=True)


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("schedule", ["ascending", "descending", "random(3)"])
def test_schedules(visibility: str, schedule: str) -> None:
    """Where the warps of the warpgroup run one after the other."""
    run_one = partial(multiply, visibility=visibility, schedule=schedule)
    run_one(64, ("f32", "f16", "f16"), k_major=(False, True))
    run_one(24, ("s32", "u8", "s8"), in_registers=True)


def test_bits() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.integers(0, 256, (2, 64, 32)).astype(np.uint8)
    parts = [pack_k_major(a, 0, "128"), pack_k_major(b, 16384, "32")]
    old = generator.integers(0, 1000, (64, 64)).astype(np.int32)
    wanted = old + np.array(
        [[int(np.bitwise_count(x & y).sum()) for y in b] for x in a]
    )
    code = (
        f"mov.b64 %x, {parts[0].descriptor}; mov.b64 %y, {parts[1].descriptor};\n"
        "setp.eq.b32 %p0, 0, 0;\n"
    )
    wgmma = (
        "wgmma.mma_async.sync.aligned.m64n64k256.s32.b1.b1.and.popc "
        f"{vector('d', 32)}, %x, %y, %p0;"
    )
    code += FENCES.format(wgmma) + WAIT
    d = accumulators(old, 1).view(np.uint32).reshape(128, -1)
    got, result = run(code, together(parts, [0, 16384]), d)
    assert result.hazards == ()
    expected = accumulators(wanted.astype(np.int32), 1).reshape(128, -1)
    np.testing.assert_array_equal(got.view(np.int32), expected)


FORM = "wgmma.mma_async.sync.aligned.{} {}, %x, %y, %p0{};"


@pytest.mark.parametrize(
    ("opcode", "count", "tail"),
    [
        ("m64n12k16.f32.f16.f16", 6, ", 1, 1, 0, 0"),
        ("m64n264k16.f32.f16.f16", 132, ", 1, 1, 0, 0"),
        ("m64n40k32.s32.s8.s8", 20, ""),
        ("m64n8k8.f32.f16.f16", 4, ", 1, 1, 0, 0"),
        ("m64n8k16.f16.bf16.bf16", 2, ", 1, 1, 0, 0"),
        ("m64n8k16.f32.f16.bf16", 4, ", 1, 1, 0, 0"),
        ("m64n8k16.f32.f16.f16", 4, ", 1, 1"),
        ("m64n8k16.f32.f16.f16", 4, ", 2, 1, 0, 0"),
        ("m64n8k16.f32.f16.f16", 5, ", 1, 1, 0, 0"),
        ("m64n8k32.f32.e4m3.e4m3", 4, ", 1, 1, 0, 0"),
        ("m64n8k256.s32.b1.b1.xor.popc", 4, ""),
        ("m64n8k8.satfinite.f32.tf32.tf32", 4, ", 1, 1"),
    ],
)
def test_forms_that_do_not_exist(opcode: str, count: int, tail: str) -> None:
    registers = f"{{{', '.join(f'%d{i % 128}' for i in range(count))}}}"
    body = ".reg .b32 %d<128>; .reg .b64 %x, %y; .reg .pred %p0;"
    text = module(body + FORM.format(opcode, registers, tail), target="sm_90a")
    with pytest.raises(EmulationError, match="not supported by the emulator: wgmma"):
        prepare(text)


def test_sparse_ones_are_refused_by_name() -> None:
    body = (
        ".reg .b32 %d<4>, %m; .reg .b64 %x, %y; .reg .pred %p0;"
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%d0, %d1, %d2, %d3}, "
        "%x, %y, %m, 0, %p0, 1, 1, 0, 0;"
    )
    with pytest.raises(EmulationError, match="wgmma of a sparse matrix"):
        prepare(module(body, target="sm_90a"))


def test_other_targets_have_none() -> None:
    text = module(".reg .b32 %d<4>;\nwgmma.fence.sync.aligned;", target="sm_90")
    with pytest.raises(EmulationError, match=r"sm_90: only sm_90a has it"):
        prepare(text)
