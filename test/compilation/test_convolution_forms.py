"""All convolutions that linalg has names for, and generic ones, against NumPy.

Small whole numbers, compiled and run on the emulator, and checked by the reference that
is read from the function as well.
"""

from __future__ import annotations

import re

import pytest
from convolution_forms import NAMED, Form, Window

from alcop_mlir.bindings import linalg
from alcop_mlir.runtime.launch import Program

SMALL = {letter: Window(4, 2, low=1, high=0) for letter in "dhw"}
BACKWARDS = Window(6, 3, dilation=2, low=3, high=4, backwards=True)
# What runs as a SIMT fallback, and why.
REASONS = {
    "depthwise": "is a depthwise convolution",
    "_q": "is a convolution of 4 inputs",
    "conv_1d": "has a loop of the filter",
}


def form(name: str) -> Form:
    kinds = ("i8", "i32") if name.endswith("_q") else ("f16", "f32")
    return Form(name, NAMED[name], windows=SMALL, kinds=kinds)


def is_fallback(program: Program) -> bool:
    """Whether no kernel has a schedule."""
    return all(kernel.schedule is None for kernel in program.function.kernels)


def test_each_name_is_here() -> None:
    """Of the bindings' convolutions; Winograd's are none of windows."""
    names = {
        re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])|(?<=D)(?=[A-Z])", "_", name)
        for name in dir(linalg)
        if re.search(r"Conv[123]D.*Op$", name) and "Winograd" not in name
    }
    assert len(names) == len(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_named_ops(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = form(name).check()
    remarks = capsys.readouterr().err
    image = NAMED[name].split()[0]
    has_channels = "c" in image and not name.endswith("_q")
    assert is_fallback(program) is not has_channels
    if not has_channels:
        assert f"'linalg.{name}' runs as a SIMT fallback" in remarks
    assert ("transposed copies" in remarks) is (
        has_channels and not image.endswith("c")
    )


@pytest.mark.parametrize(
    "case",
    [
        Form(layouts="whc hwcf hwf"),
        Form(layouts="cnhw fhwc fnhw"),
        Form(layouts="nhwc chwf nhwf"),
        Form(layouts="nhwc hwcf nfhw", sizes=dict(n=2, c=16, f=8)),
        Form(layouts="nwc wcf nwf", windows={"w": BACKWARDS}),
        Form(layouts="nhwgc hwgcf ngfhw"),
        Form(windows=dict(h=Window(1, 5, low=3, high=2), w=Window(2, 1, 2, low=0))),
    ],
    ids=lambda case: case.layouts,
)
def test_generic_ops(case: Form) -> None:
    """Orders that no named op has; a window that goes backwards, or is larger."""
    assert not is_fallback(case.check())


@pytest.mark.parametrize("layouts", ["nhwc hwcf nhwf", "nchw fchw nfhw"])
def test_sizes_known_at_run_time_only(layouts: str) -> None:
    windows = dict(h=Window(9, 3, 2), w=Window(5, 2, dilation=2, low=0, high=2))
    case = Form(layouts=layouts, windows=windows, open="nhw")
    assert not is_fallback(case.check())


def test_pixels() -> None:
    """Windows of one element: matrices, channels first or last, or one tap."""
    plain = dict.fromkeys("hw", Window(4, 1, low=0, high=0))
    sizes = dict(n=2, c=16, f=8)
    for layouts in ("nhwc hwcf nhwf", "nchw fchw nfhw", "nchw cfhw nhwf"):
        case = Form(layouts=layouts, sizes=sizes, windows=plain)
        (kernel,) = case.check().function.kernels
        assert kernel.schedule is not None
    strided = dict.fromkeys("hw", Window(5, 1, 2, low=0, high=0))
    assert not is_fallback(Form(windows=strided).check())
