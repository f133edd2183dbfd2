"""cp.async.bulk and tensor copies: bytes against a model, order, faults."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bulk_kernels import DUMP, LOAD, START, TARGET, WAIT, in_shared, run
from fixture_kernels import MODES
from kernel_text import launch, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import EmulationError, Struct, TensorMap

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
# --- bulk copies -------------------------------------------------------------------


@in_every_mode
@pytest.mark.parametrize("to", ["shared::cluster", "shared::cta"])
def test_bulk_copy_in(to: str, visibility: str, schedule: str) -> None:
    copy = (
        f"cp.async.bulk.{to}.global.mbarrier::complete_tx::bytes [buffer+256], "
        "[%in+64], 1024, [bar];"
    )
    text = f"ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1];{LOAD}{WAIT}{DUMP}"
    text = START + text.format(bytes=1024, copy=copy, first=256, words=256)
    given, out = np.arange(400, dtype=np.uint32), np.zeros(256, np.uint32)
    options = {"visibility": visibility, "schedule": schedule}
    result = run(text, ["u64", "u64"], [given, out], **options)
    np.testing.assert_array_equal(out, given[16:272])
    assert result.hazards == ()
    # Without the wait: read while it is in flight, or without an order.
    text = text.replace("@!%p0 bra LOOP;", "").replace("[bar], 0;", "[bar], 1;")
    result = run(text, ["u64", "u64"], [given, out], **options)
    assert kinds(result) & {"read-in-flight", "read-after-write"}


@in_every_mode
def test_an_init_is_a_write_of_the_generic_proxy(
    visibility: str, schedule: str
) -> None:
    """PTX ISA 9.3: copies use their mbarrier by it; so a barrier will do."""
    copy = (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], "
        "[%in], 1024, [bar];"
    )
    text = f"ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1];{LOAD}{WAIT}{DUMP}"
    text = START + text.format(bytes=1024, copy=copy, first=0, words=256)
    # Thread 0 initialises, one of another warp copies.
    text = text.replace("@%p1 bra LOADED;", "setp.ne.u32 %p3, %i, 40; @%p3 bra LOADED;")
    text = text.replace("fence.mbarrier_init.release.cluster;", "")
    given, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    options = {"visibility": visibility, "schedule": schedule}
    result = run(text, ["u64", "u64"], [given, out], **options)
    np.testing.assert_array_equal(out, given)
    assert result.hazards == ()
    # Without the barrier nobody has to see the init.
    unordered = text.replace("bar.sync 0;", "", 1)
    why = "nothing"
    try:
        reported = kinds(run(unordered, ["u64", "u64"], [given, out], **options))
    except EmulationError as error:
        reported, why = set[str](), str(error)
    assert "read-after-write" in reported or "there is no mbarrier" in why


STORE = """
    mad.lo.u32 %at, %i, 4, %at;
    ld.param.u64 %out, [p0];
    st.shared.u32 [%at], %i; st.shared.u32 [%at+256], %i;
    FENCE
    bar.sync 0;
    @%p1 bra END;
    COPY
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
END:
    AFTER
    ret;
