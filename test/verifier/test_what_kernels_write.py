"""What kernels write, before and after a pass: what changes it is found, and where."""

from __future__ import annotations

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.checked_steps import CheckPipelines
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.running import PassFailure
from alcop_mlir.transforms.pipelining import fold_slots
from alcop_mlir.verifier.effects import changed, effects

LOOP = """
gpu.module @kernels {
gpu.func @kernel(%A: memref<?x64xf32>, %T: memref<64xi32>, %C: memref<?x64xf32>,
    %n: index) workgroup(%a : memref<2x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  scf.for %k = %c0 to %n step %c1 {
    %s = arith.remui %k, %c2 : index
    %i = memref.load %T[%k] : memref<64xi32>
    %row = arith.index_cast %i : i32 to index
    %few = arith.cmpi ult, %t, %row : index
    %v = scf.if %few -> (f32) {
      %w = memref.load %A[%row, %t] : memref<?x64xf32>
      scf.yield %w : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %v, %a[%s, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %x = memref.load %a[%s, %other] : memref<2x64xf32, #gpu.address_space<workgroup>>
    %y = arith.addf %x, %x : f32
    memref.store %y, %C[%k, %t] : memref<?x64xf32>
  }
  gpu.return
}
}"""
COPY = "nvgpu.device_async_copy %A[%row, %t], %a[%s, %t], 1"


def messages(before: str, after: str) -> list[str]:
    known = effects(ir.Module.parse(before).operation)
    assert all(known.values()), "nothing is known of the kernel"
    return [wrong.message for wrong in changed(known, ir.Module.parse(after).operation)]


def replaced(old: str, new: str) -> str:
    assert LOOP.count(old) == 1
    return LOOP.replace(old, new)


def test_what_is_the_same(context: None) -> None:
    one_slot = replaced("    gpu.barrier\n", "    gpu.barrier\n").replace(
        "[%s,", "[%c0,"
    )
    one_slot = one_slot.replace("    memref.store %v", "    gpu.barrier\n$&")
    one_slot = one_slot.replace("$&", "    memref.store %v")
    for same in (
        LOOP,
        one_slot,
        replaced("%t, %row :", "%t, %row2 :").replace(
            "    %few", "    %row2 = arith.addi %row, %c0 : index\n    %few"
        ),
    ):
        assert messages(LOOP, same) == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("%a[%s, %other]", "%a[%s, %t]", "element 0 of argument 2 is not what it was"),
        ("%A[%row, %t]", "%A[%row, %other]", "is not what it was"),
        ("load %T[%k]", "load %T[%t]", "is not what it was"),
        ("cmpi ult, %t", "cmpi ule, %t", "is not what it was"),
        ("addf %x, %x", "mulf %x, %x", "is not what it was"),
        ("%k = %c0 to", "%k = %c1 to", "is not what it was"),
        ("scf.yield %zero", "scf.yield %one", "is not what it was"),
        ("    gpu.barrier\n", "", "with no barrier since another thread stored it"),
        ("%a[%s, %other]", "%a[%c2, %other]", "is of byte 764, its buffer has 512"),
    ],
)
def test_what_is_changed(context: None, old: str, new: str, why: str) -> None:
    (found,) = messages(
        LOOP.replace("%zero =", "%one = arith.constant 1.0 : f32 %zero ="),
        replaced(old, new).replace(
            "%zero =", "%one = arith.constant 1.0 : f32 %zero ="
        ),
    )
    assert why in found


def test_what_races_before_is_not_compared(context: None) -> None:
    known = effects(ir.Module.parse(replaced("    gpu.barrier\n", "")).operation)
    assert list(known.values()) == [[]]


def test_what_is_not_understood_is_not_compared(context: None) -> None:
    atomic = (
        replaced(
            "memref.store %y, %C[%k, %t]",
            "%old = memref.atomic_rmw addf %y, %C[%k, %t]",
        )
        .replace("%C[%k, %t] : memref", "%C[%k, %t] : (f32, memref")
        .replace("(f32, memref<?x64xf32>\n  }", "(f32, memref<?x64xf32>) -> f32\n  }")
    )
    assert list(effects(ir.Module.parse(atomic).operation).values()) == [[]]


def test_a_wrong_pass_is_named(context: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the barrier is left out that one slot needs."""
    monkeypatch.setattr(fold_slots, "needs_barrier", lambda *_: False)
    module = ir.Module.parse(LOOP)
    with pytest.raises(PassFailure, match="no barrier since it was last read"):
        run_pipeline(
            module, "builtin.module(alcop-fold-slots)", instruments=[CheckPipelines()]
        )


def test_numbers_that_are_parts_of_vectors(context: None) -> None:
    """Found by the fuzz, seed 4392: what is added to is a part of a vector."""
    vector = """%b = vector.broadcast %i : i32 to vector<2xi32>
    %two = arith.addi %b, %b : vector<2xi32>
    vector.store %two, %ints[%c0] : memref<2xi32>, vector<2xi32>
    %part = memref.load %ints[%c1] : memref<2xi32>
    %sum = arith.addi %part, %i : i32
    %row = arith.index_cast %sum : i32 to index"""
    thread = "%t = gpu.thread_id x"
    made = f"{thread}\n  %ints = memref.alloca() : memref<2xi32>"
    text = replaced("%row = arith.index_cast %i : i32 to index", vector)
    text = text.replace(thread, made)
    assert messages(text, text) == []
    assert messages(text, text.replace("load %ints[%c1]", "load %ints[%c0]"))
