"""Instructions that exchange values between the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from kernel_text import LANE, run_kernel, run_lanes
from operand_values import FIXED, check_lanes, seeds, signed, wrap

WARPS = 16
LANES = 32
Warp = list[int]
EVERY_LANE = 0xFFFFFFFF


def draw(seed: int, limit: int = 1 << 32, warps: int = WARPS) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.integers(0, limit, warps * LANES).astype(np.uint32)


def in_warps(values: np.ndarray) -> list[Warp]:
    return values.reshape(-1, LANES).tolist()


def check(
    text: str,
    inputs: dict[str, np.ndarray],
    model: Callable[..., tuple[Warp, ...]],
    outputs: str = "d",
    target: str = "sm_80",
) -> None:
    """The model takes a warp's inputs and returns the warp's outputs."""
    registers = {name: ("b32", values) for name, values in inputs.items()}
    got = run_lanes(text, registers, dict.fromkeys(outputs, "b32"), target=target)
    columns = [values.tolist() for values in inputs.values()]
    wanted: dict[str, list[int | None]] = {name: [] for name in outputs}
    for warp in zip(*map(in_warps, inputs.values()), strict=True):
        for name, values in zip(outputs, model(*warp), strict=True):
            wanted[name].extend(wrap(value, 32) for value in values)
    for name in outputs:
        check_lanes(got[name], wanted[name], columns)


def shuffle(mode: str) -> Callable[..., tuple[Warp, Warp]]:
    """The pseudo code of shfl.sync in the PTX ISA."""

    def model(values: Warp, amounts: Warp, controls: Warp) -> tuple[Warp, Warp]:
        results, inside = [], []
        for lane in range(LANES):
            amount, clamp = amounts[lane] & 31, controls[lane] & 31
            segment = controls[lane] >> 8 & 31
            highest = lane & segment | clamp & ~segment & 31
            lowest = lane & segment
            if mode == "up":
                source = lane - amount
                valid = source >= highest
            elif mode == "down":
                source = lane + amount
                valid = source <= highest
            elif mode == "bfly":
                source = lane ^ amount
                valid = source <= highest
            else:
                source = lowest | amount & ~segment & 31
                valid = source <= highest
            results.append(values[source if valid else lane])
            inside.append(int(valid))
        return results, inside

    return model


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@FIXED
@given(seed=seeds)
def test_shfl_random_amounts_and_segments(mode: str, seed: int) -> None:
    """Each warp has segments of its own; each lane its own amount."""
    controls = np.repeat(draw(seed + 2, 32 * 256)[:WARPS] & np.uint32(0x1F1F), LANES)
    inputs = {"a": draw(seed), "b": draw(seed + 1, 64), "c": controls}
    text = f"shfl.sync.{mode}.b32 %d|%q0, %a, %b, %c, -1; selp.u32 %e, 1, 0, %q0;"
    check(text, inputs, shuffle(mode), "de")


@pytest.mark.parametrize(
    ("mode", "control"), [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)]
)
@pytest.mark.parametrize("width", [32, 16, 8, 4, 2])
def test_shfl_as_cuda_uses_it(mode: str, control: int, width: int) -> None:
    control |= (32 - width) << 8
    inputs = {"a": draw(1), "b": np.repeat(np.arange(16, dtype=np.uint32) * 3, LANES)}

    def model(values: Warp, amounts: Warp) -> tuple[Warp]:
        return (shuffle(mode)(values, amounts, [control] * LANES)[0],)

    check(f"shfl.sync.{mode}.b32 %d, %a, %b, {control}, 0xffffffff;", inputs, model)


def test_shfl_into_the_first_register_there_is() -> None:
    body = """
    .reg .pred %first; .reg .b32 %r; .reg .b64 %out;
    mov.u32 %r, %laneid;
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %r, 4, %out;
    shfl.sync.down.b32 %r|%first, %r, 30, 31, -1;
    @!%first mov.u32 %r, 77;
    st.global.u32 [%out], %r;
    """
    out = np.zeros(32, np.uint32)
    run_kernel(body, ["u64"], [out])
    assert out.tolist() == [30, 31] + [77] * 30


def test_shfl_broadcast_by_hand() -> None:
    """A case worked out without the model: lane 5 of each half goes to its half."""
    values = np.arange(32, dtype=np.uint32) * 10
    text = "shfl.sync.idx.b32 %d, %a, 5, 0x101f, -1;"
    got = run_lanes(text, {"a": ("b32", values)}, {"d": "b32"}, block=32)["d"]
    assert got.tolist() == [50] * 16 + [210] * 16


@pytest.mark.parametrize("negated", [False, True])
@FIXED
@given(seed=seeds)
def test_vote(negated: bool, seed: int) -> None:
    # warps that agree are rare at random: make some
    values = draw(seed, 2)
    values[:LANES], values[LANES : 2 * LANES] = 0, 1

    def model(votes: Warp) -> tuple[Warp, ...]:
        votes = [vote ^ negated for vote in votes]
        ballot = sum(vote << lane for lane, vote in enumerate(votes))
        alike = len(set(votes)) == 1
        return tuple([int(x)] * LANES for x in (all(votes), any(votes), alike, ballot))

    source = "!%q0" if negated else "%q0"
    body = "setp.ne.u32 %q0, %a, 0;\n"
    for mode, name in (("all", "d"), ("any", "e"), ("uni", "f")):
        body += f"vote.sync.{mode}.pred %q1, {source}, -1;"
        body += f"selp.u32 %{name}, 1, 0, %q1;\n"
    body += f"vote.sync.ballot.b32 %g, {source}, 0xffffffff;"
    check(body, {"a": values}, model, "defg")


@pytest.mark.parametrize("bits", [32, 64])
@FIXED
@given(seed=seeds)
def test_match(bits: int, seed: int) -> None:
    values = draw(seed, 5)
    values[:LANES] = 3

    def model(keys: Warp) -> tuple[Warp, Warp, Warp]:
        same = [
            sum((other == key) << lane for lane, other in enumerate(keys))
            for key in keys
        ]
        alike = len(set(keys)) == 1
        return same, [EVERY_LANE if alike else 0] * LANES, [int(alike)] * LANES

    source = "%a"
    body = ""
    if bits == 64:
        # the keys differ only in their upper halves
        body = "mov.u32 %t0, 7; mov.b64 %w0, {%t0, %a};\n"
        source = "%w0"
    body += f"match.any.sync.b{bits} %d, {source}, -1;\n"
    body += f"match.all.sync.b{bits} %e|%q0, {source}, -1; selp.u32 %f, 1, 0, %q0;"
    check(body, {"a": values}, model, "def")


REDUCTIONS: dict[str, Callable[[Warp], int]] = {
    "add.u32": sum,
    "add.s32": sum,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda values: min(signed(value, 32) for value in values),
    "max.s32": lambda values: max(signed(value, 32) for value in values),
    "and.b32": lambda values: int(np.bitwise_and.reduce(values)),
    "or.b32": lambda values: int(np.bitwise_or.reduce(values)),
    "xor.b32": lambda values: int(np.bitwise_xor.reduce(values)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@FIXED
@given(seed=seeds)
def test_redux(name: str, seed: int) -> None:
    values = draw(seed)
    # and / or of 32 random words are all 0 and all 1: keep some bits common
    values[: 4 * LANES] = values[: 4 * LANES] & np.uint32(0xF00F) | np.uint32(0xA0000)

    def model(warp: Warp) -> tuple[Warp]:
        return ([REDUCTIONS[name](warp)] * LANES,)

    check(f"redux.sync.{name} %d, %a, 0xffffffff;", {"a": values}, model)


HALF = """
    .reg .b64 %out;
    .reg .b32 %lane, %r<9>;
    .reg .pred %p, %q, %v;
    ld.param.u64 %out, [p0];
    mov.u32 %lane, %laneid;
    mad.wide.u32 %out, %lane, 16, %out;
    mov.u32 %r0, 111; mov.u32 %r1, 222; mov.u32 %r2, 333; mov.u32 %r3, 444;
    setp.lt.u32 %p, %lane, 16;
    @%p bra LOW;
    activemask.b32 %r3;
    shfl.sync.down.b32 %r0, %lane, 1, 31, 0xffff0000;
    and.b32 %r4, %lane, 1;
    setp.ne.u32 %q, %r4, 0;
    vote.sync.ballot.b32 %r1, %q, 0xffff0000;
    redux.sync.add.u32 %r2, %lane, 0xffff0000;
    bra JOIN;
