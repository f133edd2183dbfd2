"""Instructions among the lanes of a warp: shuffles, votes, matches, reductions.

PTX ISA "Parallel Synchronization and Communication Instructions" (shfl.sync,
vote.sync, match.sync, redux.sync, activemask, elect.sync). The scheduler has brought
the lanes of the member mask together before any of these runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, S64, U32, Array
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.warps import LANE_BIT, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    Pair,
    unsupported,
)

LANE = np.arange(32, dtype=np.int64).reshape(1, 1, 32)


def _exchange(
    t: Translator,
    ins: Instruction,
    fn: Callable[..., tuple[Array, Array | None]],
    *types: Scalar,
    to: np.dtype = U32,
) -> Op:
    """`d` and perhaps `|p` become fn(lanes that take part, the operands of `types`).

    The last operand is the member mask. `fn` gives None where there is no p.
    """
    first = ins.operands[0]
    target, flag = first if isinstance(first, Pair) else (first, Name("_"))
    write, write_flag = t.writer(target, to, ins), t.writer(flag, BOOL, ins)
    *reads, who = t.sources(ins, *types, U32T)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        mask_of, given = who(R), [read(R) for read in reads]
        for on in _groups(mask, mask_of):
            part = members(cohort, on, mask_of, ins)
            value, holds = fn(part, *given)
            write(cohort, value, on)
            if holds is not None:
                write_flag(cohort, holds, on)

    return run


def _groups(mask: Mask, member_mask: Array) -> Iterator[Mask]:
    """The lanes that give one member mask, for each: parts of a warp may differ."""
    if member_mask.shape[2] == 1:
        yield mask
        return
    on = np.ones((1, 1, 1), bool) if mask is None else mask
    given, on = np.broadcast_arrays(member_mask, on)
    for value in np.unique(given[on]):
        part = on & (given == value)
        yield None if part.all() else part


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

    def fn(_: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        source, inside = _source_lane(ins.parts[2], b, c)
        value, source = np.broadcast_arrays(all_lanes(a), source)
        return np.take_along_axis(value, source, axis=2), inside

    return _exchange(t, ins, fn, U32T, U32T, U32T)


VOTES = ("all", "any", "uni", "ballot")


def vote(t: Translator, ins: Instruction) -> Op:
    mode = next((part for part in ins.parts[1:3] if part in VOTES), None)
    if mode is None:
        raise unsupported(ins)

    def fn(part: Array, holds: Array) -> tuple[Array, None]:
        if mode == "ballot":
            return to_bits(part & holds), None
        every = np.asarray((holds | ~part).all(2, keepdims=True))
        some = np.asarray((holds & part).any(2, keepdims=True))
        return {"all": every, "any": some, "uni": every | ~some}[mode], None

    return _exchange(t, ins, fn, PRED, to=U32 if mode == "ballot" else BOOL)


def match_values(t: Translator, ins: Instruction) -> Op:
    """match.any: the lanes with the same value; match.all: all lanes, if equal."""

    def fn(part: Array, a: Array) -> tuple[Array, Array | None]:
        value = all_lanes(a)
        same = (value[..., :, None] == value[..., None, :]) & part[..., None, :]
        bits = np.where(same, LANE_BIT, U32.type(0)).sum(-1, dtype=U32)
        if ins.parts[1] == "any":
            return bits, None
        whole = to_bits(part)
        agree = ((bits == whole) | ~part).all(2, keepdims=True)
        return np.where(agree, whole, U32.type(0)), agree

    return _exchange(t, ins, fn, ins.type)


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
    reduce, neutral = _REDUCE[name]
    info = np.iinfo(scalar.dtype)
    if neutral is None:
        neutral = int(info.max if name == "min" else info.min)
    fill = np.array(neutral & 0xFFFFFFFF, U32).view(scalar.dtype)

    def fn(part: Array, a: Array) -> tuple[Array, None]:
        value = np.where(part, all_lanes(a), fill)
        return reduce(value, axis=2, keepdims=True, dtype=scalar.dtype).view(U32), None

    return _exchange(t, ins, fn, scalar)


def active_mask(t: Translator, ins: Instruction) -> Op:
    write = t.writer(ins.operands[0], U32, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        on = np.ones((1, 1, 32), bool) if mask is None else all_lanes(mask)
        write(cohort, to_bits(on), mask)

    return run


def elect(t: Translator, ins: Instruction) -> Op:
    """elect.sync d|p: the lowest lane of the member mask leads."""

    def fn(part: Array) -> tuple[Array, Array]:
        leader = part.argmax(axis=2)[..., None]
        return leader.astype(U32), LANE == leader

    return _exchange(t, ins, fn)