"""
OUT = "cp.async.bulk.global.shared::cta.bulk_group [%out], [buffer], 512;"


def store(after: str = "", fence: str = "fence.proxy.async.shared::cta;") -> str:
    text = START + STORE.replace("FENCE", fence).replace("AFTER", after)
    return text.replace("COPY", OUT)


@in_every_mode
def test_bulk_copy_out(visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    wanted = np.tile(np.arange(64, dtype=np.uint32), 2)
    out = np.zeros(128, np.uint32)
    result = run(
        store("bar.sync 0; st.shared.u32 [%at], 7;"), ["u64"], [out], **options
    )
    np.testing.assert_array_equal(out, wanted)
    assert result.hazards == ()
    assert kinds(run(store(fence=""), ["u64"], [out], **options)) == {"no-proxy-fence"}
    moved = store().replace("bar.sync 0;\n    @%p1", "bar.sync 0; FENCE\n    @%p1", 1)
    moved = moved.replace("fence.proxy.async.shared::cta;", "").replace(
        "FENCE", "fence.proxy.async;"
    )
    assert run(moved, ["u64"], [out], **options).hazards == ()


@pytest.mark.parametrize("visibility", ["late", "early"])
def test_a_source_overwritten_while_it_is_read(visibility: str) -> None:
    out = np.zeros(128, np.uint32)
    text = store().replace(
        "cp.async.bulk.wait_group.read 0;",
        "st.shared.u32 [buffer+16], 9; cp.async.bulk.wait_group.read 0;",
    )
    result = run(text, ["u64"], [out], visibility=visibility)
    assert kinds(result) == {"write-while-read"}
    text = store(after="st.shared.u32 [%at], 9;")
    assert kinds(run(text, ["u64"], [out], visibility=visibility)) <= {
        "write-while-read",
        "write-after-read",
    }
    assert kinds(run(text, ["u64"], [out], visibility=visibility))


def test_a_store_that_nobody_waits_for() -> None:
    out = np.zeros(128, np.uint32)
    text = store().replace("cp.async.bulk.wait_group.read 0;", "")
    result = run(text, ["u64"], [out])
    assert kinds(result) == {"unfinished-at-exit"}
    assert out[100] == 36


@pytest.mark.parametrize(
    ("how", "dtype", "combine"),
    [
        ("add.u32", np.uint32, np.add),
        ("max.s32", np.int32, np.maximum),
        ("min.s32", np.int32, np.minimum),
        ("xor.b32", np.uint32, np.bitwise_xor),
        ("add.u64", np.uint64, np.add),
        ("add.f32", np.float32, np.add),
        ("add.noftz.f16", np.float16, np.add),
    ],
)
def test_bulk_reductions(how: str, dtype: type, combine: np.ufunc) -> None:
    rng = np.random.default_rng(3)
    count = 512 // np.dtype(dtype).itemsize
    given, old = (rng.integers(0, 99, count).astype(dtype) for _ in range(2))
    copy = OUT.replace("cp.", "cp.reduce.").replace("group ", f"group.{how} ")
    text = (
        store()
        .replace(OUT, copy)
        .replace(
            "st.shared.u32 [%at], %i; st.shared.u32 [%at+256], %i;",
            "ld.param.u64 %in, [p1]; mad.wide.u32 %in, %i, 4, %in;"
            "ld.global.u32 %v, [%in]; st.shared.u32 [%at], %v;"
            "ld.global.u32 %v, [%in+256]; st.shared.u32 [%at+256], %v;",
        )
    )
    out = old.copy()
    result = run(text, ["u64", "u64"], [out, given])
    np.testing.assert_array_equal(out, combine(old, given))
    assert result.hazards == ()


# --- boxes of arrays -----------------------------------------------------------------


def box_of(
    array: np.ndarray, corner: list[int], box: list[int], steps: list[int]
) -> np.ndarray:
    """The elements of a box, zeros outside; all innermost last."""
    counts = [-(-n // s) for n, s in zip(box, steps, strict=True)]
    out = np.zeros(counts, array.dtype)
    for index in itertools.product(*map(range, counts)):
        at = [c + i * s for c, i, s in zip(corner, index, steps, strict=True)]
        if all(0 <= a < n for a, n in zip(at, array.shape, strict=True)):
            out[index] = array[tuple(at)]
    return out


BOXES = [
    # dtype, shape, box, steps, swizzle
    (np.uint32, (100,), (64,), (1,), 0),
    (np.float16, (70, 72), (16, 64), (1, 1), 128),
    (np.float16, (70, 72), (16, 32), (1, 1), 64),
    (np.float16, (70, 72), (16, 16), (1, 1), 32),
    (np.float16, (30, 40), (20, 24), (1, 1), 0),
    (np.uint8, (9, 11, 48), (3, 5, 32), (1, 1, 1), 32),
    (np.float32, (9, 25, 12), (4, 24, 8), (2, 3, 1), 0),
    (np.float32, (3, 4, 5, 8), (2, 3, 4, 8), (1, 2, 1, 1), 32),
    (np.float64, (2, 3, 4, 3, 6), (2, 2, 3, 2, 4), (1, 1, 2, 1, 1), 0),
]


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "case", BOXES, ids=lambda c: f"{len(c[1])}d-{c[4]}-{c[0].__name__}"
)
def test_tensor_loads(case: tuple, seed: int, visibility: str) -> None:
    dtype, shape, box, steps, swizzle = case
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 200, shape).astype(dtype)
    corner = [int(rng.integers(-3, n)) for n in shape]
    if seed == 0:
        corner = [0] * len(shape)
    wanted = in_shared(box_of(array, corner, list(box), list(steps)), swizzle)
    coordinates = ", ".join(str(c) for c in corner[::-1])
    copy = (
        f"cp.async.bulk.tensor.{len(shape)}d.shared::cluster.global.tile"
        f".mbarrier::complete_tx::bytes [buffer], [%map, {{{coordinates}}}], [bar];"
    )
    text = (
        "mov.b64 %map, p0; cvta.param.u64 %map, %map; ld.param.u64 %out, [p1];"
        f"{LOAD}{WAIT}{DUMP}"
    )
    text = START + text.format(
        bytes=wanted.size, copy=copy, first=0, words=wanted.size // 4
    )
    out = np.zeros(max(wanted.size, 256), np.uint8)
    tensor = TensorMap(array, box, swizzle, steps)
    result = run(text, ["map", "u64"], [tensor, out], visibility=visibility)
    np.testing.assert_array_equal(out[: wanted.size], wanted)
    assert result.hazards == ()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("reduces", [False, True])
def test_tensor_stores(swizzle: int, reduces: bool) -> None:
    """A box over two edges of an array: what lies outside is not written."""
    rng = np.random.default_rng(swizzle)
    row = (swizzle or 64) // 2
    box = rng.integers(0, 99, (1024 // row, row)).astype(np.float16)
    old = rng.integers(0, 99, (40, 72)).astype(np.float16)
    array, wanted = old.copy(), old.copy()
    corner = (10, 72 - row + 4)
    part = wanted[10 : 10 + len(box), corner[1] :]
    new = box[: len(part), : part.shape[1]]
    part[...] = part + new if reduces else new
    given = in_shared(box, swizzle).view(np.uint32)
    how = ".add" if reduces else ""
    start = "cp.reduce.async" if reduces else "cp.async"
    copy = (
        f"{start}.bulk.tensor.2d.global.shared::cta{how}.tile.bulk_group "
        f"[p1, {{{corner[1]}, {corner[0]}}}], [buffer];"
    )
    text = (
        START
        + """
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %i, 4, %in;
    mad.lo.u32 %at, %i, 4, %at; mov.u32 %v, 0;