LOW:
    activemask.b32 %r3;
    shfl.sync.up.b32 %r0, %lane, 1, 0, 0x0000ffff;
    setp.lt.u32 %q, %lane, 3;
    vote.sync.ballot.b32 %r1, %q, 0x0000ffff;
    redux.sync.max.u32 %r2, %lane, 0x0000ffff;
JOIN:
    bar.warp.sync 0xffffffff;
    st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
    ret;
"""


def test_part_of_a_warp() -> None:
    """Both sides of a branch, each with a member mask of its own."""
    out = np.zeros((LANES, 4), np.uint32)
    result = run_kernel(HALF, ["u64"], [out])
    assert result.hazards == ()
    low, high = out[:16], out[16:]
    assert low[:, 0].tolist() == [0, *range(15)]
    assert high[:, 0].tolist() == [*range(17, 32), 31]
    assert set(low[:, 1].tolist()) == {0b111}
    assert set(high[:, 1].tolist()) == {0xAAAA0000}
    assert set(low[:, 2].tolist()) == {15}
    assert set(high[:, 2].tolist()) == {sum(range(16, 32))}
    assert set(low[:, 3].tolist()) == {0x0000FFFF}
    assert set(high[:, 3].tolist()) == {0xFFFF0000}


def test_a_mask_may_name_lanes_that_have_left() -> None:
    """shfl.sync waits for the non-exited threads of its mask only (PTX ISA)."""
    body = """
    .reg .pred %p; .reg .b32 %r, %v; .reg .b64 %out;
    mov.u32 %r, %laneid;
    setp.ge.u32 %p, %r, 20;
    @%p ret;
    shfl.sync.bfly.b32 %v, %r, 1, 31, 0xffffffff;
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %r, 4, %out;
    st.global.u32 [%out], %v;
    """
    out = np.full(32, 99, np.uint32)
    run_kernel(body, ["u64"], [out])
    assert out.tolist() == [lane ^ 1 for lane in range(20)] + [99] * 12


def test_predicated_exchange() -> None:
    """A guarded vote counts only the lanes whose guard holds and that are named."""
    body = """
    setp.lt.u32 %q0, %a, 8;
    mov.u32 %d, 77;
    @%q0 vote.sync.ballot.b32 %d, %q0, 0xff;
    """
    values = np.arange(32, dtype=np.uint32)
    got = run_lanes(body, {"a": ("b32", values)}, {"d": "b32"}, block=32)["d"]
    assert got.tolist() == [0xFF] * 8 + [77] * 24


def test_elect() -> None:
    """One lane of the named ones is chosen: the lowest, on every device so far."""
    body = """
    elect.sync %d|%q0, 0xffffffff;
    selp.u32 %e, 1, 0, %q0;
    """
    values = np.zeros(64, np.uint32)
    got = run_lanes(
        body,
        {"a": ("b32", values)},
        {"d": "b32", "e": "b32"},
        block=64,
        target="sm_90",
        version="8.0",
    )
    assert got["e"].reshape(2, 32).sum(axis=1).tolist() == [1, 1]
    chosen = got["e"].reshape(2, 32).argmax(axis=1)
    assert got["d"].reshape(2, 32).tolist() == [[lane] * 32 for lane in chosen]


def test_special_registers() -> None:
    names = {
        "tid": "xyz",
        "ntid": "xyz",
        "ctaid": "xyz",
        "nctaid": "xyz",
    }
    registers = [f"%{name}.{axis}" for name, axes in names.items() for axis in axes]
    registers += ["%laneid", "%warpid", "WARP_SZ"]
    registers += [f"%lanemask_{name}" for name in ("eq", "le", "lt", "ge", "gt")]
    # linear thread number over the whole grid, then one row of results per thread
    body = """
    .reg .b64 %out; .reg .b32 %r, %n, %m;
    ld.param.u64 %out, [p0];
    mov.u32 %n, %ctaid.z;
    mov.u32 %m, %nctaid.y; mul.lo.u32 %n, %n, %m;
    mov.u32 %m, %ctaid.y; add.u32 %n, %n, %m;
    mov.u32 %m, %nctaid.x; mul.lo.u32 %n, %n, %m;
    mov.u32 %m, %ctaid.x; add.u32 %n, %n, %m;
    mov.u32 %m, %ntid.z; mul.lo.u32 %n, %n, %m;
    mov.u32 %m, %tid.z; add.u32 %n, %n, %m;
    mov.u32 %m, %ntid.y; mul.lo.u32 %n, %n, %m;
    mov.u32 %m, %tid.y; add.u32 %n, %n, %m;
    mov.u32 %m, %ntid.x; mul.lo.u32 %n, %n, %m;
    mov.u32 %m, %tid.x; add.u32 %n, %n, %m;
    """ + f"mad.wide.u32 %out, %n, {4 * len(registers)}, %out;\n"  # fmt: skip
    for place, register in enumerate(registers):
        body += f"mov.u32 %r, {register}; st.global.u32 [%out+{4 * place}], %r;\n"
    grid, block = (3, 2, 2), (8, 4, 3)
    rows = []
    for cz, cy, cx in product(range(2), range(2), range(3)):
        for thread, (z, y, x) in enumerate(product(range(3), range(4), range(8))):
            lane = thread % 32
            masks = [
                1 << lane,
                (2 << lane) - 1,
                (1 << lane) - 1,
                EVERY_LANE ^ ((1 << lane) - 1),
                EVERY_LANE ^ ((2 << lane) - 1),
            ]
            rows.append(
                [x, y, z, *block, cx, cy, cz, *grid, lane, thread // 32, 32, *masks]
            )
    out = np.zeros((len(rows), len(registers)), np.uint32)
    run_kernel(body, ["u64"], [out], grid=grid, block=block)
    np.testing.assert_array_equal(out, np.array(rows, np.uint32))


def test_block_reductions() -> None:
    """barrier.red: a count, an `and` and an `or` over the block's predicates."""
    body = """
    setp.eq.u32 %q0, %a, 3;
    barrier.sync.aligned 0;
    bar.red.popc.u32 %d, 0, %q0;
    bar.red.and.pred %q1, 0, !%q0;
    bar.red.or.pred %q2, 0, %q0;
    selp.u32 %e, 1, 0, %q1;
    selp.u32 %f, 1, 0, %q2;
    """
    values = draw(3, 9, warps=4)
    values[64:] = 1
    got = run_lanes(body, {"a": ("b32", values)}, dict.fromkeys("def", "b32"), block=64)
    count = int((values[:64] == 3).sum())
    assert count > 0
    assert got["d"].tolist() == [count] * 64 + [0] * 64
    assert got["e"].tolist() == [0] * 64 + [1] * 64
    assert got["f"].tolist() == [1] * 64 + [0] * 64


