"""Kernels for sm_90a that compute A of what memory holds, and keep it in registers.

Tiles of A lie in shared memory as TMA swizzles them; warps read fragments of them,
compute on these, and wgmma takes them from registers (`alcop.warpgroup_mma`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from changed_ir import ir_behind
from test_eight_bit_floats import decoded
from test_fence_mutants import mutants
from test_warp_roles import MODES, ptx_of, run

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.schedule import Partial
from alcop_mlir.target import find_target
from alcop_mlir.transforms.kernels import warpgroup_text
from alcop_mlir.transforms.tensor_cores.lower_mma import LowerMma
from alcop_mlir.verifier.rings.check import check_rings

Array = np.ndarray
NUMPY = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "f8E4M3FN": np.uint8}


@dataclass(frozen=True)
class Transform:
    """What is multiplied, `%x`, of an element `%a` of A, and of `%r`, one of its row.

    kind: the type that both are multiplied in
    """

    stored: str
    text: str
    kind: str = "f16"
    across: bool = False

    def program(self, m: int, n: int, k: int, schedule_c: str = "f32") -> str:
        shape, dims = (f"{k}x{m}", "k, m") if self.across else (f"{m}x{k}", "m, k")
        a, b, rows = (
            f"memref<{shape}x{self.stored}>",
            f"memref<{n}x{k}x{self.kind}>",
            f"memref<{m}x{self.kind}>",
        )
        c = f"memref<{m}x{n}x{schedule_c}>"
        wide = ("%x", "%b")
        extend = ""
        if self.kind != "f32":
            wide = ("%wx", "%wb")
            extend = (
                f"%wx = arith.extf %x : {self.kind} to f32 "
                f"%wb = arith.extf %b : {self.kind} to f32"
            )
        return f"""
          func.func @f(%A: {a}, %B: {b}, %R: {rows}, %C: {c}) {{
            %z = arith.constant 0.0 : f32
            linalg.fill ins(%z : f32) outs(%C : {c})
            linalg.generic {{
              indexing_maps = [affine_map<(m, n, k) -> ({dims})>,
                               affine_map<(m, n, k) -> (n, k)>,
                               affine_map<(m, n, k) -> (m)>,
                               affine_map<(m, n, k) -> (m, n)>],
              iterator_types = ["parallel", "parallel", "reduction"]
            }} ins(%A, %B, %R : {a}, {b}, {rows}) outs(%C : {c}) {{
            ^bb0(%a: {self.stored}, %b: {self.kind}, %r: {self.kind}, %c: f32):
              {self.text}
              {extend}
              %p = arith.mulf {wide[0]}, {wide[1]} : f32
              %s = arith.addf %c, %p : f32
              linalg.yield %s : f32
            }}
            return
          }}"""

    def arrays(self, m: int, n: int, k: int) -> list[Array]:
        random = np.random.default_rng(m + n + k)
        shape = (k, m) if self.across else (m, k)
        kind = NUMPY[self.kind]
        if self.stored == "f8E4M3FN":  # of 1.0 to 1.875
            a = random.integers(0x38, 0x40, shape).astype(np.uint8)
        else:
            a = random.integers(-7, 8, shape).astype(NUMPY[self.stored])
        b = random.integers(-3, 4, (n, k)).astype(kind)
        return [a, b, random.integers(-2, 3, m).astype(kind)]


SCALED = "%x = arith.mulf {}, %r : f16"
TRANSFORMS = {
    "bytes": Transform("i8", "%x = arith.sitofp %a : i8 to f16"),
    "scaled bytes": Transform(
        "i8", "%h = arith.sitofp %a : i8 to f16 " + SCALED.format("%h")
    ),
    "scaled": Transform("f16", SCALED.format("%a")),
    "activated": Transform(
        "f16", "%o = arith.constant 0.0 : f16 %x = arith.maximumf %a, %o : f16"
    ),
    "rounded": Transform("f32", "%x = arith.truncf %a : f32 to f16"),
    "eight bits": Transform("f8E4M3FN", "%x = arith.extf %a : f8E4M3FN to f16"),
    "across": Transform("f16", SCALED.format("%a"), across=True),
    "tf32": Transform("f32", "%x = arith.mulf %a, %r : f32", "f32"),
}


def wanted(name: str, a: Array, b: Array, rows: Array) -> Array:
    transform = TRANSFORMS[name]
    a = decoded(a, transform.stored) if transform.stored.startswith("f8") else a
    a = a.astype(np.float64).T if transform.across else a.astype(np.float64)
    if "%r" in transform.text:
        a = a * rows[:, None]
    if name == "activated":
        a = np.maximum(a, 0)
    return a @ b.astype(np.float64).T


def compiled(text: str, schedule: str) -> Bundle:
    given = compiler.Options(
        target=find_target("sm_90a"),
        schedule=Partial.parse(f"{schedule} engine=wgmma"),
        use_ptxas=False,
        allow_tf32=True,
    )
    return compiler.compile_source(inputs.read(text), given)


FROM_REGISTERS = re.compile(r"wgmma\.mma_async\.\S+ \{[^}]*\}, \{%r\d+")
CASES = [
    ("bytes", "block=128,128,64 warp=16,128 stages=4,2"),
    ("bytes", "block=128,64,128 warp=32,64 stages=3,2"),
    ("scaled bytes", "block=128,64,32 warp=16,64 stages=4,2"),
    ("scaled", "block=128,64,64 warp=16,64 stages=3,1"),
    ("activated", "block=128,128,64 warp=32,128 stages=4,3"),
    ("rounded", "block=128,96,32 warp=16,96 stages=4,2"),
    ("eight bits", "block=128,64,64 warp=16,64 stages=4,2"),
    ("across", "block=64,64,64 warp=16,64 stages=4,2"),
    # One fragment step: nothing is left in flight.
    ("scaled", "block=64,96,16 warp=16,96 stages=4,2"),
    ("tf32", "block=128,64,32 warp=16,64 stages=4,2"),
]


@pytest.mark.parametrize(("name", "schedule"), CASES)
def test_computed_operands_are_right_and_clean(name: str, schedule: str) -> None:
    m, n, k = 128, 96, 256
    bundle = compiled(TRANSFORMS[name].program(m, n, k), schedule)
    assert FROM_REGISTERS.search(ptx_of(bundle)), name
    arrays = TRANSFORMS[name].arrays(m, n, k)
    want = wanted(name, *arrays)
    number = CASES.index((name, schedule))
    for mode in (MODES[0], MODES[1 + number % (len(MODES) - 1)]):
        got = run(bundle, [*arrays, np.zeros((m, n), np.float32)], mode)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["activated", "tf32"])
def test_no_stage_changes_a_bit(name: str) -> None:
    """Each step of K is a group of its own, also where none is left in flight: what is
    added up within a group may be rounded once.
    """
    m, n, k = 64, 64, 256
    transform = TRANSFORMS[name]
    random = np.random.default_rng(8)
    kind = NUMPY[transform.kind]
    given = [
        random.standard_normal(shape).astype(kind) for shape in ((m, k), (n, k), (m,))
    ]
    step = 32 if name == "tf32" else 64
    found = []
    for stages in ("3,1", "4,2", "4,3"):
        schedule = f"block=64,64,{step} warp=16,64 stages={stages}"
        bundle = compiled(transform.program(m, n, k), schedule)
        assert FROM_REGISTERS.search(ptx_of(bundle))
        found.append(run(bundle, [*given, np.zeros((m, n), np.float32)]))
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


# -- alcop-check-pipelines, behind alcop-lower-mma -------------------------------------

HELD = "block=64,16,32 warp=16,16 stages=4,2"
SIZES = (64, 16, 256)
WAIT, COMMIT = (f"nvvm.wgmma.{one}.group.sync.aligned" for one in ("wait", "commit"))
# The first wait for more than they must; nothing waits for the first group of the first
# iteration alone; and of the last group of an iteration it does not matter whether it
# ends before or behind the release of the slot before.
EQUIVALENT = (
    *(f"{WAIT} -1, {number}" for number in (1, 2)),
    *(f"{COMMIT} {where}, 1" for where in ("left out", "behind the next")),
    f"{COMMIT} behind the next, 4",
)


def lowered(then: Callable[[Any], None]) -> Bundle:
    """The scaled contraction, where `then` changes it behind alcop-lower-mma."""
    with ir_behind(LowerMma, then):
        return compiled(TRANSFORMS["scaled"].program(*SIZES), HELD)


def test_mutants_of_waits_are_refused_or_change_nothing() -> None:
    texts: list[str] = []
    lowered(lambda op: texts.append(str(op)))
    right = inputs.read(texts[0]).module
    assert check_rings(right.operation) == []
    found: dict[str, list[str]] = {}
    for name in [name for name, _ in mutants(right.operation)]:
        module = inputs.read(texts[0]).module
        dict(mutants(module.operation))[name]()
        found[name] = [wrong.message for wrong in check_rings(module.operation)]
    assert len(found) > 10
    accepted = {name for name, wrong in found.items() if not wrong}
    assert accepted == {*EQUIVALENT}
    text = "writes registers that a group of wgmma may still read as A"
    assert any(text in wrong for one in found.values() for wrong in one)


def values(bundle: Bundle, mode: tuple[str, str]) -> tuple[Array, Array]:
    """What the emulator finds, and what it should."""
    m, n, _ = SIZES
    arrays = TRANSFORMS["scaled"].arrays(*SIZES)
    got = run(bundle, [*arrays, np.zeros((m, n), np.float32)], mode)
    return got, wanted("scaled", *arrays)


def test_a_commit_behind_the_release_changes_nothing() -> None:
    def change(op: Any) -> None:
        dict(mutants(op))[EQUIVALENT[-1]]()

    got, want = values(lowered(change), ("early", "descending"))
    np.testing.assert_array_equal(got, want)


def test_registers_that_are_written_too_early_are_seen() -> None:
    def change(op: Any) -> None:
        dict(mutants(op))[f"{WAIT} left out, 1"]()

    with pytest.raises(EmulationError, match="wgmma"):
        values(lowered(change), MODES[0])


def test_wgmma_without_its_fence_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = warpgroup_text._instruction

    def without(op: Any, count: int) -> str:
        return original(op, count).replace("wgmma.fence.sync.aligned;\n", "")

    with monkeypatch.context() as patch:
        patch.setattr(warpgroup_text, "_instruction", without)
        bundle = compiled(TRANSFORMS["scaled"].program(*SIZES), HELD)
    with pytest.raises(EmulationError, match="fence"):
        values(bundle, MODES[0])
