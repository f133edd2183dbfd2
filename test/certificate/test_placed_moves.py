"""Kernels without a sum: elements that are moved, and ops on those of one index."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven, restated, verdict

from alcop_mlir.checker.check import check
from alcop_mlir.checker.ptx.flow import Flow, numbers
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

# The transpose of A, and of each of its columns a number is added.
TRANSPOSED = Case(
    "transposed",
    """
func.func @f(%A: memref<32x64xf16>, %b: memref<64xf16>, %C: memref<64x32xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n)>,
                       affine_map<(n, m) -> (n, m)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%A, %b : memref<32x64xf16>, memref<64xf16>) outs(%C : memref<64x32xf32>) {
    ^bb0(%a: f16, %shift: f16, %c: f32):
      %sum = arith.addf %a, %shift : f16
      %wide = arith.extf %sum : f16 to f32
      linalg.yield %wide : f32
  }
  return
}""",
)
BROADCAST = Case(
    "broadcast",
    """
func.func @f(%b: memref<64xf16>, %C: memref<32x64xf16>) {
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<64xf16>) outs(%C : memref<32x64xf16>) {
    ^bb0(%a: f16, %c: f16):
      linalg.yield %a : f16
  }
  return
}""",
)
# Filters with the channels last: no number of a block plus one of a thread says where
# an element is from.
FILTERS = Case(
    "filters",
    """
func.func @f(%A: memref<8x16x3x3xf16>, %C: memref<8x3x3x16xf16>) {
  linalg.generic {
      indexing_maps = [affine_map<(f, h, w, c) -> (f, c, h, w)>,
                       affine_map<(f, h, w, c) -> (f, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%A : memref<8x16x3x3xf16>) outs(%C : memref<8x3x3x16xf16>) {
    ^bb0(%a: f16, %c: f16):
      linalg.yield %a : f16
  }
  return
}""",
)
TWO_LAYERS = Case("two layers", Path("examples/mlp_f16.mlir").read_text("utf-8"))


@pytest.mark.parametrize(
    "case", [TRANSPOSED, BROADCAST, FILTERS], ids=lambda case: case.name
)
def test_moves_are_placed(case: Case) -> None:
    assert_proven(case)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%rd12, %rd6, 18, %rd11", "%rd12, %rd6, 16, %rd11"),  # another channel
        ("%rd13, %r6, 6", "%rd13, %r6, 4"),
        ("%rd15, %r8, 2", "%rd15, %r8, 4"),
        ("%rd18, %r6, 96", "%rd18, %r6, 94"),
        ("%rd20, %r8, 32", "%rd20, %r8, 64"),  # some are stored twice
        ("%rs14, %rs13, 144", "%rs14, %rs13, 143"),
        ("%p1, %r1, 1151", "%p1, %r1, 1150"),  # all but one
        ("%rs8, %rs7, 86", "%rs8, %rs7, 85"),
    ],
)
def test_other_filters_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(FILTERS, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%rd11, %rd10, 126;", "%rd11, %rd10, 124;"),  # columns twice, of A and b
        ("[%rd13];", "[%rd13+2];"),  # another column of b
        ("%rd7, %r4, 128;", "%rd7, %r4, 64;"),  # half as many rows
        ("[%rd15], %r6;", "[%rd15+128], %r6;"),  # stored as the next row
        ("%rd14, %r4, 4;", "%rd14, %r2, 4;"),  # all blocks store the same
        ("ld.global.b16 %rs2, [%rd13];", "ld.global.b16 %rs2, [%rd12];"),  # no b
        ("cvt.f32.f16 %r6, %rs3;", "mov.b32 %r6, 0;"),  # of nothing
        ("add.rn.f16 %rs3, %rs1, %rs2;", "add.rn.f16 %rs3, %rs1, %rs1;"),
    ],
)
def test_other_moves_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(TRANSPOSED, old, new)


@pytest.mark.parametrize("mask", [62, 31])
def test_other_elements_for_all_rows_are_not_placed(mask: int) -> None:
    text = BROADCAST.ptx.replace("%rd5, 63;", f"%rd5, {mask};")
    assert BROADCAST.behaviour(text) != "clean"
    assert not verdict(BROADCAST, text).is_placed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("arrays", "f_param_0", 1), [32, 1]),
        (("arrays", "f_param_0", 0), "ab"),
        (("outputs", "f_param_2"), ["f_param_0"]),
        (("extents", "a"), 128),
        (("rhs",), "f_param_1"),
        (("init",), "f_param_1"),
        (("lhs",), "f_param_0"),
    ],
)
def test_other_statements_are_refused(path: tuple[object, ...], value: object) -> None:
    found = verdict(TRANSPOSED, TRANSPOSED.ptx).certificate
    assert found is not None
    with pytest.raises(CertificateError):
        check(TRANSPOSED.ptx, restated(found, path, value))


@pytest.mark.parametrize("name", ["mlp_f16_matmul", "mlp_f16_matmul_1"])
def test_what_a_kernel_leaves_for_another_one(name: str) -> None:
    """The array between two layers is what one stores, and the other multiplies."""
    report = verdict(TWO_LAYERS, TWO_LAYERS.bundle.code["mlp_f16_kernels"].ptx, name)
    assert report.verdict == "proven", report.misplaced


SHIFTED = Case(
    "shifted",
    """
func.func @f(%A: memref<512xi32>, %B: memref<512xi32>, %C: memref<512xi32>) {
  %bits = arith.constant 3 : i32
  linalg.generic {
      indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>,
                       affine_map<(n) -> (n)>],
      iterator_types = ["parallel"]}
      ins(%A, %B : memref<512xi32>, memref<512xi32>) outs(%C : memref<512xi32>) {
    ^bb0(%a: i32, %b: i32, %c: i32):
      %part = arith.shrsi %a, %bits : i32
      %sum = arith.addi %part, %b : i32
      linalg.yield %sum : i32
  }
  return
}""",
)


def test_bits_of_an_element_are_of_it() -> None:
    """As the sign that an activation looks at; of another element they are not."""
    report = verdict(SHIFTED, SHIFTED.ptx)
    assert report.verdict == "proven", report.misplaced
    text = SHIFTED.ptx.replace(" \t", " ")
    old = "shr.s32 %r7, %r5, 3;"
    assert text.count(old) == 1
    assert not verdict(SHIFTED, text.replace(old, "shr.s32 %r7, %r6, 3;")).is_placed


# Large numbers go another way to their cosine than small ones.
COSINES = Case(
    "cosines",
    """
func.func @f(%A: memref<512xf32>, %B: memref<512xf32>, %C: memref<512xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>,
                       affine_map<(n) -> (n)>],
      iterator_types = ["parallel"]}
      ins(%A, %B : memref<512xf32>, memref<512xf32>) outs(%C : memref<512xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %part = math.cos %a : f32
      %sum = arith.mulf %part, %b : f32
      linalg.yield %sum : f32
  }
  return
}""",
)


def test_what_some_threads_compute_is_placed() -> None:
    assert_proven(COSINES)


# Another element, into a register that is free behind it.
_NEIGHBOUR = "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;"


@pytest.mark.parametrize(
    "changes",
    [
        {"abs.f32 %r7, %r1;": "abs.f32 %r7, %r3;"},  # decides which way one goes
        {"setp.gt.f32 %p1, %r7, 0f47CE4780;": "setp.gt.f32 %p1, %r7, %r3;"},
        {"fma.rn.f32 %r11, %r8, 0f26F72CED, %r10;": "mov.b32 %r11, %r3;"},
        {"fma.rn.f32 %r11, %r8, 0f26F72CED, %r10;": "mov.b32 %r8, %r3;"},
        {"neg.f32 %r23, %r20;": "mov.b32 %r23, %r3;"},
        {"setp.lt.s32 %p9, %r1, 0;": "setp.lt.s32 %p9, %r3, 0;"},
        {"neg.f32 %r23, %r20;": "ld.global.b32 %r23, [%rd10];"},
        {"mul.rn.f32 %r39, %r2, %r38;": "mov.b32 %r39, %r38;"},  # without B
    ],
)
def test_what_some_threads_compute_of_others_is_not_placed(
    changes: dict[str, str],
) -> None:
    text = COSINES.ptx.replace(" \t", " ")
    changes["ld.global.b32 %r2, [%rd10];"] = f"ld.global.b32 %r2, [%rd10]; {_NEIGHBOUR}"
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert not verdict(COSINES, text).is_placed


def test_an_element_that_nothing_uses_is_none() -> None:
    text = COSINES.ptx.replace(" \t", " ")
    old = "ld.global.b32 %r2, [%rd10];"
    assert verdict(COSINES, text.replace(old, f"{old} {_NEIGHBOUR}")).is_placed


MASK = Case(
    "a mask",
    """
