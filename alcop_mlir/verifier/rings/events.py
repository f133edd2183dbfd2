"""Which ops of a kernel synchronise roles, copy, or read slots: `Ops.event`.

Slots are those along the first dimension of the buffers that copies by TMA fill.
Buffers that threads write and TMA reads, to store them, are one slot each, or some of
each warp.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import (
    READ,
    accessed,
    inside,
    root,
    slot_accesses,
)
from alcop_mlir.verifier.accesses import STORE as WRITE
from alcop_mlir.verifier.rings.held import Held
from alcop_mlir.verifier.rings.products import (
    HELD,
    WGMMA,
    is_of_descriptors,
    is_text,
    matrices,
    parts,
    tile,
)
from alcop_mlir.verifier.rings.threads import Threads
from alcop_mlir.verifier.rings.unproven import Unproven
from alcop_mlir.verifier.rings.warp_slots import addressed, warp_slots, written_address
from alcop_mlir.verifier.values import constant

LOAD = "nvgpu.tma.async.load"
STORE = "nvgpu.tma.async.store"
CREATE = "nvgpu.mbarrier.create"
CONTRACT = "vector.contract"
_TRANSFER = "vector.transfer_read"
_WGMMA = "alcop.wgmma"
_REINTERPRET = "memref.reinterpret_cast"
_CLUSTER_ARRIVE, _CLUSTER_WAIT = "nvvm.cluster.arrive", "nvvm.cluster.wait"
_WAIT = "nvgpu.mbarrier.try_wait.parity"
_ALIGNED = ("nvvm.setmaxregister", "nvvm.elect.sync")
_SUMS = 2  # operand of a contraction
# What these do matters not for rings; others of their dialects may.
_HARMLESS = (
    CREATE,
    "nvgpu.mbarrier.get",
    "nvvm.mapa",
    "nvgpu.tma.prefetch.descriptor",
    "nvgpu.tma.create.descriptor",
    "nvvm.prefetch",
)
# Beginnings of names: ops that may synchronise, copy, or run anything.
_MAY_MATTER = (
    "nvgpu.mbarrier.", "nvgpu.tma.", "nvgpu.warpgroup.", "nvgpu.device_async",
    "nvvm.mbarrier", "nvvm.cp.async", "nvvm.barrier", "nvvm.wgmma", "nvvm.cluster",
    "nvvm.fence.proxy", "nvvm.inline_ptx", "nvvm.mapa", "nvvm.exit",
    "llvm.call", "func.call", "cf.", "alcop.async", "alcop.producer",
    "alcop.consumer",
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    """What an op does, by numbers that are computed, or known.

    kind:     name of a method of `run.Run`
    operands: values and integers
    data:     what else the method gets
    accumulators:     accumulators that it goes on with
    """

    kind: str
    operands: tuple[Any, ...] = ()
    data: Any = None
    accumulators: Any = None


@dataclass(frozen=True)
class Multiplied:
    """What a wgmma reads.

    tiles:     by its descriptors: the number of the buffer, the buffer, and the matrix
    registers: that hold A
    fenced:    whether it has a `wgmma.fence` of its own
    """

    tiles: tuple[Any, ...]
    registers: frozenset[int]
    fenced: bool


@dataclass(frozen=True)
class Buffer:
    """A buffer that copies by TMA fill: its slots, and elements of each."""

    value: Any
    slots: int
    elements: int
    bits: int

    def __str__(self) -> str:
        return f"'{self.value.type}'"


@dataclass
class Ops:
    """The ops of a kernel that matter for its rings.

    buffers:   those that TMA fills, or stores, numbered
    stored:    those that TMA stores
    groups:    groups of mbarriers, and the number of the first of each
    mbarriers: names of all: full are told of copies, who copies waits for empty ones
    own:       of accesses of slots that warps have for themselves: which, of how many
    held:      registers that hold A
    """

    kernel: Any
    buffers: dict[Any, tuple[int, Buffer]] = field(default_factory=dict)
    groups: dict[Any, tuple[int, int]] = field(default_factory=dict)
    mbarriers: list[str] = field(default_factory=list)
    stored: set[Any] = field(default_factory=set)
    own: dict[Any, tuple[int, int]] = field(default_factory=dict)
    held: Held = field(init=False)

    def __post_init__(self) -> None:
        loads = [op for op in inside(self.kernel) if op.name == LOAD]
        stores = [op for op in inside(self.kernel) if op.name == STORE]
        for op in loads + stores:
            value = root(op.operands[0])
            if value not in self.buffers:
                self.buffers[value] = (len(self.buffers), _buffer(value))
        self.stored = {root(op.operands[0]) for op in stores}
        for op in loads:
            if root(op.operands[0]) in self.stored:
                raise Unproven(op, "fills what TMA stores, too")
        self._find_own()
        self.held = Held(self.kernel)
        full = {op.operands[1] for op in loads}
        copying = {op.block for op in loads}
        waits = (op for op in inside(self.kernel) if op.name == _WAIT)
        empty = {op.operands[0] for op in waits if op.block in copying}
        for op in (one for one in inside(self.kernel) if one.name == CREATE):
            value = op.results[0]
            found = re.search(r"num_barriers = (\d+)", str(value.type))
            count = int(found[1]) if found else 1
            self.groups[value] = (len(self.mbarriers), count)
            kind = "order"
            if value in full or value in empty:
                kind = "full" if value in full else "empty"
            self.mbarriers += [f"{kind}[{number}]" for number in range(count)]

    def _find_own(self) -> None:
        """Find the slots that warps have for themselves."""
        found: dict[Any, list[tuple[Any, Any]]] = {one: [] for one in self.stored}
        for op in inside(self.kernel):
            for buffer, value in self._out(op):
                found[buffer].append((op, value))
        threads = Threads.of(self.kernel) if found else None
        for buffer, accesses in found.items():
            assert threads is not None
            own = warp_slots(accesses, self.buffers[buffer][1], threads)
            self.own |= own or {}

    def _out(self, op: Any) -> list[tuple[Any, Any]]:
        """The buffers on their way out that an op accesses, and by which values."""
        address = written_address(op)
        if address is not None:
            buffer = addressed(address)
            return [(buffer, address)] if buffer in self.stored else []
        if op.name == STORE:
            return [(root(op.operands[0]), op.operands[0])]
        return [
            (root(memref), memref)
            for memref, kind in accessed(op) or ()
            if kind == WRITE and root(memref) in self.stored
        ]

    def event(self, op: Any) -> Event | None:
        """What `op` does; None where that does not matter. Or `Unproven`."""
        if op in self.own and op.name != STORE:
            return self._write(op)
        if op.name in _TABLE:
            return _TABLE[op.name](self, op)
        if op.name in _ALIGNED:
            return Event("meet_warp")
        if op.name == CONTRACT:
            return self._contract(op) if is_wgmma(op) else None
        if op.name in _HARMLESS or is_of_descriptors(op):
            return None
        is_unknown = op.name.startswith(_MAY_MATTER) or is_text(op)
        if is_unknown or written_address(op) is not None:
            raise Unproven(op, f"'{op.name}' is not known")
        return self._accesses(op)

    def _mbarrier(self, op: Any, number: int) -> tuple[int, int]:
        group = self.groups.get(op.operands[number])
        if group is None:
            raise Unproven(op, f"its mbarriers are not of a '{CREATE}' in the kernel")
        return group

    def _initialise(self, op: Any) -> Event:
        _takes(op, 3)
        return Event(
            "initialise", (op.operands[2], op.operands[1]), self._mbarrier(op, 0)
        )

    def _arrive(self, op: Any) -> Event:
        _takes(op, 2)
        return Event("arrive", (op.operands[1], 0, None), self._mbarrier(op, 0))

    def _arrive_far(self, op: Any) -> Event:
        """At an mbarrier of a block of the cluster, by its address there."""
        _takes(op, 1)
        address = op.operands[0]
        index: Any = 0
        maker = _maker(address)
        if maker is not None and maker.name == "llvm.getelementptr":
            _takes(maker, 2)
            if str(maker.attributes["elem_type"]) != "i64":
                raise Unproven(op, "expected an address in steps of 8 bytes")
            index, maker = maker.operands[1], _maker(maker.operands[0])
        block = None
        if maker is not None and maker.name == "nvvm.mapa":
            block, maker = maker.operands[1], _maker(maker.operands[0])
        if maker is not None and maker.name == "llvm.inttoptr":
            maker = _maker(maker.operands[0])
        if maker is None or maker.name != "nvgpu.mbarrier.get":
            raise Unproven(op, "arrives at an address that is not known")
        first, count = self._mbarrier(maker, 0)
        start = constant(maker.operands[1])
        if start is None:
            raise Unproven(op, "arrives at an address that is not known")
        return Event("arrive", (index, 0, block), (first + start, count - start))

    def _expect(self, op: Any) -> Event:
        _takes(op, 3)
        operands = (op.operands[2], op.operands[1], None)
        return Event("arrive", operands, self._mbarrier(op, 0))

    def _wait(self, op: Any) -> Event:
        return Event("wait", (op.operands[3], op.operands[1]), self._mbarrier(op, 0))

    def _finish(self, op: Any) -> Event:
        return Event("finish", (), op.attributes["group"].value)

    def _load(self, op: Any) -> Event:
        """A box into a slot: its first element, and how many."""
        *_, coordinates, _, mask, predicate = op.attributes["operandSegmentSizes"]
        if predicate:
            raise Unproven(op, "has a predicate")
        number, buffer = self.buffers[root(op.operands[0])]
        first, elements = _part(op, buffer)
        if elements * buffer.bits % 8:
            raise Unproven(op, "copies no whole bytes")
        size = elements * buffer.bits // 8
        slot = op.operands[3 + coordinates]
        blocks = op.operands[4 + coordinates] if mask else None
        data = (self._mbarrier(op, 1), number, buffer, elements, size)
        return Event("fill", (slot, first, blocks), data)

    def _meet_cluster(self, op: Any) -> Event | None:
        """Arrive and wait, one right behind the other: what is between has no order."""
        ops = [one.operation for one in op.block.operations]
        place = ops.index(op)
        names = [one.name for one in ops[place - 1 : place + 1] if place]
        if op.name == _CLUSTER_ARRIVE:
            names = [one.name for one in ops[place : place + 2]]
        if names != [_CLUSTER_ARRIVE, _CLUSTER_WAIT]:
            raise Unproven(op, f"expected '{_CLUSTER_WAIT}' behind '{_CLUSTER_ARRIVE}'")
        return Event("meet_cluster") if op.name == _CLUSTER_WAIT else None

    def _contract(self, op: Any) -> Event:
        """A wgmma of tiles that it reads itself; it ends its group, or goes on."""
        slots = [
            read
            for operand in list(op.operands)[:_SUMS]
            for read in self._reads(operand.owner.operation)
        ]
        data = ([number for number, _ in slots], not _goes_on(op))
        accumulators = op.operands[_SUMS]
        return Event("multiply", tuple(slot for _, slot in slots), data, accumulators)

    def _issue(self, op: Any) -> Event:
        """A wgmma behind alcop-lower-mma."""
        found = []
        descriptors, added = parts(op)
        for descriptor, matrix in zip(descriptors, matrices(op), strict=True):
            buffer = tile(op, descriptor)
            if buffer not in self.buffers or buffer in self.stored:
                raise Unproven(op, "reads a tile that no copy by TMA fills")
            found.append((*self.buffers[buffer], matrix))
        registers = self.held.read.get(op, frozenset())
        data = Multiplied(tuple(found), registers, op.name == HELD)
        return Event("issue", (*descriptors,), data, (added, op.results[0]))

    def _store(self, op: Any) -> Event:
        """A copy out of shared memory."""
        *_, predicate = op.attributes["operandSegmentSizes"]
        if predicate:
            raise Unproven(op, "has a predicate")
        number = self.buffers[root(op.operands[0])][0]
        return Event("store", (), (number, self.own.get(op)))

    def _fence_proxy(self, op: Any) -> Event:
        kind = str(op.attributes["kind"])
        if "async" not in kind or "global" in kind:
            raise Unproven(op, "is a fence of no proxy that is known")
        return Event("fence_proxy")

    def _meet_threads(self, op: Any) -> Event:
        """A named barrier of so many threads, or that of the block."""
        number, count, *others = op.attributes["operandSegmentSizes"]
        if len(op.operands) != number + count or any(others):
            raise Unproven(op, "is no plain barrier")
        if not count:
            raise Unproven(op, "expected a number of threads")
        first = op.operands[0] if number else 0
        return Event("meet_threads", (first, op.operands[number]))

    def _meet_lanes(self, op: Any) -> Event:
        """A barrier of all lanes of a warp."""
        if constant(op.operands[0]) not in (-1, 0xFFFFFFFF):
            raise Unproven(op, "is no barrier of the whole warp")
        return Event("meet_warp")

    def _write(self, op: Any) -> Event | None:
        """A write of threads of what TMA stores; of some, as of all of it."""
        written = [buffer for buffer, _ in self._out(op)]
        if not written:
            return None
        own = self.own.get(op)
        return Event("write", (), [(self.buffers[one][0], own) for one in written])

    def _accesses(self, op: Any) -> Event | None:
        """Other accesses of slots than by wgmma."""
        written = self._write(op)
        if written is not None:
            return written
        reads = self._reads(op)
        registers = self.held.written.get(op, frozenset())
        if op.name == _TRANSFER and _is_of_wgmma(op):
            return None
        if not reads and not registers:
            return None
        slots = tuple(slot for _, slot in reads)
        return Event("read", slots, ([number for number, _ in reads], registers))

    def _reads(self, op: Any) -> list[tuple[int, Any]]:
        """The buffers that `op` reads, and which slots."""
        found = []
        for access in slot_accesses(op):
            if access.buffer not in self.buffers or access.buffer in self.stored:
                continue
            number, buffer = self.buffers[access.buffer]
            slot = access.slot if buffer.slots > 1 else 0
            if access.kind != READ or slot is None:
                raise Unproven(op, f"accesses {buffer} in no known way")
            found.append((number, slot))
        return found


_TABLE = {
    "nvgpu.mbarrier.init": Ops._initialise,
    "nvgpu.mbarrier.arrive": Ops._arrive,
    "nvgpu.mbarrier.arrive.expect_tx": Ops._expect,
    _WAIT: Ops._wait,
    "nvvm.wgmma.wait.group.sync.aligned": Ops._finish,
    LOAD: Ops._load,
    "nvvm.mbarrier.arrive": Ops._arrive_far,
    "gpu.barrier": lambda self, op: Event("meet_block"),
    _CLUSTER_ARRIVE: Ops._meet_cluster,
    _CLUSTER_WAIT: Ops._meet_cluster,
    "nvvm.fence.mbarrier.init": lambda self, op: Event("fence_mbarriers"),
    WGMMA: Ops._issue,
    HELD: Ops._issue,
    "nvvm.wgmma.fence.aligned": lambda self, op: Event("fence_registers"),
    "nvvm.wgmma.commit.group.sync.aligned": lambda self, op: Event("commit"),
    "nvvm.fence.proxy": Ops._fence_proxy,
    "nvvm.barrier": Ops._meet_threads,
    "nvvm.bar.warp.sync": Ops._meet_lanes,
    STORE: Ops._store,
    "nvvm.cp.async.bulk.commit.group": lambda self, op: Event("commit_stores"),
    "nvvm.cp.async.bulk.wait_group": lambda self, op: Event(
        "finish_stores", (), op.attributes["group"].value
    ),
}


def _maker(value: Any) -> Any:
    """The op that makes a value; None of a block's argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _takes(op: Any, operands: int) -> None:
    if len(op.operands) != operands:
        raise Unproven(op, "has a predicate")


