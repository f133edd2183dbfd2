"""tensormap.replace, tensormap.cp_fenceproxy, and the fences of tensor maps.

PTX ISA "tensormap.replace", "tensormap.cp_fenceproxy", "fence.proxy.tensormap". A field
is replaced by a read and a write of the whole map. Strides are in bytes, as ptxas of
CUDA 12.5 and later has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, U8, U64, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.copies.bulk_pieces import (
    CHUNK,
    check_shared,
)
from alcop_mlir.runtime.emulator.instructions.memory import memory_space
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW
from alcop_mlir.runtime.emulator.machine.tensor_map import FIELDS, SIZE, TYPES, Field
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, U32T, U64T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Operand,
    unsupported,
)

ALIGNMENT = 64  # bytes: CUDA Driver API, CUtensorMap
_ANY = 2**63 - 1  # no address is as large
_STEPS = np.arange(0, SIZE, CHUNK)
# PTX ISA "tensormap.replace", table of new values: types by number. Those of f32 and
# tf32 that flush subnormals (8 and 12) have no row.
_ELEMENTS = {
    **dict(enumerate(TYPES[:8])),
    **dict(enumerate(("f64", "bf16", "tf32"), start=9)),
}
_CODES = {
    "swizzle_mode": range(4),
    "fill_mode": range(2),
    "interleave_layout": range(3),
}


class _Change(NamedTuple):
    """A new value for each lane; `at`: where it goes, `limit`: the first too large."""

    at: Field
    values: Callable[[Cohort, Lanes], Array]
    limit: int


def replace(t: Translator, ins: Instruction) -> Op:
    """tensormap.replace."""
    name, where, changes = ins.parts[3], ins.operands[0], _changes(t, ins)
    address, _ = t.base_address(where, ins)
    space = memory_space(t, ins, where)

    def run(cohort: Cohort, mask: Mask) -> None:
        given = Access(cohort, mask, address(cohort.R), space, CHUNK, ins)
        parts = access.split_generic(given) if space == "generic" else [given]
        for part in parts:
            if part.space not in ("shared", "global"):
                raise unsupported(ins, f"a map in {part.space} memory")
            maps = _Maps.at(part)
            raw = maps.read()
            for change in changes:
                values = change.values(cohort, maps.lanes)
                high = values >= change.limit
                if high.any():
                    entry = int(high.argmax())
                    why = f"{name} {int(values[entry])} of a tensor map is too large,"
                    raise lane_fault(maps.lanes, entry, why)
                change.at.put(raw, values)
            maps.write(raw)
            if not maps.is_shared:
                cohort.batch.map_views.change(maps.addresses())

    return run


def _changes(t: Translator, ins: Instruction) -> list[_Change]:
    """The fields that change, and their new values."""
    parts, operands = ins.parts, ins.operands
    if parts[2] != "tile" or "b1024" not in parts:
        raise unsupported(ins)
    name, new = parts[3], operands[-1]
    if name in ("elemtype", *_CODES):
        return _constants(ins, name, new)
    if name not in FIELDS:
        raise unsupported(ins)
    at = FIELDS[name]
    if at.dimensions > 1:
        order = operands[1]
        if not isinstance(order, Integer) or not 0 <= order.value < at.dimensions:
            raise unsupported(ins, f"expected one of {at.dimensions} dimensions")
        at = at.of(order.value)
    read = t.read(new, U64T if at.size == 8 else U32T, ins)
    # The rank is given as one less; sizes are kept so.
    added = {"rank": 1, "global_dim": -1}.get(name, 0)

    def values(cohort: Cohort, lanes: Lanes) -> Array:
        return (lanes.pick(read(cohort.R)).astype(np.int64) + added) & _ANY

    limits = {"rank": 6, "global_dim": _ANY, "global_address": _ANY}
    limits |= {"global_stride": 1 << 40}
    return [_Change(at, values, limits.get(name, 1 << 8 * at.size))]


def _constants(ins: Instruction, name: str, new: Operand) -> list[_Change]:
    if not isinstance(new, Integer):
        raise unsupported(ins, "expected an immediate value")
    code = new.value
    if name != "elemtype":
        if code not in _CODES[name]:
            raise unsupported(ins, f"{name} {code} of tensor maps")
        return [_constant(name, code)]
    if code not in _ELEMENTS:
        raise unsupported(ins, f"elemtype {code} of tensor maps")
    element = _ELEMENTS[code]
    return [
        _constant("elemtype", TYPES.index(element)),
        _constant("item", SCALARS[element].size),
    ]


def _constant(name: str, value: int) -> _Change:
    return _Change(
        FIELDS[name], lambda _, lanes: np.full(lanes.offset.size, value), 256
    )


def copy_and_release(t: Translator, ins: Instruction) -> Op:
    """tensormap.cp_fenceproxy: by a warp as one, its first lane says where."""
    to, given, size = ins.operands
    if not isinstance(size, Integer) or size.value != SIZE:
        raise unsupported(ins, f"expected a size of {SIZE}")
    destination, _ = t.base_address(to, ins)
    source, _ = t.base_address(given, ins)
    first = np.arange(LANES) == 0

    def run(cohort: Cohort, mask: Mask) -> None:
        on = first[None, None] if mask is None else mask & first
        on = np.broadcast_to(on, (len(on), cohort.warps, LANES))
        R = cohort.R
        here = _Maps.at(Access(cohort, on, source(R), "shared", CHUNK, ins))
        there = _Maps.at(Access(cohort, on, destination(R), "global", CHUNK, ins))
        there.write(here.read(collective=True))
        cohort.batch.map_views.publish(there.addresses())

    return run


def fence_maps(t: Translator, ins: Instruction) -> Op:
    """fence.proxy.tensormap::generic, of either kind."""
    views = "acquire" in ins.parts
    if not views:
        return lambda cohort, mask: cohort.batch.map_views.release()
    address, _ = t.base_address(ins.operands[0], ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        given = Access(cohort, mask, address(cohort.R), "global", CHUNK, ins)
        maps = _Maps.at(given)
        access.check_global(cohort, maps.pieces())
        blocks = cohort.batch.numbers[maps.lanes.block()]
        addresses = maps.lanes.offset + GLOBAL_WINDOW
        for pair in set(zip(blocks.tolist(), addresses.tolist(), strict=True)):
            cohort.batch.map_views.acquire(*pair)

    return run


# --- the bytes of maps --------------------------------------------------------------


class _Maps(NamedTuple):
    """A map for each of these lanes, in shared or global memory."""

    cohort: Cohort
    lanes: Lanes
    is_shared: bool

    @classmethod
    def at(cls, given: Access) -> _Maps:
        """Those at the addresses of an access, aligned as the driver has them."""
        cohort, is_shared = given.cohort, given.space == "shared"
        if is_shared:
            lanes = access.shared_lanes(given).widened()
        else:
            offset = given.for_each(access.global_offset(given.address))
            lanes = Lanes.of(cohort, offset, given.mask, CHUNK, given.ins).widened()
        is_odd = lanes.offset % ALIGNMENT != 0  # so is the global window
        if is_odd.any():
            entry = int(is_odd.argmax())
            at = int(lanes.offset[entry]) + (0 if is_shared else GLOBAL_WINDOW)
            why = f"a tensor map at address 0x{at:x}, no multiple of {ALIGNMENT},"
            raise lane_fault(lanes, entry, why)
        if is_shared:
            check_shared(cohort, lanes, SIZE)
        return cls(cohort, lanes, is_shared)

    def pieces(self) -> Lanes:
        return self.lanes.spread(self.lanes.offset[:, None] + _STEPS, CHUNK)

    def read(self, collective: bool = False) -> Array:
        """Their bytes, (lanes, 128)."""
        batch, pieces = self.cohort.batch, self.pieces()
        if self.is_shared:
            if batch.shadow is not None:
                batch.shadow.on_read(pieces, collective)
            access.note_shared(self.cohort, pieces)
            data = access.read_shared(self.cohort, pieces)
        else:
            access.check_global(self.cohort, pieces)
            if batch.global_shadow is not None:
                batch.global_shadow.on_read(pieces)
            access.note_global(self.cohort, pieces)
            data = batch.memory.views[CHUNK].take(pieces.offset // CHUNK)
        return np.ascontiguousarray(data).reshape(-1).view(U8).reshape(-1, SIZE).copy()

    def write(self, raw: Array) -> None:
        """Writes bytes (lanes, 128)."""
        batch, pieces = self.cohort.batch, self.pieces()
        data = raw.reshape(-1).view(MOVED_AS[CHUNK])
        if not self.is_shared:
            access.check_written(self.cohort, pieces)
            access.put_global(self.cohort, pieces, data)
            return
        met = None if batch.shadow is None else batch.shadow.on_write(pieces)
        access.note_shared(self.cohort, pieces)
        access.write_shared(self.cohort, pieces, data)
        if batch.shadow is not None and met is not None:
            lost = access.read_shared(self.cohort, pieces).view(U64) != data.view(U64)
            entry = int((lost if lost.any() else met.repeat(2)).argmax()) // 2
            batch.shadow.report_overlap(pieces, entry, differ=bool(lost.any()))

    def addresses(self) -> list[int]:
        """Of those in global memory, each once."""
        return (np.unique(self.lanes.offset) + GLOBAL_WINDOW).tolist()
