"""Mutants of the IR behind alcop-specialize-warps: one thing of its order is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.bindings import arith, ir

WAIT = "nvgpu.mbarrier.try_wait.parity"
ARRIVE = "nvgpu.mbarrier.arrive"
EXPECT = "nvgpu.mbarrier.arrive.expect_tx"
INIT = "nvgpu.mbarrier.init"
LOAD = "nvgpu.tma.async.load"
FINISH = "nvvm.wgmma.wait.group.sync.aligned"
BARRIER = "gpu.barrier"
FENCE = "nvvm.fence.mbarrier.init"
FAR, BLOCK, PLACE = "nvvm.mbarrier.arrive", "nvvm.mapa", "llvm.getelementptr"
MEET = "nvvm.cluster.wait"
_LEFT_OUT = (WAIT, ARRIVE, EXPECT, INIT, LOAD, FINISH, BARRIER, FENCE, FAR)
_TWICE = (ARRIVE, EXPECT, LOAD, INIT, FAR)
# Operands: of the slot, the parity, the count of arrivals or bytes.
_SLOT = {WAIT: 3, ARRIVE: 1, EXPECT: 2, INIT: 2, PLACE: 1}
_NUMBER = {INIT: 1, EXPECT: 1}
_PARITY = 1
_SLOTS = 4
_INITS = 2  # others are as these are


@dataclass(frozen=True)
class Mutant:
    """One change, and its name."""

    name: str
    apply: Callable[[], None]


def mutants(launch: ir.Operation) -> Iterator[Mutant]:
    """All mutants of a kernel; each is applied at most once, to a module of its own."""
    ops = [*_inside(launch)]
    seen: dict[str, int] = {}
    inits = [op for op in ops if op.name == INIT]
    for op in ops:
        if op in inits[_INITS:]:
            continue
        for what, change in _changes(op):
            name = f"{op.name} {what}"
            seen[name] = seen.get(name, 0) + 1
            yield Mutant(f"{name}, {seen[name]}", change)


def _inside(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for one in block.operations:
                yield one.operation
                yield from _inside(one.operation)


def _changes(op: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    if op.name in _LEFT_OUT:
        yield "left out", op.erase
    if op.name in _TWICE:
        yield "twice", lambda: _copy(op)
    if op.name in _SLOT:
        number = _SLOT[op.name]
        yield "slot + 1", lambda: _next_slot(op, number)
        if constant(op.operands[number]) != 0:
            yield "slot 0", lambda: _set(op, number, 0)
    if op.name in _NUMBER:
        for step in (-1, 1):
            yield f"number {step:+}", lambda step=step: _add(op, _NUMBER[op.name], step)
    if op.name == WAIT:
        yield "other parity", lambda: _negate(op, _PARITY)
    if op.name == MEET:
        yield "left out", lambda: _left_out_with_last(op)
    if op.name == BLOCK:
        yield "block 0", lambda: _set(op, 1, 0)
    if op.name == LOAD and str(op.operands[len(op.operands) - 1].type) == "i16":
        for mask in (1, 2):
            number = len(op.operands) - 1
            yield f"mask {mask}", lambda n=number, mask=mask: _set(op, n, mask)
    if op.name == LOAD:
        yield "into the slot of another", lambda: _other_target(op)
    if op.name == FINISH:
        for step in (-1, 1):
            if op.attributes["group"].value + step >= 0:
                yield f"{step:+}", lambda step=step: _regroup(op, step)
    if op.name == "scf.for":
        yield from _of_loop(op)
    if op.name == "arith.cmpi" and constant(op.operands[1]) is not None:
        if str(op.operands[1].type) == "i32":
            for step in (-1, 1):
                yield f"number {step:+}", lambda step=step: _add(op, 1, step)
    if op.name == "scf.if" and _matters(op):
        yield "always", lambda: _always(op)
    if op.name in _LEFT_OUT and op.name not in (INIT, BARRIER, FENCE):
        yield from _moved(op)


def _of_loop(op: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    for place, bound in enumerate(("begin", "end")):
        yield f"{bound} + 1", lambda place=place: _add(op, place, 1)
    yield "end - 1", lambda: _add(op, 1, -1)
    for number, value in enumerate(list(op.operands)[3:], 3):
        kind = str(value.type)
        if kind == "i1":
            yield f"other {number} at first", lambda n=number: _negate(op, n)
        if kind == "i32":
            yield f"next {number} at first", lambda n=number: _next_slot(op, n)
    block = op.regions[0].blocks[0]
    last = list(block.operations)[-1].operation
    for number, value in enumerate(last.operands):
        argument = block.arguments[number + 1]
        if str(value.type) in ("i1", "i32") and value != argument:
            yield f"keeps {number}", lambda n=number, a=argument: _put(last, n, a)


def _moved(op: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Behind the next op that synchronises, and in front of the one before."""
    block = [one.operation for one in op.block.operations]
    place = block.index(op)
    others = [n for n, one in enumerate(block) if _matters(one)]
    later = [n for n in others if n > place]
    earlier = [n for n in others if n < place]
    if later:
        yield "behind the next", lambda: op.move_after(block[later[0]])
    if earlier and not len(op.operands):
        yield "before the last", lambda: op.move_before(block[earlier[-1]])


def _matters(op: Any) -> bool:
    if op.name in (*_LEFT_OUT, MEET) or op.name == "vector.contract":
        return True
    return any(one.name in (*_LEFT_OUT, MEET) for one in _inside(op))


def _left_out_with_last(op: Any) -> None:
    """An op, and the one before it."""
    ops = [one.operation for one in op.block.operations]
    last = ops[ops.index(op) - 1]
    op.erase()
    last.erase()


def _copy(op: Any) -> None:
    with ir.InsertionPoint(op), op.location:
        op.clone()


def _put(op: Any, number: int, value: Any) -> None:
    op.operands[number] = value


def _set(op: Any, number: int, value: int) -> None:
    with ir.InsertionPoint(op), op.location:
        op.operands[number] = arith.constant(op.operands[number].type, value)


def _add(op: Any, number: int, step: int) -> None:
    value = op.operands[number]
    with ir.InsertionPoint(op), op.location:
        op.operands[number] = arith.addi(value, arith.constant(value.type, step))


def _negate(op: Any, number: int) -> None:
    value = op.operands[number]
    with ir.InsertionPoint(op), op.location:
        op.operands[number] = arith.xori(value, arith.constant(value.type, 1))


def _next_slot(op: Any, number: int) -> None:
    value = op.operands[number]
    with ir.InsertionPoint(op), op.location:
        up = arith.addi(value, arith.constant(value.type, 1))
        op.operands[number] = arith.remui(up, arith.constant(value.type, _SLOTS))


def _regroup(op: Any, step: int) -> None:
    old = op.attributes["group"]
    op.attributes["group"] = ir.IntegerAttr.get(old.type, old.value + step)


def _always(op: Any) -> None:
    with ir.InsertionPoint(op), op.location:
        op.operands[0] = arith.constant(op.operands[0].type, 1)


def _other_target(op: Any) -> None:
    """Into the slot behind that of the iteration."""
    view = op.operands[0].owner.operation
    offset = view.operands[1]
    elements = 1
    for size in list(view.operands[0].type.shape)[1:]:
        elements *= size
    with ir.InsertionPoint(view), view.location:
        up = arith.addi(offset, arith.constant(offset.type, elements))
        most = arith.constant(offset.type, elements * _SLOTS)
        view.operands[1] = arith.remui(up, most)