def is_wgmma(op: Any) -> bool:
    """Whether an op is computed by a warpgroup."""
    return op.name == CONTRACT and _WGMMA in op.attributes


def _is_of_wgmma(read: Any) -> bool:
    """Whether a read of a tile is done by wgmma itself."""
    uses = [use for result in read.results for use in result.uses]
    return bool(uses) and all(
        _WGMMA in use.owner.operation.attributes and use.operand_number < _SUMS
        for use in uses
    )


def _goes_on(op: Any) -> bool:
    """Whether the next wgmma is of the same group: nothing that orders is between, as
    the wait and the release of a slot where the iterations of a loop stand in a row.
    """
    uses = list(op.results[0].uses)
    if len(uses) != 1 or uses[0].operand_number != _SUMS:
        return False
    user = uses[0].owner.operation
    if _WGMMA not in user.attributes or user.block != op.block:
        return False
    ops = [one.operation for one in op.block.operations]
    between = ops[ops.index(op) + 1 : ops.index(user)]
    return not any(one.name in _TABLE or len(one.regions) for one in between)


def _buffer(value: Any) -> Buffer:
    kind = value.type
    shape = list(kind.shape)
    if len(shape) < 3 or not kind.has_static_shape:
        slots, elements = 1, math.prod(shape) if kind.has_static_shape else 0
    else:
        slots, elements = shape[0], math.prod(shape[1:])
    found = re.search(r"\d+", str(kind.element_type))
    return Buffer(value, slots, elements, int(found[0]) if found else 0)


def _part(op: Any, buffer: Buffer) -> tuple[Any, int]:
    """The first element that a copy fills of a buffer, and how many it fills."""
    view = op.operands[0].owner
    if op.operands[0] == buffer.value:
        return 0, buffer.slots * buffer.elements
    if isinstance(view, ir.Block) or view.operation.name != _REINTERPRET:
        raise Unproven(op, f"fills {buffer} in no known way")
    view = view.operation
    sizes: Sequence[int] = list(view.attributes["static_sizes"])
    strides: Sequence[int] = list(view.attributes["static_strides"])
    offset = view.attributes["static_offsets"][0]
    is_dense = all(
        stride == math.prod(sizes[number + 1 :])
        for number, stride in enumerate(strides)
    )
    if view.operands[0] != buffer.value or not is_dense or min(sizes) < 0:
        raise Unproven(op, f"fills {buffer} in no known way")
    is_open = offset == ir.ShapedType.get_dynamic_stride_or_offset()
    return (view.operands[1] if is_open else offset), math.prod(sizes)