# Parts of a warp that give masks of their own meet in one instruction -----------------

PARTS = """
    and.b32 %lane, %lane, -8;
    mov.u32 %mask, 0xff;
    shl.b32 %mask, %mask, %lane;
"""
IN_PARTS: dict[str, Callable[[Warp], list[int]]] = {
    "redux.sync.add.u32 %d, %a, %mask;": lambda part: [wrap(sum(part), 32)] * 8,
    "redux.sync.min.u32 %d, %a, %mask;": lambda part: [min(part)] * 8,
    "match.any.sync.b32 %d, %a, %mask;": lambda part: [
        sum(1 << i for i, other in enumerate(part) if other == one) for one in part
    ],
    """setp.gt.u32 %odd, %a, 3;
    vote.sync.ballot.b32 %d, %odd, %mask;""": lambda part: (
        [sum(1 << i for i, one in enumerate(part) if one > 3)] * 8
    ),
}


@pytest.mark.parametrize("text", IN_PARTS)
def test_parts_of_a_warp_with_masks_of_their_own(text: str) -> None:
    values = draw(3, limit=6)
    model = IN_PARTS[text]
    shifts = "match" in text or "vote" in text

    def of_warp(warp: Warp) -> tuple[Warp]:
        out: Warp = []
        for first in range(0, LANES, 8):
            found = model(warp[first : first + 8])
            out += [one << first for one in found] if shifts else found
        return (out,)

    declared = ".reg .b32 %lane, %mask; .reg .pred %odd; mov.u32 %lane, %laneid;"
    check(declared + PARTS + text, {"a": values}, of_warp)


def test_a_later_clock_is_later() -> None:
    """Two reads with nothing between them that ends a span."""
    out = np.zeros((32, 2), np.uint64)
    body = """
    mad.wide.u32 %out, %lane, 16, %out;
    mov.u64 %w0, %clock64; add.u32 %t0, %lane, 1; mov.u64 %w1, %clock64;
    st.global.v2.u64 [%out], {%w0, %w1};
    """
    run_kernel(LANE + body, ["u64", "u64"], [out[:1], out])
    assert np.all(out[:, 1] > out[:, 0])


@pytest.mark.parametrize("spelling", ["vote.sync.ballot.b32", "vote.ballot.sync.b32"])
def test_both_spellings_of_a_vote(spelling: str) -> None:
    values = draw(8, limit=2)
    check(
        f".reg .pred %odd; setp.ne.u32 %odd, %a, 0; {spelling} %d, %odd, -1;",
        {"a": values},
        lambda warp: ([sum(one << i for i, one in enumerate(warp))] * LANES,),
    )