func.func @f(%C: memref<32x32xf32>) {
  %low = arith.constant -1.0 : f32
  %zero = arith.constant 0.0 : f32
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%C : memref<32x32xf32>) {
    ^bb0(%c: f32):
      %m = linalg.index 0 : index
      %n = linalg.index 1 : index
      %test = arith.cmpi ugt, %n, %m : index
      %sum = arith.select %test, %low, %zero : f32
      linalg.yield %sum : f32
  }
  return
}""",
)


def test_numbers_are_made_of_no_array() -> None:
    assert_proven(MASK)
    assert numbers(Flow(read_kernel(MASK.ptx, "f")))


@pytest.mark.parametrize(
    "reads",
    [
        "ld.global.b32 {0}, [{1}];",
        "ld.global.nc.b32 {0}, [{1}];",
        "ldu.global.b32 {0}, [{1}];",
        "atom.global.add.u32 {0}, [{1}], 0;",
        "tex.1d.v4.f32.s32 {{{0}, {0}, {0}, {0}}}, [{1}, {{{0}}}];",
        "call ({0}), other;",
    ],
)
def test_what_memory_gives_is_no_number(reads: str) -> None:
    text = MASK.ptx.replace(" \t", " ")
    found = re.search(r"st\.global\.b32 \[(%rd\d+)\], (%r\d+);", text)
    assert found is not None
    line = reads.format(found[2], found[1])
    changed = text.replace(found[0], f"{line} {found[0]}")
    assert found[2] not in numbers(Flow(read_kernel(changed, "f")))
    assert not verdict(MASK, changed).is_placed


_FUNCTION = """
.func g(.reg .b64 %q) {
.reg .b32 %x; mov.b32 %x, 0; st.global.b32 [%q], %x; ret;
}
"""


@pytest.mark.parametrize(
    "code",
    [
        "call g, (%q);",
        "multimem.st.global.u32 [%q], 0;",
        "discard.global.L2 [%q], 128;",
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%q], {%s, %s}, 32;",
    ],
)
def test_what_may_write_over_results(code: str) -> None:
    """Whatever it is: also where it is not known to be bounded."""
    scope = "{ .reg .b64 %q; .reg .f32 %s; ld.param.b64 %q, [f_param_2]; " + code + " }"
    head, entry, body = TRANSPOSED.ptx.partition(".visible .entry")
    start, ret, rest = body.rpartition("ret;")
    text = head + _FUNCTION + entry + start + scope + ret + rest
    assert not verdict(TRANSPOSED, text).is_placed
