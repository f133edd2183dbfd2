"""Tensor maps: im2col mode against a model, all reductions, the driver's limits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bulk_kernels import DUMP, LOAD, START, TARGET, WAIT, in_shared, run
from kernel_text import module

from alcop_mlir.runtime.emulator import (
    EmulationError,
    Im2colMap,
    TensorMap,
    prepare,
)

# --- im2col mode ---------------------------------------------------------------------


def column_of(
    array: np.ndarray,
    start: list[int],
    offset: list[int],
    given: dict[str, Any],
    outside: float = 0,
) -> np.ndarray:
    """(pixels, channels) of a copy, one pixel after the other; all innermost last.

    A pixel begins at `start`; the next one is a step on along the last dimension, or
    back at `lower` and a step on along the one before, at last in the next
    image. What is copied lies at that pixel plus the offset.
    """
    lower, upper = given["lower"], given["upper"]
    steps = given.get("element_strides") or [1] * array.ndim
    out = np.full((given["pixels"], given["channels"]), outside, array.dtype)
    image, *pixel, channel = start
    for column in out:
        at = [p + o for p, o in zip(pixel, offset, strict=True)]
        inside = all(0 <= a < n for a, n in zip(at, array.shape[1:], strict=False))
        if inside and 0 <= image < array.shape[0]:
            for i in range(given["channels"]):
                if 0 <= channel + i < array.shape[-1]:
                    column[i] = array[(image, *at, channel + i)]
        d = len(pixel) - 1
        while d >= 0:
            pixel[d] += steps[d + 1]
            if pixel[d] <= array.shape[d + 1] - 1 + upper[d]:
                break
            pixel[d] = lower[d]
            d -= 1
        else:
            image += 1
    return out


COLUMNS = [
    # dtype, shape (N, D, H, W, C), and the map
    (
        np.float16,
        (3, 9, 32),
        dict(channels=16, pixels=20, lower=(-1,), upper=(-1,), swizzle=32),
    ),
    (
        np.float16,
        (2, 7, 6, 64),
        dict(channels=64, pixels=48, lower=(-1, -1), upper=(-1, -1), swizzle=128),
    ),
    (
        np.float32,
        (2, 9, 14, 24),
        dict(channels=8, pixels=33, lower=(0, 0), upper=(-2, -2), swizzle=0),
    ),
    (
        np.uint8,
        (4, 8, 9, 48),
        dict(
            channels=32,
            pixels=24,
            lower=(-1, -2),
            upper=(-1, -1),
            element_strides=(1, 2, 3, 1),
        ),
    ),
    (
        np.float32,
        (2, 3, 4, 5, 16),
        dict(channels=16, pixels=70, lower=(-1, 0, -1), upper=(0, -2, -1), swizzle=64),
    ),
]
MAP = "mov.b64 %map, p0; cvta.param.u64 %map, %map; ld.param.u64 %out, [p1];"


def image(**given: Any) -> dict[str, Any]:
    fits: dict[str, Any] = dict(channels=8, pixels=32, lower=(-1, -1), upper=(-1, -1))
    return fits | given


def column_load(start: list[int], offset: list[int]) -> str:
    at = ", ".join(str(c) for c in start[::-1])
    by = ", ".join(f"%h{i}" for i in range(len(offset)))
    moves = "".join(f"mov.u16 %h{i}, {o}; " for i, o in enumerate(offset[::-1]))
    return (
        f"{moves}cp.async.bulk.tensor.{len(start)}d.shared::cluster.global.im2col"
        f".mbarrier::complete_tx::bytes [buffer], [%map, {{{at}}}], [bar], {{{by}}};"
    )


def load_column(
    tensor: Im2colMap, start: list[int], offset: list[int], size: int, **options: str
) -> np.ndarray:
    text = START + ".reg .b16 %h<3>;" + MAP + LOAD + WAIT + DUMP
    text = text.format(
        bytes=size, copy=column_load(start, offset), first=0, words=size // 4
    )
    out = np.zeros(max(size, 256), np.uint8)
    result = run(text, ["map", "u64"], [tensor, out], **options)
    assert result.hazards == ()
    return out[:size]


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", COLUMNS, ids=lambda c: f"{len(c[1])}d-{c[0].__name__}")
def test_columns_of_images(case: tuple, seed: int, visibility: str) -> None:
    dtype, shape, given = case
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 200, shape).astype(dtype)
    corners = zip(shape[1:-1], given["lower"], given["upper"], strict=True)
    start = [int(rng.integers(low, n + high)) for n, low, high in corners]
    start = [int(rng.integers(-1, shape[0])), *start, int(rng.integers(-3, 4))]
    offset = [int(rng.integers(0, 4)) for _ in shape[1:-1]]
    wanted = in_shared(column_of(array, start, offset, given), given.get("swizzle", 0))
    tensor = Im2colMap(array, **given)
    got = load_column(tensor, start, offset, wanted.size, visibility=visibility)
    np.testing.assert_array_equal(got, wanted)


def test_what_lies_outside_of_images_is_nan() -> None:
    given = image()
    array = np.ones((1, 4, 4, 8), np.float16)
    tensor = Im2colMap(array, **given, nan_fill=True)
    got = load_column(tensor, [0, -1, -1, 0], [0, 0], 512).view(np.float16)
    wanted = column_of(array, [0, -1, -1, 0], [0, 0], given, np.nan)
    np.testing.assert_array_equal(got, wanted.reshape(-1))


FILL = """
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %i, 4, %in;
    mad.lo.u32 %at, %i, 4, %at; mov.u32 %v, 0;
