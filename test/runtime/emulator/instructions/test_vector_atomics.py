"""atom and red of vectors, against one element after the other in exact numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from exact_floats import BF16, F16, F32, Format, add, decode, encode, is_nan_bits
from kernel_text import launch, module

from alcop_mlir.errors import EmulationError

THREADS, BLOCKS, CELLS = 64, 2, 3
# type: format of its numbers, how many one element packs, lengths of vectors
TYPES: dict[str, tuple[Format, int, tuple[int, ...]]] = {
    "f32": (F32, 1, (2, 4)),
    "f16": (F16, 1, (2, 4, 8)),
    "bf16": (BF16, 1, (2, 4, 8)),
    "f16x2": (F16, 2, (2, 4)),
    "bf16x2": (BF16, 2, (2, 4)),
}
FORMS = [
    (name, kind, length)
    for kind, (_, _, lengths) in TYPES.items()
    for name in (("add",) if kind == "f32" else ("add", "min", "max"))
    for length in lengths
]


def opcode_of(name: str, kind: str, length: int, space: str = ".global") -> str:
    return f"{space}.{name}{'' if kind == 'f32' else '.noftz'}.v{length}.{kind}"


def registers(name: str, length: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(length)) + "}"


def body_of(opcode: str, bits: int, length: int, address: str = "%cell") -> str:
    """Thread i does it to cell i % CELLS, and stores what it found."""
    part = bits // 8
    size = part * length
    loads = [f"ld.global.b{bits} %b{i}, [%from+{part * i}];" for i in range(length)]
    stores = [f"st.global.b{bits} [%to+{part * i}], %d{i};" for i in range(length)]
    asked = f"{registers('d', length)}, " if opcode.startswith("atom") else ""
    lines = [
        f".reg .b32 %lane, %block, %at; .reg .b{bits} %b<{length}>, %d<{length}>;",
        ".reg .b64 %cell, %from, %to, %policy;",
        "mov.u32 %lane, %tid.x; mov.u32 %block, %ctaid.x;",
        f"mad.lo.u32 %lane, %block, {THREADS}, %lane; rem.u32 %at, %lane, {CELLS};",
        f"ld.param.u64 %cell, [p0]; mad.wide.u32 %cell, %at, {size}, %cell;",
        f"ld.param.u64 %from, [p1]; mad.wide.u32 %from, %lane, {size}, %from;",
        f"ld.param.u64 %to, [p2]; mad.wide.u32 %to, %lane, {size}, %to;",
        "createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;",
        *loads,
        f"{opcode} {asked}[{address}], {registers('b', length)}"
        f"{', %policy' if 'cache_hint' in opcode else ''};",
        *(stores if asked else []),
        "ret;",
    ]
    return "\n".join(lines)


def run(
    opcode: str, length: int, memory: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Memory afterwards, and what each thread found: (..., elements)."""
    bits = 8 * memory.itemsize
    text = module(
        body_of(opcode, bits, length), ["u64"] * 3, target="sm_90", version="8.1"
    )
    memory, found = memory.copy(), np.zeros_like(values)
    result = launch(text, None, (BLOCKS,), (THREADS,), [memory, values, found])
    assert result.hazards == ()
    return memory, found


def draw(fmt: Format, shape: tuple[int, ...], generator: np.random.Generator):
    """Numbers of about one size and, of 16 bits, one in four of any bits at all."""
    exponent = fmt.bias + generator.integers(-3, 4, shape)
    fraction = generator.integers(0, 1 << fmt.fraction_bits, shape)
    sign = generator.integers(0, 2, shape) << (fmt.bits - 1)
    numbers = sign | exponent << fmt.fraction_bits | fraction
    if fmt.bits == 16:
        ends = [0, fmt.sign_bit, 1, fmt.infinity, fmt.quiet_nan, fmt.sign_bit | 3]
        special = np.where(
            generator.integers(0, 2, shape) == 1,
            generator.choice(ends, shape),
            generator.integers(0, 1 << 16, shape),
        )
        numbers = np.where(generator.integers(0, 4, shape) == 0, special, numbers)
    return numbers.astype(np.uint16 if fmt.bits == 16 else np.uint32)


def step(fmt: Format, name: str, old: int, new: int) -> int:
    """One number after the other, as bits."""
    a, b = decode(fmt, old), decode(fmt, new)
    if name == "add":
        return encode(fmt, add(a, b, "rn"))
    if math.isnan(a) or math.isnan(b):
        both = math.isnan(a) and math.isnan(b)
        return fmt.canonical_nan if both else (new if math.isnan(a) else old)
    key = (a, math.copysign(1, a)), (b, math.copysign(1, b))
    is_old = key[0] < key[1] if name == "min" else key[0] > key[1]
    return old if is_old else new


def assert_same(fmt: Format, got: np.ndarray, wanted: np.ndarray) -> None:
    """As bits, but that one NaN is as good as another."""
    for x, y in zip(got.reshape(-1).tolist(), wanted.reshape(-1).tolist(), strict=True):
        assert x == y or (is_nan_bits(fmt, x) and is_nan_bits(fmt, y)), (x, y)


