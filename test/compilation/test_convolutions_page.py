"""docs/convolutions.md: the remarks that it explains, of convolutions that get them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from convolution_forms import NAMED, Form, Window

from alcop_mlir.compilation import compiler, inputs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "convolutions.md"


def named(
    name: str,
    channels: int = 32,
    kinds: tuple[str, str] = ("f16", "f32"),
    open: str = "",
) -> Form:
    sizes = {"n": 1, "g": 2, "c": channels, "f": 16}
    return Form(name, NAMED[name], sizes, kinds=kinds, open=open)


PLAIN = "conv_2d_nhwc_hwcf"
FORMS = {
    "has 8 channels, ": named(PLAIN, 8, open="f"),
    "has 8 channels in a group": named("conv_2d_nhwgc_gfhwc", 8),
    "is a depthwise convolution": named("depthwise_conv_2d_nhwc_hwc"),
    "is a convolution of 4 inputs": named(
        "depthwise_conv_2d_nhwc_hwc_q", kinds=("i8", "i32")
    ),
    "has i16 inputs": named(PLAIN, kinds=("i16", "i32")),
    "computes in f64": named(PLAIN, kinds=("f64", "f64")),
    "has channels of a size": named(PLAIN, open="c"),
    "image and filter are copied": named(PLAIN, 5),
    "transposed copies": Form(layouts="hwnc chwf nhwf"),
    "dense copies": Form(
        layouts="nhwgc gfhwc nhwgf", windows=dict.fromkeys("hw", Window(4, 1, step=2))
    ),
    "its padding is computed": named(PLAIN),
    "are known to be aligned": named(PLAIN, 17),
}


@pytest.mark.parametrize("begins", FORMS)
def test_remarks(begins: str) -> None:
    """To the letter; what is on tensor cores and what is not, too."""
    page = PAGE.read_text()
    (row,) = re.findall(rf"^\| ({re.escape(begins)}.*?) \|", page, re.MULTILINE)
    text = FORMS[begins].text()
    if "padded with 1.0" in row:
        text = text.replace("arith.constant 0.0 : f16", "arith.constant 1.0 : f16")
    lowered = compiler.lower(inputs.read(text), compiler.Options(use_ptxas=False))
    remarks = {one.message for one in lowered.remarks}
    assert len(remarks) == 1 or begins == "dense copies"  # of each phase
    remark = next(one for one in remarks if row in one)
    fallbacks = page[: page.index("Others leave it on tensor cores")]
    assert ("runs as a SIMT fallback" in remark) == (row in fallbacks)


def test_every_remark_has_a_form() -> None:
    rows = re.findall(r"^\| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) - 2 == len(FORMS)  # two headers