FILL:
    ld.global.u32 %c0, [%in]; st.shared.u32 [%at], %c0;
    add.u64 %in, %in, 256; add.u32 %at, %at, 256; add.u32 %v, %v, 1;
    setp.lt.u32 %p2, %v, 4; @%p2 bra FILL;
    fence.proxy.async;
    bar.sync 0;
    @%p1 bra END;
    COPY
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:
"""


def test_columns_that_are_stored() -> None:
    """Pixels outside of the images, and of the last one, are not written."""
    rng = np.random.default_rng(1)
    given: dict[str, Any] = dict(channels=8, pixels=64)
    given |= dict(lower=(-1, 0), upper=(0, 1))
    column = rng.integers(1, 99, (64, 8)).astype(np.float16)
    array = np.zeros((2, 4, 6, 8), np.float16)
    places = np.arange(array.size).reshape(array.shape)
    found = column_of(places, [1, 2, 3, 0], [0, 0], given, -1).reshape(-1)
    wanted = array.copy()
    wanted.reshape(-1)[found[found >= 0]] = column.reshape(-1)[found >= 0]
    copy = (
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
        "[p1, {0, 3, 2, 1}], [buffer];"
    )
    tensor = Im2colMap(array, **given)
    text = START + FILL.replace("COPY", copy)
    result = run(text, ["u64", "map"], [column.view(np.uint32), tensor])
    np.testing.assert_array_equal(array, wanted)
    assert result.hazards == ()


@pytest.mark.parametrize(
    ("start", "offset", "wanted"),
    [
        ([0, 0, 5, 0], [0, 0], "coordinate 5 of dimension 1 is not from -1 to 4"),
        ([0, -2, 0, 0], [0, 0], "coordinate -2 of dimension 2 is not from -1 to 4"),
        ([0, 0, 0, 0], [0, 256], "im2col offset 256 is not from 0 to 255"),
    ],
)
def test_columns_that_begin_elsewhere(
    start: list[int], offset: list[int], wanted: str
) -> None:
    given = image()
    tensor = Im2colMap(np.ones((1, 6, 6, 8), np.float16), **given)
    with pytest.raises(EmulationError, match=wanted):
        load_column(tensor, start, offset, 512)


def test_maps_of_the_other_mode() -> None:
    array = np.ones((1, 6, 6, 8), np.float16)
    given = image()
    tiles: Any = TensorMap(array, (1, 4, 8, 8))
    with pytest.raises(EmulationError, match="does not fit: it is of tile mode"):
        load_column(tiles, [0, 0, 0, 0], [0, 0], 512)
    copy = (
        "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
        "[buffer], [p0, {0, 0, 0, 0}], [bar];"
    )
    text = START + LOAD.format(bytes=512, copy=copy)
    with pytest.raises(EmulationError, match="does not fit: it is of im2col mode"):
        run(text, ["map"], [Im2colMap(array, **given)])


# --- reductions ----------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda a, b: np.where(a >= b, 0, a + 1),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
}
# PTX ISA "cp.reduce.async.bulk.tensor", valid combinations.
INTEGERS = (np.uint32, np.int32, np.uint64, np.int64)
REDUCED = [
    *itertools.product(("add",), (*INTEGERS[:3], np.float16, np.float32, "bf16")),
    *itertools.product(("min", "max"), (*INTEGERS, np.float16, "bf16")),
    *itertools.product(("inc", "dec"), (np.uint32,)),
    *itertools.product(("and", "or", "xor"), INTEGERS),
]


@pytest.mark.parametrize(("how", "dtype"), REDUCED)
def test_all_tensor_reductions(how: str, dtype: Any) -> None:
    rng = np.random.default_rng(len(how))
    kind = np.uint16 if dtype == "bf16" else np.dtype(dtype).type
    raw = rng.integers(0, 256, (2, 1024)).astype(np.uint8)
    old, new = raw.view(kind)
    if dtype == "bf16" or np.dtype(kind).kind == "f":
        old, new = rng.integers(-64, 64, (2, 1024 // np.dtype(kind).itemsize))
        old, new = old.astype(np.float32), new.astype(np.float32)
        wanted = FUNCTIONS[how](old, new)
        old, new, wanted = (
            (x.view(np.uint32) >> 16).astype(kind)
            if dtype == "bf16"
            else x.astype(kind)
            for x in (old, new, wanted)
        )
    else:
        wanted = FUNCTIONS[how](old, new).astype(kind)
    array = old.reshape(4, -1).copy()
    copy = (
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{how}.tile.bulk_group "
        "[p1, {0, 0}], [buffer];"
    )
    tensor = TensorMap(array, array.shape, dtype="bf16" if dtype == "bf16" else None)
    text = START + FILL.replace("COPY", copy)
    result = run(text, ["u64", "map"], [new.view(np.uint32), tensor])
    np.testing.assert_array_equal(array.reshape(-1), wanted)
    assert result.hazards == ()


def test_reductions_of_f32_flush_subnormals() -> None:
    tiny = np.full(128, 1e-40, np.float32)
    old, out = (np.array([x, 1], np.float32).repeat(64) for x in (1e-40, 0))
    copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
    copy += "[%out], [buffer], 512;"
    text = START + "ld.param.u64 %out, [p1];" + FILL.replace("COPY", copy)
    array = old.copy()
    result = run(text, ["u64", "u64"], [np.tile(tiny, 2).view(np.uint32), array])
    np.testing.assert_array_equal(array, out)
    assert result.hazards == ()


@pytest.mark.parametrize(
    ("how", "dtype"),
    [("add", np.int64), ("min", np.float32), ("xor", np.float16), ("inc", np.int32)],
)
def test_reductions_that_there_are_not(how: str, dtype: type) -> None:
    array = np.zeros((4, 64), dtype)
    copy = (
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{how}.tile.bulk_group "
        "[p1, {0, 0}], [buffer];"
    )
    text, tensor = START + FILL.replace("COPY", copy), TensorMap(array, (2, 8))
    with pytest.raises(EmulationError, match=rf"there is no \.{how} of "):
        run(text, ["u64", "map"], [np.zeros(256, np.uint32), tensor])


# --- limits and later targets --------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "given", "wanted"),
    [
        ((6, 8), image(), "im2col mode needs 3 to 5 dimensions, got an array of 2"),
        ((2, 6, 6, 8), image(lower=(0,)), r"\(0,\) has 1 numbers.* it needs 2"),
        ((2, 6, 6, 8), image(lower=(-129, 0)), r"\(0, -129\) is not from -128 to 127"),
        ((2, 6, 6, 8), image(upper=(0, 128)), "upper .* from -128 to 127"),
        (
            (2, 3, 6, 6, 8),
            image(lower=(0, 0, -17), upper=(0, 0, 0)),
            "is not from -16 to 15, as of 5 dimensions",
        ),
        ((2, 6, 6, 8), image(upper=(-8, 0)), "no pixel lies from"),
        ((2, 6, 6, 8), image(pixels=1025), "1025 pixels of a column are not from 1"),
        ((2, 6, 6, 8), image(channels=4), "a row of the box has 8 bytes"),
        ((2, 6, 6, 512), image(channels=264), r"\(264,\) is not from 1 to 256"),
        (
            (2, 6, 6, 64),
            image(channels=64, swizzle=64),
            "128 bytes, more than the swizzle of 64",
        ),
        ((2, 6, 6, 8), image(element_strides=(1, 9, 1, 1)), "are not from 1 to 8"),
        ((2, 6, 6, 8), image(element_strides=(1, 1)), "expected 4 element strides"),
        ((2, 6, 6, 16), image(interleave=16), "one slice of 16 bytes"),
        (
            (2, 6, 6, 16),
            image(channels=8, interleave=32, swizzle=32),
            "one slice of 32 bytes, .* has 32 bytes, in the box 16",
        ),
        (
            (2, 6, 6, 16),
            image(channels=16, interleave=32),
            "needs a swizzle of 32, it has 0",
        ),
    ],
)
def test_images_that_the_driver_refuses(
    shape: tuple[int, ...], given: dict[str, Any], wanted: str
) -> None:
    with pytest.raises(EmulationError, match=wanted):
        Im2colMap(np.zeros(shape, np.float16), **given)


def test_tiles_that_the_driver_refuses() -> None:
    with pytest.raises(EmulationError, match="array of u32 cannot be NaN"):
        TensorMap(np.zeros((4, 8), np.uint32), (4, 8), nan_fill=True)


# --- interleaved arrays --------------------------------------------------------------


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize(
    ("interleave", "dtype", "swizzle"),
    [(16, np.float16, 0), (16, np.uint8, 128), (32, np.float32, 32), (32, "<u2", 32)],
)
def test_slices_of_channels(
    interleave: int, dtype: Any, swizzle: int, visibility: str
) -> None:
    """NC/8HWC8 and NC/16HWC16 against an array (N, C, H, W) and its zeros around."""
    each = interleave // np.dtype(dtype).itemsize
    rng = np.random.default_rng(interleave)
    images = rng.integers(1, 99, (2, 3 * each, 5, 7)).astype(dtype)
    split = images.reshape(2, 3, each, 5, 7).transpose(0, 1, 3, 4, 2)
    box, (slice0, y, x) = (1, 2, 3, 4, each), (2, -1, 5)
    tensor = TensorMap(split.copy(), box, swizzle, interleave=interleave)
    wanted = np.zeros(box[1:], dtype)
    for s, h, w, c in itertools.product(*map(range, box[1:])):
        channel, at = (slice0 + s) * each + c, (y + h, x + w)
        if channel < 3 * each and 0 <= at[0] < 5 and at[1] < 7:
            wanted[s, h, w, c] = images[1, channel, at[0], at[1]]
    copy = (
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx"
        f"::bytes [buffer], [%map, {{0, {x}, {y}, {slice0}, 1}}], [bar];"
    )
    text = START + MAP + LOAD + WAIT + DUMP
    given = {"bytes": wanted.nbytes, "words": wanted.nbytes // 4, "first": 0}
    out = np.zeros(1024, np.uint8)
    text = text.format(copy=copy, **given)
    result = run(text, ["map", "u64"], [tensor, out], visibility=visibility)
    np.testing.assert_array_equal(out[: wanted.nbytes], in_shared(wanted, swizzle))
    assert result.hazards == ()


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize(
    ("interleave", "dtype", "swizzle"),
    [(16, np.float16, 0), (16, np.uint8, 64), (32, np.float32, 32), (32, "<u2", 32)],
)
def test_slices_of_channels_in_columns(
    interleave: int, dtype: Any, swizzle: int, visibility: str
) -> None:
    """One slice is a column of the images with these channels alone."""
    each = interleave // np.dtype(dtype).itemsize
    rng = np.random.default_rng(interleave)
    images = rng.integers(1, 99, (3, 5, 7, 4 * each)).astype(dtype)
    split = images.reshape(3, 5, 7, 4, each).transpose(0, 3, 1, 2, 4).copy()
    there: dict[str, Any] = dict(channels=each, pixels=20, swizzle=swizzle)
    tensor = Im2colMap(
        split,
        lower=(0, -1, -2),
        upper=(0, -1, 0),
        interleave=interleave,
        element_strides=(1, 1, 2, 1, 1),
        **there,
    )
    plane = image(lower=(-1, -2), upper=(-1, 0), element_strides=(1, 2, 1, 1), **there)
    one = np.ascontiguousarray(images[..., 2 * each : 3 * each])
    wanted = column_of(one, [1, -1, 3, 0], [1, 2], plane)
    got = load_column(
        tensor, [1, 2, -1, 3, 0], [0, 1, 2], wanted.nbytes, visibility=visibility
    )
    np.testing.assert_array_equal(got, in_shared(wanted, swizzle))


def test_columns_go_on_in_the_next_slice() -> None:
    """As they do in the next depth: slices are a dimension of the map like others."""
    array = np.arange(2 * 3 * 4 * 16).reshape(2, 3, 4, 16).astype(np.uint16)
    given: dict[str, Any] = dict(channels=16, pixels=10, swizzle=32)
    given |= dict(lower=(0, 0), upper=(0, 0))
    tensor = Im2colMap(array, interleave=32, **given)
    wanted = column_of(array, [0, 1, 2, 0], [0, 0], given)
    got = load_column(tensor, [0, 1, 2, 0], [0, 0], wanted.nbytes)
    np.testing.assert_array_equal(got, in_shared(wanted, 32))


@pytest.mark.parametrize(
    ("shape", "box", "given", "wanted"),
    [
        ((4, 8), (4, 8), {}, "needs 3 to 5 dimensions, it has 2"),
        ((2, 4, 16), (1, 4, 16), {}, "slice of 16 bytes, .* it has 32 bytes"),
        ((2, 4, 8), (1, 4, 4), {}, "a row of the box has 8 bytes"),
        ((2, 4, 8), (1, 4, 8), dict(element_strides=(1, 1, 2)), "one slice of 16"),
        (
            (2, 4, 16),
            (1, 4, 16),
            dict(interleave=32),
            "needs a swizzle of 32, it has 0",
        ),
        ((2, 4, 8), (1, 4, 8), dict(interleave=8), "an interleave of 0, 16 or 32"),
    ],
)
def test_slices_that_there_are_not(
    shape: tuple[int, ...], box: tuple[int, ...], given: dict[str, Any], wanted: str
) -> None:
    options: dict[str, Any] = {"interleave": 16} | given
    with pytest.raises(EmulationError, match=wanted):
        TensorMap(np.zeros(shape, np.float16), box, **options)


def test_slices_whose_stride_is_odd() -> None:
    array = np.zeros((2, 5, 32), np.float16)[:, :4, :16]
    TensorMap(array, (1, 4, 16), 32, interleave=32)
    odd = np.zeros((2, 4 * 24), np.float16)
    odd = np.lib.stride_tricks.as_strided(odd, (2, 4, 16), (4 * 48, 48, 2))
    with pytest.raises(EmulationError, match="stride, is not a multiple of 32"):
        TensorMap(odd, (1, 4, 16), 32, interleave=32)


@pytest.mark.parametrize(
    ("copy", "wanted"),
    [
        (
            "2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes "
            "[buffer], [p0, {0, 0, 1, 2, 3}], [bar]",
            "tile::gather4 is of sm_100",
        ),
        (
            "2d.global.shared::cta.tile::scatter4.bulk_group "
            "[p0, {0, 0, 1, 2, 3}], [buffer]",
            "tile::scatter4 is of sm_100",
        ),
        (
            "3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes "
            "[buffer], [p0, {0, 0, 0}], [bar], {%h0}",
            "im2col::w is of sm_100",
        ),
        (
            "4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes "
            "[buffer], [p0, {0, 0, 0, 0}], [bar], {%h0}",
            "im2col mode has offsets",
        ),
    ],
)
def test_forms_of_later_targets(copy: str, wanted: str) -> None:
    text = START + f".reg .b16 %h<3>; cp.async.bulk.tensor.{copy};"
    whole = module(text, [], **TARGET)
    whole = whole.replace("kernel()", "kernel(.param .align 64 .b8 p0[128])")
    with pytest.raises(EmulationError, match=wanted):
        prepare(whole)


def test_a_map_that_the_driver_has_encoded() -> None:
    text = START + MAP + "ld.param.u64 %out, [p1];" + LOAD + WAIT
    copy = (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx"
        "::bytes [buffer], [%map, {0, 0}], [bar];"
    )
    text = text.format(bytes=1024, copy=copy)
    given = [bytes(range(128)), np.zeros(256, np.uint8)]
    with pytest.raises(EmulationError, match="pass a TensorMap or Im2colMap of the"):
        run(text, ["map", "u64"], given)
