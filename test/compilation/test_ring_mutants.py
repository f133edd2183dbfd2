"""alcop-check-pipelines refuses kernels with roles of which one thing is wrong.

What it does not refuse changes nothing: the emulator finds it right and clean.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from changed_ir import ir_behind
from ring_mutants import Mutant, mutants
from test_warp_roles import OPEN, compiled, operands, product, program

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.compilation import inputs
from alcop_mlir.errors import CompileError, PassError
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.transforms.pipelining.place_waits import PlaceWaits
from alcop_mlir.transforms.roles.specialize_warps import SpecializeWarps
from alcop_mlir.verifier.rings.check import check_rings

# Two groups of wgmma stay in flight, so that the first iterations free nothing.
PAIR = {"m": 256, "n": 64, "k": 296}
SCHEDULES = {
    "any K": "block=128,64,64 warp=16,64 stages=4,3",
    "tiles": "block=128,16,16 warp=16,16 stages=4,3",
    "clusters": "block=128,64,64 warp=16,64 stages=4,3 cluster=2",
}
TILES = {"m": 134 * 128, "n": 16, "k": 72}  # two tiles of five iterations, or one
PROGRAMS = {
    "any K": OPEN,
    "tiles": program(TILES, "nt", out="f32"),
    "clusters": program(PAIR, "nt", out="f32"),
}
COPIER = "another warp of those that copy"
ORDER = "copies may come before what they are counted for, and in any order"
STRICT = "waits for more"
FIRST = "the slot of the first iteration is 0"
UNUSED = "the first iterations free nothing"
ALONE = "in a single block a barrier orders the init of an mbarrier"
HALVES = "an iteration is two groups, both of the one whose slot is freed have ended"
SOME = "there was an iteration"
TRIPS = "a tile has five iterations"
# Of clusters, whose loops are those of other kernels.
SYNCHRONISATION = ("nvgpu.", "nvvm.", "llvm.")
EVERYWHERE = {
    "arith.cmpi number +1, 2": COPIER,
    "nvgpu.mbarrier.arrive.expect_tx behind the next, 1": ORDER,
    "nvgpu.tma.async.load behind the next, 1": ORDER,
    "scf.for next 7 at first, 1": UNUSED,
    "nvvm.wgmma.wait.group.sync.aligned -1, 1": STRICT,
}
# Of each program the mutants that change nothing, and why.
EQUIVALENT: dict[str, dict[str, str]] = {
    "any K": {
        **EVERYWHERE,
        "nvvm.fence.mbarrier.init left out, 1": ALONE,
        "nvvm.wgmma.wait.group.sync.aligned before the last, 1": HALVES,
        "arith.cmpi number -1, 9": SOME,
    },
    "clusters": {
        "nvgpu.mbarrier.arrive.expect_tx behind the next, 1": ORDER,
        "nvgpu.tma.async.load behind the next, 1": ORDER,
        "nvgpu.mbarrier.try_wait.parity slot 0, 2": FIRST,
        "nvvm.wgmma.wait.group.sync.aligned before the last, 1": HALVES,
        "nvvm.wgmma.wait.group.sync.aligned -1, 1": STRICT,
    },
    "tiles": {
        **EVERYWHERE,
        "nvvm.fence.mbarrier.init left out, 1": ALONE,
        "arith.cmpi number -1, 7": TRIPS,
        "arith.cmpi number +1, 7": TRIPS,
        "arith.cmpi number -1, 8": TRIPS,
        "arith.cmpi number +1, 8": TRIPS,
    },
}
MODE = ("early", "descending")
LIMIT = 10_000_000  # warp instructions, far more than any has
K_STEPS = (0, 1, 7)


def changed(which: str, then: Callable[[ir.Operation], None]) -> Bundle:
    """The program, compiled, where `then` changes the IR in which warps have roles."""
    with ir_behind(SpecializeWarps, then):
        return compiled(PROGRAMS[which], SCHEDULES[which])


def found_mutants(which: str) -> dict[str, list[str]]:
    """By name, what is wrong with each mutant."""
    texts: list[str] = []

    def stop(op: ir.Operation) -> None:
        texts.append(str(op))
        raise PassError(op, "stopped")

    with pytest.raises(CompileError, match="stopped"):
        changed(which, stop)
    right = inputs.read(texts[0]).module
    assert check_rings(right.operation) == []
    names = [one.name for one in mutants(launch_of(right.operation))]
    if which == "clusters":
        names = [name for name in names if name.startswith(SYNCHRONISATION)]
    found: dict[str, list[str]] = {}
    for name in names:
        module = inputs.read(texts[0]).module
        apply(module.operation, name)
        found[name] = [wrong.message for wrong in check_rings(module.operation)]
    assert len(found) > 50
    return found


def test_iterations_in_a_row() -> None:
    """A loop of two is none: the wait between them ends the group of the first one,
    whose slot is free then; without this wait it is not.
    """
    texts: list[str] = []
    with ir_behind(PlaceWaits, lambda op: texts.append(str(op))):
        of_two = program({**TILES, "k": 32}, "nt", out="f32")
        compiled(of_two, "block=128,16,16 warp=16,16 stages=2,2")
    module = inputs.read(texts[0]).module
    assert check_rings(module.operation) == []
    first, *others = walk(module.operation, "nvvm.wgmma.wait.group.sync.aligned")
    assert len(others) == 2
    first.erase()
    (wrong,) = check_rings(module.operation)
    assert "is filled while" in wrong.message


def launch_of(op: ir.Operation) -> ir.Operation:
    (launch,) = walk(op, "gpu.launch")
    return launch


def apply(op: ir.Operation, name: str) -> None:
    found: dict[str, Mutant] = {one.name: one for one in mutants(launch_of(op))}
    found[name].apply()


@pytest.mark.parametrize("which", PROGRAMS)
def test_mutants_are_refused(which: str) -> None:
    found = found_mutants(which)
    assert all("\n" not in text for texts in found.values() for text in texts)
    accepted = {name for name, wrong in found.items() if not wrong}
    assert accepted == set(EQUIVALENT[which])


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("which", "name"),
    [(which, name) for which in PROGRAMS for name in EQUIVALENT[which]],
)
def test_others_change_nothing(which: str, name: str) -> None:
    bundle = changed(which, lambda op: apply(op, name))
    for steps in K_STEPS if which == "any K" else (0,):
        sizes = TILES if which == "tiles" else PAIR
        if which == "any K":
            sizes = {"m": 128, "n": 64, "k": 64 * steps}
        layout = "nn" if which == "any K" else "nt"
        a, b = operands(sizes, layout)
        want = product(a, b, layout)
        options = EmulatorOptions(*MODE, instruction_limit=LIMIT)
        c = np.full(want.shape, np.nan, np.float32)
        Program(bundle, emulation=Emulation(options))(a, b, c)
        np.testing.assert_array_equal(c, want)
