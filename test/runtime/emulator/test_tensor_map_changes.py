"""Tensor maps changed by the kernel: every field, every fence, and both left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bulk_kernels import DUMP, LOAD, START, TARGET, WAIT, in_shared, run
from fixture_kernels import MODES
from kernel_text import module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import EmulationError, TensorMap, prepare

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
# PTX ISA "tensormap.replace", table of new values.
ELEMENTS = {np.uint8: 0, np.uint16: 1, np.uint32: 2, np.int64: 5, np.float16: 6}
ELEMENTS |= {np.float32: 7, np.float64: 9}
COPY = """
    .shared .align 128 .b8 map[128];
    .reg .b32 %m, %word; .reg .b64 %old, %new, %spare;
    mov.b64 %old, p0; cvta.param.u64 %old, %old;
    ld.param.u64 %spare, [p1]; ld.param.u64 %in, [p2]; ld.param.u64 %out, [p3];
    setp.ge.u32 %p3, %i, 32; @%p3 bra BUILT;
    mad.wide.u32 %new, %i, 4, %old; ld.u32 %word, [%new];
    mad.lo.u32 %m, %i, 4, map; st.shared.u32 [%m], %word;
    bar.warp.sync -1;
    @%p1 bra CHANGED;
CHANGES
CHANGED:
    bar.warp.sync -1;
PUBLISH
    ACQUIRE
BUILT:
    bar.sync 0;
