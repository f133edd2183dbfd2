"""Results of convolutions: elements that windows see, and zeros around arrays."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from placed_cases import assert_misplaced, assert_proven, restated, verdict

from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES, Case

PLAIN = next(case for case in CASES if case.name.startswith("convolution"))
SMALL = "block=32,32,32 warp=16,16 stages=3,2"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "conv_f16.mlir"


def convolution(
    name: str,
    image: str,
    filters: str,
    out: str,
    border: tuple[int, int] = (0, 0),
    steps: tuple[int, int] = (1, 1),
    schedule: str = SMALL,
) -> Case:
    """Of f16, channels last; steps: strides and dilations."""
    n, h, w, c = map(int, image.split("x"))
    low, high = border
    padded = f"tensor<{n}x{h + low + high}x{w + low + high}x{c}xf16>"
    x, f, y = f"tensor<{image}xf16>", f"tensor<{filters}xf16>", f"tensor<{out}xf32>"
    stride, dilation = steps
    text = f"""
func.func @f(%x: {x}, %w: {f}) -> {y} {{
  %border = arith.constant 0.0 : f16
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, {low}, {low}, 0] high[0, {high}, {high}, 0] {{
  ^bb0(%n: index, %h: index, %v: index, %c: index):
    tensor.yield %border : f16
  }} : {x} to {padded}
  %e = tensor.empty() : {y}
  %i = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %o = linalg.conv_2d_nhwc_hwcf {{strides = dense<{stride}> : tensor<2xi64>,
      dilations = dense<{dilation}> : tensor<2xi64>}}
    ins(%p, %w : {padded}, {f}) outs(%i : {y}) -> {y}
  return %o : {y}
}}
"""
    return Case(name, text, schedule)


STRIDED = convolution("strides", "2x9x9x32", "3x3x32x32", "2x4x4x32", (0, 0), (2, 1))
FEW = convolution("few channels", "1x9x7x16", "5x5x16x16", "1x9x7x16", (2, 2))


@pytest.mark.parametrize(
    "case",
    [
        PLAIN,
        STRIDED,
        FEW,
        convolution("dilations", "1x9x9x32", "3x3x32x64", "1x9x9x64", (2, 2), (1, 2)),
        convolution("one tap", "2x9x7x96", "1x1x96x10", "2x5x4x10", (0, 0), (2, 1)),
        convolution("one side", "1x8x8x64", "3x3x64x32", "1x4x4x32", (0, 1), (2, 1)),
        Case("residual", EXAMPLE.read_text("utf-8")),  # bias, relu, edges of images
    ],
    ids=lambda one: one.name,
)
def test_convolutions_are_placed(case: Case) -> None:
    assert_proven(case)


def test_sums_of_windows_in_parts_are_placed() -> None:
    """Each block begins at a tap of its own; another kernel adds the parts."""
    tiles = "block=64,64,32 warp=32,32 stages=3,1 split_k=4"
    case = convolution(
        "parts", "1x7x7x128", "3x3x128x64", "1x7x7x64", (1, 1), schedule=tiles
    )
    for name in ("f_matmul", "f_map"):
        report = verdict(case, case.ptx, name)
        assert report.verdict == "proven", report.misplaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[%rd9+-512], 16, %r16", "[%rd9+-448], 16, %r16"),  # the next pixel
        ("[%rd7+64], 16, %r19", "[%rd7+0], 16, %r19"),  # a tap twice
        ("[%rd118+-512], 16", "[%rd118+-576], 16"),
        ("%rd71, %rd64, 9", "%rd71, %rd64, 10"),  # rows of every other row
        ("%rd73, %rd63, 6", "%rd73, %rd63, 5"),
        ("%r6, 0, 7, %p1", "%r6, 0, 5, %p1"),  # a row above that is read
        ("%r9, 292, 0, %p4", "%r9, 288, 0, %p4"),
        ("%r7, 448, 0, %p2", "%r7, 464, 0, %p2"),  # a pixel that is not
        ("%rd122, 32, 192, %p7", "%rd122, 32, 224, %p7"),  # to the next row
        ("%r24, %r647, 292", "%r24, %r647, 290"),
        ("%r25, %r647, 1;", "%r25, %r647, 2;"),  # the tap of the masks
        ("%r647, 4;", "%r647, 2;"),
        ("%rd159, 64;", "%rd159, 32;"),
        ("%rd45, %rd91, 8192", "%rd45, %rd91, 4096"),  # filters of another tap
        ("[%rd89+4096], 16", "[%rd89+0], 16"),
        ("%rd157, -96;", "%rd157, 0;"),  # a turn less
        ("%r13, %r12, 16", "%r13, %r12, 0"),  # nothing of a tap
    ],
)
def test_other_windows_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(PLAIN, old, new)


@pytest.mark.parametrize(
    ("case", "old", "new"),
    [
        (STRIDED, "[%rd36+576], 16, 16", "[%rd36+512], 16, 16"),
        (STRIDED, "[%rd36+128], 16, 16", "[%rd36+192], 16, 16"),
        (STRIDED, "[%rd36+1280], 16, 16", "[%rd36+1216], 16, 16"),
        (FEW, "%p11, %rd5, 16", "%p11, %rd5, 24"),  # of a tap what the next one has
        (FEW, "%p11, %rd5, 16", "%p11, %rd5, 8"),
        (FEW, "%rd55, %rd46, 5", "%rd55, %rd46, 6"),
        (FEW, "%rd87, 16, 48, %p16", "%rd87, 16, 32, %p16"),
        (FEW, "%rd31, %rd78, 1536", "%rd31, %rd78, 1024"),
        (FEW, "%r20, 0, 1015808, %p4", "%r20, 0, 1015807, %p4"),
    ],
)
def test_others_are_not_placed(case: Case, old: str, new: str) -> None:
    assert_misplaced(case, old, new)


def placed() -> dict[str, Any]:
    found = verdict(PLAIN, PLAIN.ptx).certificate
    assert found is not None
    return found


WINDOW = "windows", "f_param_0"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*WINDOW, 1, 2), 0),  # no zeros above
        ((*WINDOW, 2, 2), -2),
        ((*WINDOW, 1, 0), 7),  # less of the array
        ((*WINDOW, 2, 0), 9),
        ((*WINDOW, 2, 1), 64),
        ((*WINDOW, 1, 3, 0, 3), 2),  # a stride
        ((*WINDOW, 2, 3, 1, 3), 2),  # a dilation
        ((*WINDOW, 1, 3, 1, 1), 32),  # another tap
        (("extents", "k"), 256),
        (("arrays", "f_param_0", 1), [320, 1]),
        (("arrays", "f_param_0", 1), [1, 64]),
        (("windows",), {}),
        (("windows", "f_param_2"), []),
        ((*WINDOW, 1, 3, 0, 0), "x"),
        ((*WINDOW, 1, 3, 0, 2), 0),
    ],
)
def test_of_other_windows_it_is_not_shown(path: tuple[Any, ...], value: Any) -> None:
    found = placed()
    check(PLAIN.ptx, found)
    if path == ("arrays", "f_param_0", 1) and value == [320, 1]:
        check(PLAIN.ptx, restated(found, path, value))  # rows are numbered otherwise
        return
    with pytest.raises(CertificateError):
        check(PLAIN.ptx, restated(found, path, value))


@pytest.mark.parametrize(
    "columns",
    [
        [32, 8, 1, 4, 32, [0, 0, 0], {}],
        [0, 8, 1, 8, 64, [0, 0, 0], {}],
        [-8, 8, 1, 4, 32, [0, 0, 0], {}],
        [0, 8, 1, 4, 16, [0, 0, 0], {}],
        [288, 8, 1, 4, 32, [0, 0, 0], {}],
        [0, 8, 1, 4, 32, [0, 0, 0], {"9": 1}],
    ],
)
def test_of_other_columns_it_is_not_shown(columns: list[Any]) -> None:
    found = json.loads(json.dumps(placed()))
    gathers = found["answers"]["gathers"]
    gathers[min(gathers, key=int)] = columns
    with pytest.raises(CertificateError):
        check(PLAIN.ptx, sealed(found))
