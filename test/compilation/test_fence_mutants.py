"""alcop-check-pipelines looks at wgmma as instructions, behind alcop-lower-mma.

What it does not refuse of changed kernels changes nothing: the emulator finds these
right and clean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from changed_ir import ir_behind
from test_warp_roles import OPEN, compiled, operands, product, program

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir
from alcop_mlir.compilation import inputs
from alcop_mlir.errors import CompileError, PassError
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.transforms.tensor_cores.lower_mma import LowerMma
from alcop_mlir.verifier.rings.check import check_rings

FENCE, COMMIT = "nvvm.wgmma.fence.aligned", "nvvm.wgmma.commit.group.sync.aligned"
FINISH, WGMMA = "nvvm.wgmma.wait.group.sync.aligned", "nvvm.wgmma.mma_async"
PAIR = {"m": 256, "n": 64, "k": 296}
TILES = {"m": 134 * 128, "n": 16, "k": 72}
LIMIT = 10_000_000  # warp instructions, far more than any has
PROGRAMS = {
    "any K": (OPEN, "block=128,64,64 warp=16,64 stages=4,3"),
    "tiles": (program(TILES, "nt", out="f32"), "block=128,16,16 warp=16,16 stages=4,3"),
    "clusters": (
        program(PAIR, "nt", out="f32"),
        "block=128,64,64 warp=16,64 stages=4,3 cluster=2",
    ),
}
# PTX ISA, wgmma.fence: accumulators that wgmma of one shape go on with need no other.
SAME = "between wgmma of one shape no fence is needed"
STRICT = "waits for more"
# Tiles are small, and go through all that others have.
CHOSEN = tuple(PROGRAMS) if os.environ.get("ALCOP_MUTANTS") == "all" else ("tiles",)
EQUIVALENT = {
    f"{FENCE} left out, 2": SAME,
    f"{FENCE} behind the next, 2": SAME,
    f"{FINISH} -1, 1": STRICT,
}
UNITS_OF_A = 128 * 64 * 2 >> 4  # of a slot of 128 x 64


def lowered(which: str, then: Callable[[ir.Operation], None]) -> Bundle:
    """The program, compiled, where `then` changes the IR behind alcop-lower-mma."""
    with ir_behind(LowerMma, then):
        return compiled(*PROGRAMS[which])


def text_of(which: str) -> str:
    texts: list[str] = []

    def stop(op: ir.Operation) -> None:
        texts.append(str(op))
        raise PassError(op, "stopped")

    with pytest.raises(CompileError, match="stopped"):
        lowered(which, stop)
    return texts[0]


def mutants(op: ir.Operation) -> Iterator[tuple[str, Callable[[], None]]]:
    """Name and change: of fences, commits and waits; of where wgmma reads."""
    (launch,) = walk(op, "gpu.launch")
    seen: dict[str, int] = {}
    for one in [*inside(launch)]:
        for what, change in changes(one):
            name = f"{one.name} {what}"
            seen[name] = seen.get(name, 0) + 1
            yield f"{name}, {seen[name]}", change


def inside(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for one in block.operations:
                yield one.operation
                yield from inside(one.operation)


def changes(op: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    if op.name in (FENCE, COMMIT, FINISH):
        yield "left out", op.erase
        yield "behind the next", lambda: behind(op)
    if op.name == FINISH:
        for step in (-1, 1):
            if op.attributes["group"].value + step >= 0:
                yield f"{step:+}", lambda step=step: regroup(op, step)
    if op.name == WGMMA and is_first(op):
        for number, units in (1, 4 * UNITS_OF_A), (2, 4 * UNITS_OF_A):
            yield f"operand {number} beyond", lambda n=number, u=units: move(op, n, u)


def is_first(op: Any) -> bool:
    """Of its block: others are like it."""
    block = (one.operation for one in op.block.operations)
    return next(one for one in block if one.name == WGMMA) == op


def behind(op: Any) -> None:
    """Behind the next wgmma, commit or wait, and ops between."""
    block = [one.operation for one in op.block.operations]
    later = block[block.index(op) + 1 :]
    found = (one for one in later if one.name in (WGMMA, COMMIT, FINISH))
    op.move_after(next(found, later[-2]))


def regroup(op: Any, step: int) -> None:
    old = op.attributes["group"]
    op.attributes["group"] = ir.IntegerAttr.get(old.type, old.value + step)


def move(op: Any, number: int, units: int) -> None:
    """A descriptor so many units of 16 bytes further."""
    value = op.operands[number]
    with ir.InsertionPoint(op), op.location:
        more = arith.constant(value.type, units)
        op.operands[number] = arith.addi(value, more)


@pytest.mark.parametrize("which", CHOSEN)
def test_mutants_are_refused_or_change_nothing(which: str) -> None:
    text = text_of(which)
    right = inputs.read(text).module
    assert check_rings(right.operation) == []
    found: dict[str, list[str]] = {}
    for name in [name for name, _ in mutants(right.operation)]:
        module = inputs.read(text).module
        dict(mutants(module.operation))[name]()
        found[name] = [wrong.message for wrong in check_rings(module.operation)]
    assert len(found) > 10
    accepted = {name for name, wrong in found.items() if not wrong}
    assert accepted == set(EQUIVALENT)


@pytest.mark.parametrize("name", EQUIVALENT)
def test_others_change_nothing(name: str) -> None:
    def change(op: ir.Operation) -> None:
        dict(mutants(op))[name]()

    bundle = lowered("tiles", change)
    a, b = operands(TILES, "nt")
    want = product(a, b, "nt")
    options = EmulatorOptions("early", "descending", instruction_limit=LIMIT)
    c = np.full(want.shape, np.nan, np.float32)
    Program(bundle, emulation=Emulation(options))(a, b, c)
    np.testing.assert_array_equal(c, want)
