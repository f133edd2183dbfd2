"""Instructions among the lanes of a warp: shuffles, votes, matches, reductions.

PTX ISA "Parallel Synchronization and Communication Instructions" (shfl.sync,
vote.sync, match.sync, redux.sync, activemask, elect.sync). The scheduler has brought
the lanes of the member mask together before any of these runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, S64, U32
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator, Write
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    Pair,
    unsupported,
)

Array = np.ndarray
LANE = np.arange(32, dtype=np.int64).reshape(1, 1, 32)
LANE_BIT = (np.uint32(1) << np.arange(32, dtype=np.uint32)).reshape(1, 1, 32)


def _writers(t: Translator, ins: Instruction) -> tuple[Write, Write]:
    """How to write the first operand: `d` (32 bits), or `d|p` with a predicate."""
    first = ins.operands[0]
    to, flag = first if isinstance(first, Pair) else (first, Name("_"))
    return t.writer(to, U32, ins), t.writer(flag, BOOL, ins)


def all_lanes(x: Array) -> Array:
    """A register with its lane axis spelled out."""
    return x if x.shape[2] == 32 else np.broadcast_to(x, (*x.shape[:2], 32))


def members(cohort: Cohort, mask: Mask, member_mask: Array, ins: Instruction) -> Array:
    """Which lanes take part: those in the member mask that execute.

    PTX ISA: a lane that executes the instruction has to be in its own mask.
    """
    inside = (member_mask & LANE_BIT) != 0
    absent = ~inside if mask is None else ~inside & mask
    if absent.any():
        place = location_of_mask(cohort, absent)
        raise fault(ins, "the lane is not in the member mask it gives", place)
    return inside if mask is None else inside & mask


def to_bits(lanes: Array) -> Array:
    """A lane mask as one 32-bit number per warp."""
    return np.where(lanes, LANE_BIT, U32.type(0)).sum(2, keepdims=True, dtype=U32)


def _source_lane(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """The lane that each lane reads, and whether it lies in range (PTX ISA, shfl)."""
    b, limit = b.astype(S64) & 31, c.astype(S64) & 31
    segment = (c.astype(S64) >> 8) & 31
    last = (LANE & segment) | (limit & ~segment)
    source = {
        "up": LANE - b,
        "down": LANE + b,
        "bfly": LANE ^ b,
        "idx": (LANE & segment) | (b & ~segment),
    }[mode]
    inside = source >= last if mode == "up" else source <= last
    return np.where(inside, source, LANE), inside


def shuffle(t: Translator, ins: Instruction) -> Op:
    if ins.parts[2] not in ("up", "down", "bfly", "idx"):
        raise unsupported(ins)
    mode = ins.parts[2]
    write, write_flag = _writers(t, ins)
    a, b, c, who = t.sources(ins, U32T, U32T, U32T, U32T)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        members(cohort, mask, who(R), ins)
        value = all_lanes(a(R))
        source, inside = _source_lane(mode, b(R), c(R))
        shape = np.broadcast_shapes(value.shape, source.shape)
        value, source = np.broadcast_to(value, shape), np.broadcast_to(source, shape)
        write(cohort, np.take_along_axis(value, source, axis=2), mask)
        write_flag(cohort, inside, mask)

    return run


def vote(t: Translator, ins: Instruction) -> Op:
    mode = ins.parts[2]
    p, who = t.sources(ins, PRED, U32T)
    write = t.writer(ins.operands[0], U32 if mode == "ballot" else BOOL, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        part = members(cohort, mask, who(cohort.R), ins)
        holds = p(cohort.R)
        if mode == "ballot":
            out = to_bits(part & holds)
        else:
            every = np.asarray((holds | ~part).all(2, keepdims=True))
            some = np.asarray((holds & part).any(2, keepdims=True))
            out = {"all": every, "any": some, "uni": every | ~some}[mode]
        write(cohort, out, mask)

    return run


def match_values(t: Translator, ins: Instruction) -> Op:
    """match.any: the lanes with the same value; match.all: all lanes, if equal."""
    every = ins.parts[1] == "all"
    write, write_flag = _writers(t, ins)
    a, who = t.sources(ins, ins.type, U32T)

    def run(cohort: Cohort, mask: Mask) -> None:
        part = members(cohort, mask, who(cohort.R), ins)
        value = all_lanes(a(cohort.R))
        same = (value[..., :, None] == value[..., None, :]) & part[..., None, :]
        bits = np.where(same, LANE_BIT[0], U32.type(0)).sum(-1, dtype=U32)
        if every:
            whole = to_bits(part)
            agree = ((bits == whole) | ~part).all(2, keepdims=True)
            bits = np.where(agree, whole, U32.type(0))
            write_flag(cohort, agree, mask)
        write(cohort, bits, mask)

    return run


_REDUCE: dict[str, tuple[Callable[..., Array], int | None]] = {
    # The neutral element; None where it depends on the type.
    "add": (np.add.reduce, 0),
    "and": (np.bitwise_and.reduce, -1),
    "or": (np.bitwise_or.reduce, 0),
    "xor": (np.bitwise_xor.reduce, 0),
    "min": (np.minimum.reduce, None),
    "max": (np.maximum.reduce, None),
}


def reduce_values(t: Translator, ins: Instruction) -> Op:
    name, scalar = ins.parts[2], ins.type
    if name not in _REDUCE or scalar.kind == "f":
        raise unsupported(ins)
    fn, neutral = _REDUCE[name]
    info = np.iinfo(scalar.dtype)
    if neutral is None:
        neutral = int(info.max if name == "min" else info.min)
    fill = np.array(neutral & 0xFFFFFFFF, U32).view(scalar.dtype)
    write = t.writer(ins.operands[0], U32, ins)
    a, who = t.sources(ins, scalar, U32T)

    def run(cohort: Cohort, mask: Mask) -> None:
        part = members(cohort, mask, who(cohort.R), ins)
        value = np.where(part, all_lanes(a(cohort.R)), fill)
        out = fn(value, axis=2, keepdims=True, dtype=scalar.dtype)
        write(cohort, out.view(U32), mask)

    return run


def active_mask(t: Translator, ins: Instruction) -> Op:
    write = t.writer(ins.operands[0], U32, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        on = np.ones((1, 1, 32), bool) if mask is None else all_lanes(mask)
        write(cohort, to_bits(on), mask)

    return run


def elect(t: Translator, ins: Instruction) -> Op:
    """elect.sync d|p: the lowest lane of the member mask leads."""
    write, write_flag = _writers(t, ins)
    (who,) = t.sources(ins, U32T)

    def run(cohort: Cohort, mask: Mask) -> None:
        part = members(cohort, mask, who(cohort.R), ins)
        leader = part.argmax(axis=2)[..., None]
        write(cohort, leader.astype(U32), mask)
        write_flag(cohort, LANE == leader, mask)

    return run