@pytest.mark.parametrize("instruction", ["atom", "red"])
@pytest.mark.parametrize(("name", "kind", "length"), FORMS)
def test_each_element_is_an_atomic(
    instruction: str, name: str, kind: str, length: int
) -> None:
    fmt, packs, _ = TYPES[kind]
    generator = np.random.default_rng(length + len(kind))
    memory = draw(fmt, (CELLS, packs * length), generator)
    values = draw(fmt, (THREADS * BLOCKS, packs * length), generator)
    word = np.dtype(f"u{fmt.bits // 8 * packs}")
    got, found = run(
        instruction + opcode_of(name, kind, length),
        length,
        memory.view(word),
        values.view(word),
    )
    wanted, before = memory.copy(), np.zeros_like(values)
    for thread, given in enumerate(values):
        cell = wanted[thread % CELLS]
        before[thread] = cell
        cell[:] = [
            step(fmt, name, int(old), int(new))
            for old, new in zip(cell, given, strict=True)
        ]
    assert_same(fmt, got.view(values.dtype), wanted)
    assert_same(fmt, found.view(values.dtype), before * (instruction == "atom"))


@pytest.mark.parametrize(
    "opcode",
    [
        "red.add.v2.f32",
        "red.relaxed.gpu.global.add.v2.f32",
        "atom.acq_rel.sys.global.add.v2.f32",
        "atom.global.add.L2::cache_hint.v2.f32",
        "red.global.add.L2::cache_hint.v2.f32",
    ],
)
def test_orders_hints_and_generic_addresses(opcode: str) -> None:
    memory = np.zeros((CELLS, 2), np.float32)
    values = np.random.default_rng(3).integers(-9, 9, (THREADS * BLOCKS, 2))
    got, _ = run(opcode, 2, memory, values.astype(np.float32))
    wanted = [values[cell::CELLS].sum(axis=0) for cell in range(CELLS)]
    np.testing.assert_array_equal(got, wanted)


def run_one(lines: str, memory: np.ndarray, target: str = "sm_90") -> None:
    """One thread; %p is the address of memory."""
    body = f"""
    .reg .b64 %p, %s; .reg .f32 %f<9>; .reg .b16 %h<17>; .reg .b32 %r<17>;
    .shared .align 16 .b8 tile[16];
    ld.param.u64 %p, [p0];
    mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
    {lines}
    ret;
    """
    text = module(body, ["u64"], target=target, version="8.1")
    launch(text, None, (1,), (1,), [memory])


def test_operands_are_read_before_results_are_written() -> None:
    memory = np.array([10, 20, 0, 0], np.float32)
    lines = """atom.global.add.v2.f32 {%f1, %f2}, [%p], {%f2, %f1};
    st.global.v2.f32 [%p+8], {%f1, %f2};"""
    run_one(lines, memory)
    assert memory.tolist() == [12, 21, 10, 20]


def test_results_may_be_dropped() -> None:
    memory = np.array([10, 20, 0, 0], np.float32)
    lines = """atom.global.add.v2.f32 _, [%p], {%f1, %f2};
    atom.global.add.v2.f32 {_, %f3}, [%p], {%f1, 0f40000000};
    st.global.f32 [%p+8], %f3;"""
    run_one(lines, memory)
    assert memory.tolist() == [12, 24, 22, 0]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("red.global.add.v4.f32 [%p+8], {%f1, %f1, %f1, %f1};", "misaligned|aligned"),
        (
            "cvta.shared.u64 %s, tile; red.add.v2.f32 [%s], {%f1, %f2};",
            "vector atomic on shared memory",
        ),
    ],
)
def test_faults(lines: str, why: str) -> None:
    with pytest.raises(EmulationError, match=why):
        run_one(lines, np.zeros(8, np.float32))


# ptxas refuses each of them.
@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("red.shared.add.v2.f32 [tile], {%f1, %f2};", "no `.v2` here"),
        ("red.global.min.v2.f32 [%p], {%f1, %f2};", "no `.min` here"),
        ("red.global.add.v8.f32 [%p], {%f1, %f2};", "no `.v8` here"),
        ("red.global.add.v2.u32 [%p], {%r1, %r2};", "no `.v2` here"),
        ("atom.global.exch.v2.b32 {%r1, %r2}, [%p], {%r1, %r2};", "no `.v2` here"),
        ("red.global.add.v2.f16 [%p], {%h1, %h2};", "lacks `.noftz`"),
        ("red.global.add.noftz.v2.f32 [%p], {%f1, %f2};", "no `.noftz` here"),
        ("red.global.add.v2.f32 [%p], {%f1, %f2, %f3};", "2 elements"),
        ("red.global.add.v2.f32 [%p], %f1;", "2 elements"),
        ("red.global.add.f32 [%p], {%f1, %f2};", "1 elements"),
        ("atom.global.add.v2.f32 %f1, [%p], {%f1, %f2};", "2 elements"),
        ("atom.global.min.noftz.f16 %h1, [%p], %h2;", "lacks `.v2`, `.v4` or `.v8`"),
    ],
)
def test_what_is_no_form(lines: str, why: str) -> None:
    with pytest.raises(EmulationError, match=why):
        run_one(lines, np.zeros(8, np.float32))


@pytest.mark.parametrize("kind", ["f32", "f16x2"])
def test_they_are_of_sm_90(kind: str) -> None:
    lines = f"red{opcode_of('add', kind, 2)} [%p], {{%r1, %r2}};"
    with pytest.raises(EmulationError, match="sm_90"):
        run_one(lines, np.zeros(8, np.float32), target="sm_89")