"""
PUBLISH = (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
    ".aligned [%spare], [map], 128;"
)
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%spare], 128;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"


def changes(
    array: np.ndarray, box: tuple[int, ...], steps: tuple[int, ...], swizzle: int
) -> str:
    """All fields of a map of this array, but for its address in %in."""
    lines = [
        "global_address.SPACE.b1024.b64 [WHERE], %in",
        f"rank.SPACE.b1024.b32 [WHERE], {array.ndim - 1}",
        f"elemtype.SPACE.b1024.b32 [WHERE], {ELEMENTS[array.dtype.type]}",
        "interleave_layout.SPACE.b1024.b32 [WHERE], 0",
        f"swizzle_mode.SPACE.b1024.b32 [WHERE], {[0, 32, 64, 128].index(swizzle)}",
        "fill_mode.SPACE.b1024.b32 [WHERE], 0",
    ]
    for field, values, bits in (
        ("global_dim", array.shape[::-1], 32),
        ("global_stride", array.strides[-2::-1] if array.ndim > 1 else (), 64),
        ("box_dim", box[::-1], 32),
        ("element_stride", steps[::-1], 32),
    ):
        lines += [
            f"{field}.SPACE.b1024.b{bits} [WHERE], {d}, {value}"
            for d, value in enumerate(values)
        ]
    return "".join(f"    tensormap.replace.tile.{line};\n" for line in lines)


def kernel(
    array: np.ndarray, box: tuple[int, ...], steps: tuple[int, ...], swizzle: int
) -> str:
    at = ", ".join("0" for _ in box)
    counts = [-(-n // s) for n, s in zip(box, steps, strict=True)]
    size = int(np.prod(counts)) * array.itemsize
    copy = (
        f"cp.async.bulk.tensor.{array.ndim}d.shared::cta.global.tile"
        f".mbarrier::complete_tx::bytes [buffer], [%spare, {{{at}}}], [bar];"
    )
    text = (LOAD + WAIT + DUMP).format(bytes=size, copy=copy, first=0, words=size // 4)
    text = START + COPY + text
    text = text.replace("CHANGES", changes(array, box, steps, swizzle))
    return text.replace("PUBLISH", PUBLISH).replace("ACQUIRE", ACQUIRE)


IN_SHARED = {"SPACE": "shared::cta", "WHERE": "map"}
CASES: list[tuple[Any, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]] = [
    (np.uint32, (600,), (128,), (1,), 0),
    (np.float16, (40, 72), (16, 64), (1, 1), 128),
    (np.float16, (10, 24), (16, 32), (1, 1), 64),  # over both edges
    (np.uint8, (6, 9, 48), (3, 5, 32), (1, 1, 1), 32),
    (np.float32, (9, 25, 12), (4, 24, 8), (2, 3, 1), 0),
    (np.float64, (2, 3, 4, 3, 6), (2, 2, 3, 2, 4), (1, 1, 2, 1, 1), 0),
    (np.int64, (4, 5, 6, 4), (1, 2, 4, 4), (1, 1, 1, 1), 32),
]


def changed(text: str, where: dict[str, str]) -> str:
    for name, value in where.items():
        text = text.replace(name, value)
    return text


def load_changed(
    text: str, array: np.ndarray, size: int, **options: str
) -> tuple[np.ndarray, set[str]]:
    """The bytes that the copy has brought, and the hazards."""
    first = TensorMap(np.zeros((3, 40), np.uint16), (2, 8))
    spare = np.zeros(192, np.uint8)
    base = -spare.ctypes.data % 64
    out = np.zeros(max(size, 256), np.uint8)
    arguments = [first, spare[base:][:128], array, out]
    result = run(text, ["map", "u64", "u64", "u64"], arguments, **options)
    return out[:size], kinds(result)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{len(c[1])}d-{c[0].__name__}")
def test_all_fields_are_replaced(case: tuple) -> None:
    dtype, shape, box, steps, swizzle = case
    array = np.random.default_rng(1).integers(0, 99, shape).astype(dtype)
    padded = np.pad(
        array, [(0, max(b - n, 0)) for b, n in zip(box, shape, strict=True)]
    )
    part = padded[tuple(slice(0, n, s) for n, s in zip(box, steps, strict=True))]
    wanted = in_shared(np.ascontiguousarray(part), swizzle)
    text = changed(kernel(array, box, steps, swizzle), IN_SHARED)
    got, found = load_changed(text, array, wanted.size)
    np.testing.assert_array_equal(got, wanted)
    assert found == set()


ARRAY = np.arange(40 * 72, dtype=np.float16).reshape(40, 72)
FIXED = (ARRAY, (16, 64), (1, 1), 128)
WANTED = in_shared(np.ascontiguousarray(ARRAY[:16, :64]), 128)
IN_GLOBAL = {
    "SPACE": "global",
    "WHERE": "%spare",
    "    bar.warp.sync -1;\n    @%p1 bra CHANGED;": (
        "    mad.wide.u32 %new, %i, 4, %spare; st.global.u32 [%new], %word;\n"
        "    bar.warp.sync -1;\n    @%p1 bra CHANGED;"
    ),
    PUBLISH: RELEASE,
}


@in_every_mode
@pytest.mark.parametrize("where", [IN_SHARED, IN_GLOBAL], ids=["shared", "global"])
def test_changes_and_their_fences(
    where: dict[str, str], visibility: str, schedule: str
) -> None:
    text = changed(kernel(*FIXED), where)
    options = {"visibility": visibility, "schedule": schedule}
    got, found = load_changed(text, ARRAY, WANTED.size, **options)
    np.testing.assert_array_equal(got, WANTED)
    assert found == set()
    for fence in (ACQUIRE, RELEASE):
        if fence not in text:
            continue
        _, found = load_changed(text.replace(fence, ""), ARRAY, WANTED.size, **options)
        assert found == {"no-proxy-fence"}


def test_a_change_after_the_fences() -> None:
    late = "tensormap.replace.tile.fill_mode.global.b1024.b32 [%spare], 1;"
    text = changed(kernel(*FIXED), IN_SHARED).replace(ACQUIRE, f"{ACQUIRE} {late}")
    _, found = load_changed(text, ARRAY, WANTED.size)
    assert "no-proxy-fence" in found
    released = text.replace(late, f"{late} {RELEASE}")
    assert "no-proxy-fence" in load_changed(released, ARRAY, WANTED.size)[1]
    seen = text.replace(f"{ACQUIRE} {late}", f"{late} {RELEASE} {ACQUIRE}")
    assert "no-proxy-fence" not in load_changed(seen, ARRAY, WANTED.size)[1]


def test_a_map_that_plain_stores_have_written() -> None:
    """Of another map; it has to be seen like any change."""
    text = changed(kernel(*FIXED), IN_GLOBAL)
    begin, end = text.index("    tensormap.replace"), text.index("CHANGED:")
    text = text[:begin] + text[end:]
    array = np.arange(128, dtype=np.float16).reshape(4, 32)
    text = text.replace("2048", "256").replace(", 512;", ", 64;")

    def hazards(text: str) -> set[str]:
        spare, out = np.zeros(192, np.uint8), np.zeros(256, np.uint8)
        base = -spare.ctypes.data % 64
        tensor = TensorMap(array, (4, 32))
        arguments = [tensor, spare[base:][:128], array, out]
        return kinds(run(text, ["map", "u64", "u64", "u64"], arguments))

    assert hazards(text) == set()
    assert hazards(text.replace(ACQUIRE, "")) == {"no-proxy-fence"}
    assert hazards(text.replace(RELEASE, "")) == {"no-proxy-fence"}


def test_lanes_that_have_not_stored_yet() -> None:
    """The first lane reads what it has not been told of: .sync waits, but for that."""
    text = changed(kernel(*FIXED), IN_SHARED)
    text = text.replace("CHANGED:\n    bar.warp.sync -1;", "CHANGED:")
    text = text.replace("    bar.warp.sync -1;\n    @%p1", "    @%p1")
    assert load_changed(text, ARRAY, WANTED.size)[1] >= {"read-after-write"}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("[map], 0, 64;", "[map], 0, 65536;", "box_dim 65536 of a tensor map is too"),
        (
            "rank.shared::cta.b1024.b32 [map], 1",
            "rank.shared::cta.b1024.b32 [map], 5",
            "rank 6 of a tensor map is too large",
        ),
        ("[map], 0, 64;", "[map], 0, 0;", r"does not fit: the box \(0, 16\) is not"),
        ("[map], 128", "[map+32], 128", "a tensor map at address .* no multiple of 64"),
    ],
)
def test_values_that_do_not_fit(old: str, new: str, wanted: str) -> None:
    text = changed(kernel(*FIXED), IN_SHARED)
    assert old in text
    with pytest.raises(EmulationError, match=wanted):
        load_changed(text.replace(old, new), ARRAY, WANTED.size)


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("elemtype.global.b1024.b32 [%d0], 8", "elemtype 8 of tensor maps"),
        ("elemtype.global.b1024.b32 [%d0], 13", "elemtype 13 of tensor maps"),
        ("interleave_layout.global.b1024.b32 [%d0], 3", "interleave_layout 3 of"),
        ("swizzle_mode.global.b1024.b32 [%d0], 4", "swizzle_mode 4 of tensor maps"),
        ("swizzle_atomicity.global.b1024.b32 [%d0], 1", "not supported"),
        ("fill_mode.global.b1024.b32 [%d0], %i", "an immediate value"),
        ("global_stride.global.b1024.b64 [%d0], 4, %d1", "one of 4 dimensions"),
    ],
)
def test_fields_that_are_not_supported(what: str, wanted: str) -> None:
    text = module(START + f"tensormap.replace.tile.{what};", [], **TARGET)
    with pytest.raises(EmulationError, match=wanted):
        prepare(text)