FILL:
    ld.global.u32 %c0, [%in]; st.shared.u32 [%at], %c0;
    add.u64 %in, %in, 256; add.u32 %at, %at, 256; add.u32 %v, %v, 1;
    setp.lt.u32 %p2, %v, 8; @%p2 bra FILL;
    fence.proxy.async;
    bar.sync 0;
    @%p1 bra END;
    COPY
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:
    """.replace("COPY", copy)
    )
    tensor = TensorMap(array, box.shape, swizzle)
    result = run(text, ["u64", "map"], [given, tensor])
    np.testing.assert_array_equal(array, wanted)
    assert result.hazards == ()


def test_a_map_inside_of_a_structure() -> None:
    """As CUTLASS passes its parameters; and one given for two parameters."""
    array, out = (
        np.arange(512, dtype=np.uint32).reshape(8, 64),
        np.zeros(256, np.uint32),
    )
    tensor = TensorMap(array, (4, 64))
    text = (
        START + "mov.b64 %map, p0; cvta.param.u64 %map, %map; add.u64 %map, %map, 64;"
    )
    copy = (
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
        "[buffer], [%map, {0, 3}], [bar];"
    )
    text += "ld.param.u64 %out, [p0+192];" + (LOAD + WAIT + DUMP).format(
        bytes=1024, copy=copy, first=0, words=256
    )
    whole = module(text, [], **TARGET)
    whole = whole.replace("kernel()", "kernel(.param .align 64 .b8 p0[256])")
    given = Struct(256, {0: np.int32(7), 64: tensor, 192: out})
    result = launch(whole, None, (1,), (64,), [given])
    np.testing.assert_array_equal(out, array[3:7].reshape(-1))
    assert result.hazards == ()


# --- bytes and faults -------------------------------------------------------------


def load_of(expected: int, copied: int, at: str = "buffer", source: str = "%in") -> str:
    copy = (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
        f"[{at}], [{source}], {copied}, [bar];"
    )
    return START + "ld.param.u64 %in, [p0];" + LOAD.format(bytes=expected, copy=copy)


def test_bytes_that_do_not_come() -> None:
    given = np.zeros(400, np.uint32)
    wanted = "phase 0: 0 of 1 arrivals pending, 16 bytes to come"
    with pytest.raises(EmulationError, match=wanted):
        run(load_of(1040, 1024) + WAIT, ["u64"], [given])
    result = run(load_of(1024, 1024), ["u64"], [given])
    assert kinds(result) == {"unfinished-at-exit"}
    result = run(load_of(1040, 1024), ["u64"], [given], visibility="early")
    assert kinds(result) == {"unfinished-at-exit"}
    assert "16 bytes to come" in result.hazards[0].message


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (load_of(24, 24), "a bulk copy of 24 bytes, no multiple of 16"),
        (load_of(64, 64, at="buffer+32736"), "runs past the end of shared memory"),
        (load_of(64, 64, source="%in+8"), "global address of a bulk copy is no mult"),
        (load_of(3200, 3200), "out-of-bounds 16-byte global access"),
    ],
)
def test_faults(text: str, wanted: str) -> None:
    with pytest.raises(EmulationError, match=wanted):
        run(text, ["u64"], [np.zeros(400, np.uint32)])


@pytest.mark.parametrize(
    ("shape", "box", "swizzle", "wanted"),
    [
        ((8, 9), (4, 8), 0, "are not multiples of 16"),
        ((8, 16), (4, 257), 0, "is not from 1 to 256"),
        ((8, 16), (4, 4), 0, "8 bytes, no multiple of 16"),
        ((8, 64), (4, 64), 64, "128 bytes, more than the swizzle of 64"),
        ((8, 16), (4,), 0, "as many sizes of the box"),
        ((8, 16), (4, 8), 48, "a swizzle of 0, 32, 64 or 128"),
    ],
)
def test_maps_that_the_driver_refuses(
    shape: tuple[int, ...], box: tuple[int, ...], swizzle: int, wanted: str
) -> None:
    with pytest.raises(EmulationError, match=wanted):
        TensorMap(np.zeros(shape, np.float16), box, swizzle)


def test_bytes_that_are_no_map() -> None:
    copy = (
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
        "[buffer], [p0, {0}], [bar];"
    )
    text = START + LOAD.format(bytes=64, copy=copy)
    with pytest.raises(EmulationError, match="there is no tensor map at address"):
        run(text, ["map"], [bytes(128)])
