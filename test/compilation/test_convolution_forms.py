"""All convolutions that linalg has names for, and generic ones, against NumPy.

Small whole numbers, compiled and run on the emulator, and checked by the reference that
is read from the function as well.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from convolution_forms import NAMED, Form, Scatter, Window

import alcop_mlir
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import linalg
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import AlcopError, LaunchError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import steps_to_contractions
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

SMALL = {letter: Window(4, 2, low=1, high=0) for letter in "dhw"}
BACKWARDS = Window(6, 3, dilation=2, low=3, high=4, backwards=True)
GRADIENT = dict.fromkeys("hw", Window(6, 4, low=0, high=0))
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
        value.OPERATION_NAME.removeprefix("linalg.")
        for name, value in vars(linalg).items()
        if re.search(r"Conv[123]D.*Op$", name)
    }
    assert {one for one in names if "winograd" not in one} == {*NAMED}


@pytest.mark.parametrize("name", NAMED)
def test_named_ops(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = form(name).check()
    remarks = capsys.readouterr().err
    image = NAMED[name].split()[0]
    has_channels = "c" in image
    assert is_fallback(program) is not has_channels
    if not has_channels:
        assert f"'linalg.{name}' runs as a SIMT fallback" in remarks
    assert "transposed copies" not in remarks


@pytest.mark.parametrize(
    "case",
    [
        Form(layouts="whc hwcf hwf"),
        Form(layouts="cnhw fhwc fnhw"),
        Form(layouts="nhwc chwf nhwf"),
        Form(layouts="nhwc hwcf nfhw", sizes=dict(n=2, c=16, f=8)),
        # The gradient with respect to the filter: images are what is added up.
        Form(layouts="chwn chwf hwnf", sizes=dict(n=8, c=16, f=8), windows=GRADIENT),
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


def test_quantised_ones_of_sizes_known_at_run_time_only() -> None:
    name = "conv_2d_nhwc_hwcf_q"
    windows = dict(h=Window(5, 3, 2), w=Window(4, 2, dilation=2, low=0, high=2))
    case = Form(name, NAMED[name], windows=windows, kinds=("i8", "i32"), open="nhw")
    assert not is_fallback(case.check())


@pytest.mark.parametrize(
    "windows",
    [
        dict.fromkeys("hw", Window(4, 3, low=1, high=2, step=2)),
        dict(h=Window(3, 4, step=3), w=Window(5, 2, 2, 2, low=2, high=0, step=2)),
        dict(h=Window(3, 3, step=4, backwards=True), w=Window(3, 1, step=2)),
        dict.fromkeys("hw", Scatter(4, 3, 2, low=0, high=0)),
        dict(h=Scatter(3, 2, 3), w=Scatter(4, 3, 2, 2, low=0, high=1)),
    ],
    ids=["plain", "strided", "backwards", "scattered", "apart"],
)
@pytest.mark.parametrize("layouts", ["nhwc hwcf nhwf", "nchw cfhw nfhw"])
def test_transposed(layouts: str, windows: dict[str, Window]) -> None:
    """Zeros between pixels, or windows of the output; of some, phases meet no tap."""
    sizes = dict(n=1, c=16, f=10)
    assert not is_fallback(Form(layouts=layouts, sizes=sizes, windows=windows).check())


@pytest.mark.parametrize(
    "case",
    [
        Form(layouts="nhwgc gfhwc nhwgf", windows=dict.fromkeys("hw", Window(4, 2, 2))),
        Form(windows=dict.fromkeys("hw", Scatter(3, 3, 2))),
    ],
    ids=["groups", "phases"],
)
def test_what_passes_made_is_checked(case: Form) -> None:
    """Windows as matrices, and outputs as rows of one, have a reference."""
    source = inputs.read(case.text())
    with source.module.context:
        every = ",".join(steps_to_contractions(allow_tf32=False))
        run_pipeline(source.module, f"builtin.module({every})")
    text = str(source.module)
    assert "alcop.im2col" in text
    assert "alcop.rows" in text or not case.is_scattered
    program = alcop_mlir.compile(text, device="emulator")
    function = program.function
    assert function.reference
    before = checking.random_arrays(function, values="plain")
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(function, before, after).ok
    name = function.parameters[-1].name
    wrong = {**after, name: after[name] * 1.1}
    assert not checking.check(function, before, wrong).ok


OPEN = "tensor<1x?x?x16xf16>"
AROUND = {
    "pad": f"""%low = arith.subi %h, %c2 : index
        %wide = arith.muli %v, %c2 : index
        %high = arith.subi %wide, %c2 : index
        %p = tensor.pad %x low[0, %low, 1, 0] high[0, 1, %high, 0] {{
        ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
          tensor.yield %zero : f16
        }} : {OPEN} to {OPEN}""",
    "spread": f"""%h2 = arith.muli %h, %c2 : index
        %v2 = arith.muli %v, %c2 : index
        %h3 = arith.addi %h2, %c2 : index
        %pe = tensor.empty(%h3, %v2) : {OPEN}
        %pf = linalg.fill ins(%zero : f16) outs(%pe : {OPEN}) -> {OPEN}
        %p = tensor.insert_slice %x into %pf[0, 2, 0, 0] [1, %h, %v, 16] [1, 2, 2, 1]
          : {OPEN} into {OPEN}""",
    "part": f"""%h2 = arith.subi %h, %c2 : index
        %p = tensor.extract_slice %x[0, %c2, 0, 0] [1, %h2, %v, 16] [1, 1, 1, 1]
          : {OPEN} to {OPEN}""",
}


@pytest.mark.parametrize("name", AROUND)
def test_parts_and_borders_computed_of_sizes_are_checked(name: str) -> None:
    """At two images: what is around them, or left of them, is polynomials in sizes."""
    y, w = "tensor<1x?x?x8xf32>", "tensor<2x2x16x8xf16>"
    source = inputs.read(f"""
      func.func @f(%x: {OPEN}, %w: {w}, %y: {y}) -> {y} {{
        %zero = arith.constant 0.0 : f16
        %none = arith.constant 0.0 : f32
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %h = tensor.dim %x, %c1 : {OPEN}
        %v = tensor.dim %x, %c2 : {OPEN}
        {AROUND[name]}
        %i = linalg.fill ins(%none : f32) outs(%y : {y}) -> {y}
        %o = linalg.conv_2d_nhwc_hwcf ins(%p, %w : {OPEN}, {w}) outs(%i : {y}) -> {y}
        return %o : {y}
      }}""")
    bundle = compiler.compile_source(source, compiler.Options(use_ptxas=False))
    program = Program(bundle, device="emulator")
    random = np.random.default_rng(0)
    weights = random.integers(-2, 3, (2, 2, 16, 8)).astype(np.float16)
    for h, v in ((5, 3), (4, 6)):
        image = random.integers(-2, 3, (1, h, v, 16)).astype(np.float16)
        expected = _convolved(_around(name, image), weights)
        out = np.full(expected.shape, np.nan, np.float32)
        arrays = (image, weights, np.zeros_like(out), out)
        names = [one.name for one in program.function.parameters]
        before = {n: array.copy() for n, array in zip(names, arrays, strict=True)}
        program(*arrays)
        np.testing.assert_array_equal(out, expected)
        assert checking.check(program.function, before, {**before, names[3]: out}).ok
        out[0, -1, -1, 0] += 64
        wrong = {**before, names[3]: out}
        assert not checking.check(program.function, before, wrong).ok


def _around(name: str, image: np.ndarray) -> np.ndarray:
    """What `AROUND` makes of an image."""
    _, h, v, _ = image.shape
    if name == "part":
        return image[:, 2:]
    if name == "pad":
        return np.pad(image, [(0, 0), (h - 2, 1), (1, 2 * v - 2), (0, 0)])
    spread = np.zeros((1, 2 * h + 2, 2 * v, 16), image.dtype)
    spread[:, 2::2, ::2] = image
    return spread


def _convolved(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    _, h, v, _ = image.shape
    taps = [
        image[:, r : r + h - 1, s : s + v - 1].astype(np.float32) @ weights[r, s]
        for r in range(2)
        for s in range(2)
    ]
    return np.sum(taps, axis=0)


TRANSPOSED = {
    "padded": Window(7, 3, step=2),
    "apart": Window(5, 2, step=3, low=0, high=2),
    "dilated": Window(4, 3, 1, 2, 2, 2, step=2),
    "scattered": Scatter(4, 3, 2, low=0, high=0),
    "scattered with more": Scatter(4, 2, 3, low=1, high=2),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("window", TRANSPOSED.values(), ids=list(TRANSPOSED))
@pytest.mark.parametrize("letters", ["n", "h", "nhw"])
def test_transposed_of_sizes_known_at_run_time_only(
    window: Window, letters: str
) -> None:
    """One program, at sizes down to a pixel, of which some phases have no output."""
    sizes = dict(n=2, c=16, f=8)
    case = Form(sizes=sizes, windows=dict.fromkeys("hw", window), open=letters)
    program = case.compiled()
    kernels = program.function.kernels
    assert not any(kernel.fallback for kernel in kernels)
    assert any(kernel.schedule is not None for kernel in kernels)
    for images, high, wide in ((1, 1, 1), (3, 2, 5), (5, 3, 1)):
        extents = [
            extent if letter in letters else window.extent
            for letter, extent in (("h", high), ("w", wide))
        ]
        case.of_extents(images if "n" in letters else 2, *extents).run(program)


def test_transposed_of_three_dimensions_and_unknown_sizes() -> None:
    windows: dict[str, Window] = dict(
        d=Scatter(2, 2, 2), h=Scatter(3, 3, 2), w=Scatter(2, 1, 1)
    )
    case = Form(layouts="ndhwc dhwcf ndhwf", windows=windows, open="ndhw")
    program = case.compiled()
    for sizes in ((1, 1, 1, 1), (2, 3, 1, 2)):
        case.of_extents(*sizes).run(program)


@pytest.mark.parametrize("more", [-1, 1])
def test_phases_are_all_outputs(more: int) -> None:
    """Sizes that do not fit are an error, before anything runs."""
    window = Window(4, 3, step=2)
    case = Form(windows=dict(h=window, w=window), open="h")
    x, w, y = case.arrays()
    wrong = np.zeros((1, y.shape[1] + more, *y.shape[2:]), np.float32)
    with pytest.raises(AlcopError, match="sizes do not fit together"):
        case.compiled()(x, w, wrong, wrong.copy())


def test_windows_that_begin_inside_of_the_image() -> None:
    """Written by hand: `low` is negative. There are no steps of a reference for it."""
    source = inputs.read("""
      func.func @inside(%x: memref<1x6x6x16xf16>, %w: memref<144x16xf16>,
                        %y: memref<9x16xf32>) {
        %zero = arith.constant 0.0 : f32
        %a = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3],
               strides = [1, 1], dilations = [1, 1], low = [-1, 0], high = [0, -1],
               groups = 1}>} : (memref<1x6x6x16xf16>) -> memref<9x144xf16>
        linalg.fill ins(%zero : f32) outs(%y : memref<9x16xf32>)
        linalg.matmul ins(%a, %w : memref<9x144xf16>, memref<144x16xf16>)
                      outs(%y : memref<9x16xf32>)
        return
      }""")
    options = compiler.Options(use_ptxas=False)
    program = Program(compiler.compile_source(source, options), device="emulator")
    random = np.random.default_rng(0)
    x, w = (
        random.integers(-3, 4, shape).astype(np.float16)
        for shape in ((1, 6, 6, 16), (144, 16))
    )
    out = np.zeros((9, 16), np.float32)
    program(x, w, out)
    taps = [x[0, p + 1 : p + 4, q : q + 3].ravel() for p in range(3) for q in range(3)]
    expected = np.array(taps, np.float32) @ w.astype(np.float32)
    np.testing.assert_array_equal(out, expected)
    assert not program.function.reference


def test_phases_write_where_outputs_are() -> None:
    """Of two times two, each is a kernel, and so is what copies its taps."""
    case = Form(windows=dict.fromkeys("hw", Window(4, 4, low=2, high=2, step=2)))
    program = case.check()
    scheduled = [kernel.schedule is not None for kernel in program.function.kernels]
    assert sorted(scheduled) == [False] * 4 + [True] * 4


@pytest.mark.parametrize("window", [Window(4, 3, step=2), Scatter(4, 3, 2, high=0)])
def test_an_infinity_in_the_filter_of_a_transposed_one(window: Window) -> None:
    """Zeros between pixels need not be multiplied with it, a pixel must be."""
    case = Form(windows=dict.fromkeys("hw", window))
    program = case.check()
    x, w, out = case.arrays()
    w[0, 1, 2, 3], w[2, 2, 1, 0], w[1, 1, 1, 0] = np.inf, np.nan, np.nan
    out = np.zeros_like(out)
    names = [parameter.name for parameter in program.function.parameters]
    before = dict(zip(names, [x, w, out, out.copy()], strict=True))
    program(x, w, out, after := out.copy())
    assert np.isnan(after).any()
    assert not np.isnan(after[..., 0]).all()
    assert checking.check(program.function, before, {**before, names[-1]: after}).ok
    wrong = after.copy()
    wrong[..., 0] = np.nan_to_num(after[..., 0])
    found = checking.check(program.function, before, {**before, names[-1]: wrong})
    assert not found.ok


@pytest.mark.parametrize("suffix", ["", "_q"])
def test_fallbacks_of_sizes_known_at_run_time_only(suffix: str) -> None:
    """Their padded image is a buffer of a size that the host computes."""
    windows = dict(h=Window(5, 3, 2), w=Window(4, 2, dilation=2, low=0, high=2))
    name = f"depthwise_conv_2d_nhwc_hwc{suffix}"
    kinds = ("i8", "i32") if suffix else ("f16", "f32")
    case = Form(name, NAMED[name], windows=windows, kinds=kinds, open="nhw")
    assert is_fallback(case.check())


def test_one_convolution_after_the_other() -> None:
    """The image gets smaller: the host computes the size of what is between."""
    x, w = "tensor<?x?x?x16xf16>", "tensor<3x3x16x16xf16>"
    sizes = "".join(
        f"""%c{n} = arith.constant {n} : index
        %d{n} = tensor.dim %x, %c{n} : {x}
        %e{n} = arith.subi %d{n}, %two : index
        %f{n} = arith.subi %e{n}, %two : index
        """
        for n in range(3)
    )
    convolutions = "".join(
        f"""%e{a} = tensor.empty(%d0, {h}, {v}) : {x}
        %f{a} = linalg.fill ins(%zero : f16) outs(%e{a} : {x}) -> {x}
        %{a} = linalg.conv_2d_nhwc_hwcf ins(%{b}, %w : {x}, {w})
          outs(%f{a} : {x}) -> {x}
        """
        for a, b, h, v in (("y", "x", "%e1", "%e2"), ("z", "y", "%f1", "%f2"))
    )
    text = f"""
      func.func @f(%x: {x}, %w: {w}) -> {x} {{
        %zero = arith.constant 0.0 : f16
        %two = arith.constant 2 : index
        {sizes}{convolutions}
        return %z : {x}
      }}"""
    program = alcop_mlir.compile(text, device="emulator", variants=1)
    random = np.random.default_rng(0)
    image = random.integers(-1, 2, (1, 7, 6, 16)).astype(np.float16)
    weights = random.integers(-1, 2, (3, 3, 16, 16)).astype(np.float16)
    expected = image.astype(np.float64)
    for n in (1, 2):
        rows, columns = 7 - 2 * n, 6 - 2 * n
        taps = [
            expected[:, r : r + rows, s : s + columns] @ weights[r, s]
            for r in range(3)
            for s in range(3)
        ]
        expected = np.sum(taps, axis=0)
    out = np.full(expected.shape, np.nan, np.float16)
    program(image, weights, out)
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(LaunchError, match="sizes do not fit together"):
        program(image[:, :3], weights, out[:, :1])


# Channels, filters, and what is asked for: the chosen parts of K, or its warps, do not
# fit that, or all fast schedules have parts.
ASKED = [(1024, 128, "block=32,64,16"), (24, 128, "block=32,32,16"), (384, 32, "")]


@pytest.mark.parametrize(("channels", "filters", "asked"), ASKED)
def test_several_schedules_fit_what_is_asked(
    channels: int, filters: int, asked: str
) -> None:
    """They are all carried out."""
    assert _launches(channels, filters, asked) > 1


def test_a_block_that_no_chosen_warp_fits_gets_smaller_warps() -> None:
    """Of rules, not of a model, which may choose warps that fit."""
    assert _launches(1024, 128, "block=16,16,16", "model=false") == 1


def _launches(channels: int, filters: int, asked: str, options: str = "") -> int:
    """Kernels of a convolution of open batch, with what is asked of their schedules."""
    case = Form(
        layouts="nhwc hwcf nhwf",
        sizes=dict(n=1, c=channels, f=filters),
        windows=dict.fromkeys("hw", Window(7, 3 if asked else 7)),
        open="n",
    )
    select = f"alcop-select-schedule{{schedule='{asked}' {options}}}"
    steps = f"func.func({select},alcop-add-variants,alcop-split-k,alcop-tile-to-blocks)"
    source = inputs.read(case.text())
    with source.module.context:
        every = ",".join((*steps_to_contractions(allow_tf32=True), steps))
        run_pipeline(source.module, f"builtin.module({every})")
        return len(walk(source.module.operation, "gpu.launch"))


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


@pytest.mark.parametrize("size", ["6", "?"])
def test_what_is_around_it_is_fused(size: str) -> None:
    """Bias, maximum and residual of two convolutions: no kernel but these two."""
    x = f"tensor<1x{size}x{size}x16xf16>"
    y, w, b = x.replace("f16", "f32"), "tensor<3x3x16x16xf16>", "tensor<16xf32>"
    wide = x if size == "?" else "tensor<1x8x8x16xf16>"
    sizes = "%h, %v" if size == "?" else ""
    block = """
        %p{n} = tensor.pad %x{n} low[0, 1, 1, 0] high[0, 1, 1, 0] {{
        ^bb0(%i: index, %j: index, %k: index, %l: index):
          tensor.yield %none : f16
        }} : {x} to {wide}
        %y{n} = linalg.conv_2d_nhwc_hwcf ins(%p{n}, %w : {wide}, {w})
          outs(%f : {y}) -> {y}
        %x{m} = linalg.generic {{
          indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>,
                           affine_map<(n, h, w, c) -> (c)>,
                           affine_map<(n, h, w, c) -> (n, h, w, c)>,
                           affine_map<(n, h, w, c) -> (n, h, w, c)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
          ins(%y{n}, %b, %x0 : {y}, {b}, {x}) outs(%g : {x}) {{
        ^bb0(%a: f32, %c: f32, %r: f16, %o: f16):
          %1 = arith.addf %a, %c : f32
          %2 = arith.extf %r : f16 to f32
          %3 = arith.addf %1, %2 : f32
          %4 = arith.maximumf %3, %zero : f32
          %5 = arith.truncf %4 : f32 to f16
          linalg.yield %5 : f16
        }} -> {x}"""
    blocks = "".join(
        block.format(n=n, m=n + 1, x=x, y=y, w=w, b=b, wide=wide) for n in range(2)
    )
    program = alcop_mlir.compile(
        f"""
      func.func @f(%x0: {x}, %w: {w}, %b: {b}) -> {x} {{
        %zero = arith.constant 0.0 : f32
        %none = arith.constant 0.0 : f16
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %h = tensor.dim %x0, %c1 : {x}
        %v = tensor.dim %x0, %c2 : {x}
        %e = tensor.empty({sizes}) : {y}
        %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
        %g = tensor.empty({sizes}) : {x}
        {blocks}
        return %x2 : {x}
      }}""",
        device="emulator",
        variants=1,
    )
    function = program.function
    assert [kernel.schedule is not None for kernel in function.kernels] == [True, True]
    random = np.random.default_rng(0)
    image = random.integers(-2, 3, (1, 6, 6, 16)).astype(np.float16)
    weights = random.integers(-1, 2, (3, 3, 16, 16)).astype(np.float16)
    bias = random.integers(-2, 3, 16).astype(np.float32)
    out = np.empty_like(image)
    program(image, weights, bias, out)
    names = [parameter.name for parameter in function.parameters]
    before = dict(zip(names, [image, weights, bias, out], strict=True))
    if size == "6":
        assert checking.check(function, before, before).ok
    expected = image
    for _ in range(2):
        padded = np.pad(expected, [(0, 0), (1, 1), (1, 1), (0, 0)])
        total = sum(
            padded[:, r : r + 6, s : s + 6].astype(np.float64) @ weights[r, s]
            for r in range(3)
            for s in range(3)
        )
        expected = np.maximum(total + bias + image, 0).astype(np.float16)
    np.testing.assert_array_equal(out, expected)
