"""Convolutions of few channels on tensor cores: taps of a row joined with channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from convolution_forms import NAMED, Form, Window

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import AlcopError
from alcop_mlir.runtime.launch import Program

STEM = dict.fromkeys("hw", Window(20, 7, 2, low=3, high=3))
BACKWARDS = Window(6, 3, stride=2, low=1, high=2, backwards=True)
APART = Window(14, 3, 3, low=1, high=2)
PLAIN = Window(7, 3, low=0, high=0)


def of(channels: int) -> dict[str, int]:
    return dict(n=1, c=channels, f=16)


def is_on_tensor_cores(program: Program) -> bool:
    return any(kernel.schedule is not None for kernel in program.function.kernels)


@pytest.mark.parametrize(
    "case",
    [
        Form("conv_2d_nhwc_hwcf", sizes=of(3), windows=STEM),
        Form("conv_2d_nchw_fchw", NAMED["conv_2d_nchw_fchw"], of(3)),
        Form("conv_2d_nhwc_fhwc", NAMED["conv_2d_nhwc_fhwc"], of(8)),
        Form(sizes=of(5), windows=dict.fromkeys("hw", BACKWARDS)),
        Form(layouts="hwc hwcf hwf", sizes=of(1), windows=dict.fromkeys("hw", PLAIN)),
        Form(sizes=of(3), windows=dict(h=Window(6, 2, 2, 2), w=Window(9, 2, 3))),
        Form(layouts="hwc hwcf hwf", sizes=of(4), windows=dict.fromkeys("hw", APART)),
        Form(layouts="ndhwc dhwcf ndhwf", sizes=of(2)),
        Form(layouts="nhwc fhwc nhwf", sizes=of(3), kinds=("f32", "f32")),
        Form(layouts="nhwc fhwc nhwf", sizes=of(3), kinds=("i8", "i32")),
    ],
    ids=[
        "stem",
        "nchw",
        "fhwc",
        "backwards",
        "one",
        "dilated",
        "apart",
        "3d",
        "tf32",
        "i8",
    ],
)
def test_forms(case: Form, capsys: pytest.CaptureFixture[str]) -> None:
    """Against NumPy and the reference; one kernel copies the image, one the filter.

    A filter of whole chunks of channels in rows is read as it lies.
    """
    program = case.check()
    assert is_on_tensor_cores(program)
    is_whole = case.sizes["c"] % 4 == 0 and case.name != "conv_2d_nhwc_hwcf"
    if case.name == "conv_2d_nhwc_hwcf" or is_whole:
        assert len(program.function.kernels) == 3 - is_whole
    copied = "image is copied" if is_whole else "image and filter are copied"
    assert copied in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Form(sizes=of(3), open="f"), "or a number of filters that is known"),
        (Form(sizes=of(3), windows=dict.fromkeys("hw", Window(6, 3, 1, 2, 2, 2))),
         "or several taps in a row"),
        (Form("conv_1d_nwc_wcf", NAMED["conv_1d_nwc_wcf"], of(3)), "two dimensions"),
        (Form(layouts="nhwgc hwgcf nhwgf", sizes=dict(n=1, g=2, c=4, f=8)),
         "in a group"),
    ],
    ids=["open", "dilated", "1d", "groups"],
)  # fmt: skip
def test_fallback(case: Form, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left as it was, and why."""
    assert not is_on_tensor_cores(case.check())
    assert reason in capsys.readouterr().err


OPEN = {
    "n": [(1, 20, 20), (3, 20, 20)],
    "h": [(1, 1, 20), (1, 2, 20), (1, 33, 20)],
    "w": [(1, 20, 1), (1, 20, 4), (1, 20, 17)],
    "nhw": [(1, 1, 1), (2, 1, 5), (3, 7, 2), (5, 9, 13)],
}


@pytest.mark.parametrize("kinds", [("f16", "f32"), ("i8", "i32")], ids=["f16", "i8"])
@pytest.mark.parametrize("letters", OPEN)
def test_open_sizes(letters: str, kinds: tuple[str, str]) -> None:
    """Of one program, at sizes down to images of a pixel."""
    case = Form("conv_2d_nhwc_hwcf", sizes=of(3), windows=STEM, open=letters)
    case = replace(case, kinds=kinds, name="" if "i8" in kinds else case.name)
    program = case.compiled()
    assert is_on_tensor_cores(program)
    for images, *extents in OPEN[letters]:
        case.of_extents(images, *extents).run(program)


@pytest.mark.parametrize(
    "case",
    [
        Form(layouts="hwnc hwcf nhwf", sizes=of(3), open="nhw"),
        Form("conv_2d_nchw_fchw", NAMED["conv_2d_nchw_fchw"], of(3), open="nhw"),
        Form(layouts="nhwc fhwc nhwf", sizes=of(5), open="nhw",
             windows=dict(h=BACKWARDS, w=Window(9, 2, 4, low=0, high=0))),
    ],
    ids=["batch_inside", "nchw", "part"],
)  # fmt: skip
def test_open_sizes_in_other_orders(case: Form) -> None:
    """The batch anywhere; windows that see a part of each row."""
    program = case.compiled()
    assert is_on_tensor_cores(program)
    for sizes in ((3, 9, 5), (1, 3, 2), (2, 4, 11)):
        case.of_extents(*sizes).run(program)


def test_open_sizes_in_three_dimensions() -> None:
    case = Form(layouts="ndhwc dhwcf ndhwf", sizes=of(2), open="ndhw")
    program = case.compiled()
    assert is_on_tensor_cores(program)
    for sizes in ((3, 4, 1, 5), (1, 1, 1, 1), (2, 2, 3, 6)):
        case.of_extents(*sizes).run(program)


@pytest.mark.parametrize("wrong", [(9, 10), (11, 10), (10, 9), (10, 11)])
def test_outputs_of_another_size(wrong: tuple[int, int]) -> None:
    """An output that windows do not fill is refused, before anything runs."""
    case = Form("conv_2d_nhwc_hwcf", sizes=of(3), windows=STEM, open="nhw")
    program, (x, w, _) = case.compiled(), case.arrays()
    out = np.zeros((1, *wrong, 16), np.float32)
    with pytest.raises(AlcopError, match="sizes do not fit together"):
        program(x, w, out, out.copy())


def test_pixels_outside_of_a_window_add_nothing() -> None:
    """Not even where a neighbour is NaN."""
    case = Form(sizes=of(3), windows=dict.fromkeys("hw", Window(20, 3)))
    image, weights, given = case.arrays()
    image[0, 9, 9, 1] = np.nan
    source = inputs.read(case.text())
    bundle = compiler.compile_source(source, compiler.Options(use_ptxas=False))
    out = np.zeros_like(given)
    Program(bundle, device="emulator")(image, weights, given, out)
    np.testing.assert_array_equal(out, case.expected([image, weights, given]))
    assert np.isnan(out).sum() == 9 * 16
