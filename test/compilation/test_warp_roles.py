"""Kernels for sm_90a whose copies are the role of warps of their own.

Right in every layout, without a hazard wherever copies land and warps stop; and no
stage changes a bit of what they compute.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError, LaunchError
from alcop_mlir.manifest.kernels import TensorMap
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Partial
from alcop_mlir.target import find_target

Array = np.ndarray
LAYOUTS = {
    "nn": ("mk", "kn"),
    "nt": ("mk", "nk"),
    "tn": ("km", "kn"),
    "tt": ("km", "nk"),
}
MODES = [
    (visibility, schedule)
    for visibility in ("late", "early")
    for schedule in ("lockstep", "descending", "random")
]
COMPUTING, COPYING = 256, 128  # threads of two warpgroups, and of the one that copies


def shape(dims: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[dim] for dim in dims)


def program(
    sizes: dict[str, int], layout: str = "nn", kind: str = "f16", out: str = "f16"
) -> str:
    lhs, rhs = LAYOUTS[layout]
    a, b, c = (
        f"memref<{'x'.join(map(str, shape(dims, sizes)))}x{element}>"
        for dims, element in ((lhs, kind), (rhs, kind), ("mn", out))
    )
    maps = ", ".join(
        f"affine_map<(m, n, k) -> ({', '.join(dims)})>" for dims in (lhs, rhs, "mn")
    )
    wide = kind != out
    extend = (
        f"%x = arith.extf %a : {kind} to {out} %y = arith.extf %b : {kind} to {out}"
        if wide
        else ""
    )
    left, right = ("%x", "%y") if wide else ("%a", "%b")
    return f"""
      func.func @f(%A: {a}, %B: {b}, %C: {c}) {{
        %z = arith.constant 0.0 : {out}
        linalg.fill ins(%z : {out}) outs(%C : {c})
        linalg.generic {{indexing_maps = [{maps}],
            iterator_types = ["parallel", "parallel", "reduction"]}}
            ins(%A, %B : {a}, {b}) outs(%C : {c}) {{
        ^bb0(%a: {kind}, %b: {kind}, %c: {out}):
          {extend}
          %p = arith.mulf {left}, {right} : {out}
          %s = arith.addf %c, %p : {out}
          linalg.yield %s : {out}
        }}
        return
      }}"""


def compiled(text: str, schedule: str, target: str = "sm_90a") -> Bundle:
    options = compiler.Options(
        target=find_target(target),
        schedule=Partial.parse(f"{schedule} engine=wgmma"),
        use_ptxas=False,
    )
    return compiler.compile_source(inputs.read(text), options)


def run(
    bundle: Bundle, arrays: list[Array], mode: tuple[str, str] = ("late", "lockstep")
) -> Array:
    options = EmulatorOptions(visibility=mode[0], schedule=mode[1])
    out = arrays[-1].copy()
    Program(bundle, emulation=Emulation(options))(*arrays[:-1], out)
    return out


def operands(sizes: dict[str, int], layout: str) -> list[Array]:
    """Small whole numbers: whatever the order, nothing is rounded."""
    random = np.random.default_rng(7)
    lhs, rhs = LAYOUTS[layout]
    return [
        random.integers(-3, 4, shape(dims, sizes)).astype(np.float16)
        for dims in (lhs, rhs)
    ]


def product(a: Array, b: Array, layout: str) -> Array:
    lhs, rhs = LAYOUTS[layout]
    wide = [one.astype(np.float64) for one in (a, b)]
    return np.einsum(f"{lhs},{rhs}->mn", *wide)


def ptx_of(bundle: Bundle) -> str:
    (kernel,) = bundle.functions[0].kernels
    return bundle.code_of(kernel).ptx


SCHEDULES = (
    # Both warpgroups beside, one instruction each; several boxes of B.
    "block=128,128,64 warp=16,128 stages=4,2",
    "block=128,256,64 warp=16,256 stages=3,2",
    # Two instructions for each warp, whose groups of 8 rows they share.
    "block=256,64,64 warp=32,64 stages=3,2",
    # One warpgroup; narrow swizzles; no group in flight, and two.
    "block=64,96,64 warp=16,96 stages=3,2",
    "block=128,64,32 warp=16,64 stages=4,1",
    "block=128,64,16 warp=16,64 stages=4,3",
    # Two boxes along K; three warpgroups.
    "block=128,64,128 warp=16,64 stages=2,2",
    "block=192,64,64 warp=16,64 stages=3,2",
)


PAIRS = [
    (schedule, layout)
    for number, schedule in enumerate(SCHEDULES)
    for place, layout in enumerate(LAYOUTS)
    if (number + place) % 2 == 0 or number == 2
]


@pytest.mark.sample(5)
@pytest.mark.fast
@pytest.mark.parametrize(("schedule", "layout"), PAIRS)
def test_products_are_right_and_clean(schedule: str, layout: str) -> None:
    sizes = {"m": 384, "n": 192, "k": 320}
    if "block=256" in schedule and layout[0] == "t":
        sizes["m"] = 512
    bundle = compiled(program(sizes, layout, out="f32"), schedule)
    a, b = operands(sizes, layout)
    want = product(a, b, layout)
    number = SCHEDULES.index(schedule) + len(layout)
    for mode in (MODES[0], MODES[number % len(MODES)]):
        got = run(bundle, [a, b, np.zeros(want.shape, np.float32)], mode)
        np.testing.assert_array_equal(got, want)
    uses = "wgmma.mma_async" in ptx_of(bundle)
    # Two instructions share groups of 8 rows of A only where rows are along K.
    assert uses is not ("warp=32" in schedule and layout[0] == "t")


@pytest.mark.parametrize("mode", MODES)
def test_every_order_of_time_is_clean(mode: tuple[str, str]) -> None:
    sizes = {"m": 256, "n": 128, "k": 448}
    bundle = compiled(program(sizes, out="f32"), SCHEDULES[0])
    a, b = operands(sizes, "nn")
    got = run(bundle, [a, b, np.zeros((256, 128), np.float32)], mode)
    np.testing.assert_array_equal(got, product(a, b, "nn"))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_no_stage_changes_a_bit(kind: str) -> None:
    sizes = {"m": 128, "n": 64, "k": 512}
    random = np.random.default_rng(3)
    a = random.standard_normal((128, 512)).astype(np.float16)
    b = random.standard_normal((512, 64)).astype(np.float16)
    if kind == "bf16":
        a, b = (
            (one.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            for one in (a, b)
        )
    text = program(sizes, kind=kind, out="f32")
    found = [
        run(
            compiled(text, f"block=128,64,64 warp=16,64 stages={stages}"),
            [a, b, np.zeros((128, 64), np.float32)],
        )
        for stages in ("2,1", "3,1", "3,2", "4,2", "4,3", "6,2")
    ]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize(
    ("m", "n", "k"), [(200, 136, 72), (1, 8, 8), (129, 64, 1000), (64, 250, 64)]
)
def test_edges_are_filled_and_clipped(m: int, n: int, k: int) -> None:
    sizes, layout = {"m": m, "n": n, "k": k}, "nt"
    bundle = compiled(program(sizes, layout, out="f32"), SCHEDULES[0])
    a, b = operands(sizes, layout)
    got = run(bundle, [a, b, np.zeros((m, n), np.float32)])
    np.testing.assert_array_equal(got, product(a, b, layout))


def test_batches_have_maps_of_three_dimensions() -> None:
    bundle = compiled(
        """func.func @f(%A: tensor<3x128x192xf16>, %B: tensor<3x192x64xf16>)
            -> tensor<3x128x64xf32> {
          %z = arith.constant 0.0 : f32
          %e = tensor.empty() : tensor<3x128x64xf32>
          %f = linalg.fill ins(%z : f32) outs(%e : tensor<3x128x64xf32>)
              -> tensor<3x128x64xf32>
          %c = linalg.batch_matmul
              ins(%A, %B : tensor<3x128x192xf16>, tensor<3x192x64xf16>)
              outs(%f : tensor<3x128x64xf32>) -> tensor<3x128x64xf32>
          return %c : tensor<3x128x64xf32>
        }""",
        "block=128,64,64 warp=16,64 stages=3,2",
    )
    (kernel,) = bundle.functions[0].kernels
    maps = [one for one in kernel.arguments if isinstance(one, TensorMap)]
    assert [len(one.shape) for one in maps] == [3, 3, 3]  # of A, B and C
    assert kernel.block == (COMPUTING + COPYING, 1, 1)
    random = np.random.default_rng(5)
    a = random.integers(-3, 4, (3, 128, 192)).astype(np.float16)
    b = random.integers(-3, 4, (3, 192, 64)).astype(np.float16)
    got = run(bundle, [a, b, np.zeros((3, 128, 64), np.float32)])
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32))


OPEN = """
  func.func @f(%A: tensor<?x?xf16> {alcop.row_alignment = 16},
               %B: tensor<?x?xf16> {alcop.row_alignment = 16}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = tensor.dim %A, %c0 : tensor<?x?xf16>
    %n = tensor.dim %B, %c1 : tensor<?x?xf16>
    %z = arith.constant 0.0 : f32
    %e = tensor.empty(%m, %n) : tensor<?x?xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
    %c = linalg.matmul ins(%A, %B : tensor<?x?xf16>, tensor<?x?xf16>)
        outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %c : tensor<?x?xf32>
  }"""


def test_sizes_known_at_run_time_only_are_in_the_maps() -> None:
    bundle = compiled(OPEN, "block=128,64,64 warp=16,64 stages=3,2")
    assert "wgmma.mma_async" in ptx_of(bundle)
    for m, n, k in ((256, 128, 256), (100, 136, 72), (1, 8, 8), (130, 64, 0)):
        a, b = operands({"m": m, "n": n, "k": k}, "nn")
        got = run(bundle, [a, b, np.zeros((m, n), np.float32)])
        np.testing.assert_array_equal(got, product(a, b, "nn"))


def test_epilogues_are_computed_by_the_warps_that_multiply() -> None:
    bundle = compiled(
        """
        #m = affine_map<(m, n) -> (m, n)>
        #n = affine_map<(m, n) -> (n)>
        func.func @f(%A: tensor<128x128xf16>, %B: tensor<128x64xf16>,
            %bias: tensor<64xf32>, %R: tensor<128x64xf32>) -> tensor<128x64xf32> {
          %z = arith.constant 0.0 : f32
          %e = tensor.empty() : tensor<128x64xf32>
          %f = linalg.fill ins(%z : f32) outs(%e : tensor<128x64xf32>)
              -> tensor<128x64xf32>
          %c = linalg.matmul ins(%A, %B : tensor<128x128xf16>, tensor<128x64xf16>)
              outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
          %d = linalg.generic {indexing_maps = [#m, #n, #m, #m],
              iterator_types = ["parallel", "parallel"]}
              ins(%c, %bias, %R : tensor<128x64xf32>, tensor<64xf32>,
                  tensor<128x64xf32>) outs(%e : tensor<128x64xf32>) {
          ^bb0(%x: f32, %y: f32, %w: f32, %o: f32):
            %0 = arith.addf %x, %y : f32
            %1 = arith.maximumf %0, %z : f32
            %2 = arith.addf %1, %w : f32
            linalg.yield %2 : f32
          } -> tensor<128x64xf32>
          return %d : tensor<128x64xf32>
        }""",
        "block=128,64,32 warp=16,64 stages=3,2",
    )
    (kernel,) = bundle.functions[0].kernels
    assert kernel.block == (COMPUTING + COPYING, 1, 1)
    random = np.random.default_rng(6)
    a, b, bias, rest = (
        random.integers(-3, 4, size).astype(kind)
        for size, kind in (
            ((128, 128), np.float16),
            ((128, 64), np.float16),
            (64, np.float32),
            ((128, 64), np.float32),
        )
    )
    want = np.maximum(product(a, b, "nn") + bias, 0) + rest
    got = run(bundle, [a, b, bias, rest, np.zeros((128, 64), np.float32)])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("stages", ["3,1", "3,2", "4,3"])
def test_blocks_that_go_through_several_tiles_share_a_ring(stages: str) -> None:
    """134 tiles for 132 SMs: slots and phases go on in two blocks."""
    sizes = {"m": 134 * 128, "n": 128, "k": 200}
    bundle = compiled(
        program(sizes, "nt", out="f32"), f"block=128,128,64 warp=16,128 stages={stages}"
    )
    (kernel,) = bundle.functions[0].kernels
    assert kernel.grid == (132, 1, 1)
    a, b = operands(sizes, "nt")
    want = product(a, b, "nt")
    for mode in (MODES[0], MODES[-1]):
        got = run(bundle, [a, b, np.zeros(want.shape, np.float32)], mode)
        np.testing.assert_array_equal(got, want)


CLUSTERS = (
    # Boxes of B side by side, and rows of one box; C beyond the edge.
    ("block=128,128,64 warp=16,128 stages=4,2", "nn", (512, 200, 320)),
    ("block=128,128,64 warp=16,128 stages=3,3", "nt", (500, 256, 320)),
    ("block=256,64,64 warp=32,64 stages=3,1", "nt", (1024, 64, 128)),
    # Several pairs of tiles for each cluster, in a raster; K in parts.
    ("block=128,128,64 warp=16,128 stages=3,2 raster=4", "tt", (136 * 128, 96, 136)),
    ("block=64,64,64 warp=16,64 stages=3,2 split_k=2", "nt", (128, 64, 512)),
)


@pytest.mark.parametrize(("schedule", "layout", "extents"), CLUSTERS)
def test_blocks_of_a_cluster_copy_b_for_each_other(
    schedule: str, layout: str, extents: tuple[int, int, int]
) -> None:
    sizes = dict(zip("mnk", extents, strict=True))
    bundle = compiled(program(sizes, layout, out="f32"), f"{schedule} cluster=2")
    text = bundle.code_of(bundle.functions[0].kernels[0]).ptx
    assert ".reqnctapercluster 2" in text
    assert "multicast::cluster" in text
    assert "mbarrier.arrive.shared::cluster" in text
    a, b = operands(sizes, layout)
    want = product(a, b, layout)
    number = CLUSTERS.index((schedule, layout, extents))
    for mode in (MODES[0], MODES[1 + number]):
        got = run(bundle, [a, b, np.zeros(want.shape, np.float32)], mode)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("m", "stages"), [(128, "3,2"), (134 * 128, "4,1")])
def test_a_loop_that_runs_twice_waits_for_each_iteration(m: int, stages: str) -> None:
    """No loop is left of the second iteration: it stays apart from the first."""
    sizes = {"m": m, "n": 64, "k": 128}
    text = program(sizes, "nt", out="f32")
    bundle = compiled(text, f"block=128,64,64 warp=16,64 stages={stages}")
    a, b = operands(sizes, "nt")
    want = product(a, b, "nt")
    for mode in (MODES[0], MODES[2]):
        got = run(bundle, [a, b, np.zeros(want.shape, np.float32)], mode)
        np.testing.assert_array_equal(got, want)
    assert ptx_of(bundle).count("wgmma.commit_group") == 2


TURNS = (
    # The second group begins in another slot than the first, and in its phase or not.
    ("block=64,64,64 warp=16,64 stages=3,2", (270 * 64, 64, 320)),
    ("block=64,64,64 warp=16,64 stages=4,1", (270 * 64, 64, 72)),
    ("block=128,64,64 warp=32,64 stages=3,3", (136 * 128, 64, 192)),
    ("block=64,64,64 warp=16,64 stages=2,1 cluster=2", (136 * 64, 64, 192)),
)


@pytest.mark.parametrize(("schedule", "extents"), TURNS)
def test_two_groups_of_warps_take_tiles_in_turn(
    schedule: str, extents: tuple[int, int, int]
) -> None:
    """Of three tiles of a block the first and the last are one group's."""
    sizes = dict(zip("mnk", extents, strict=True))
    text = program(sizes, "nt", out="f32")
    bundle = compiled(text, f"{schedule} mode=pingpong")
    (kernel,) = bundle.functions[0].kernels
    assert (kernel.grid, kernel.block) == ((132, 1, 1), (384, 1, 1))
    a, b = operands(sizes, "nt")
    want = product(a, b, "nt")
    number = TURNS.index((schedule, extents))
    for mode in (MODES[0], MODES[1 + number]):
        got = run(bundle, [a, b, np.zeros(want.shape, np.float32)], mode)
        np.testing.assert_array_equal(got, want)


def test_blocks_with_several_tiles_add_to_what_c_holds() -> None:
    """Only the warps that compute read C before: others have no rows of it."""
    m, n, k = 134 * 128, 64, 192
    a_type, b_type, c_type = (
        f"memref<{rows}x{columns}x{kind}>"
        for rows, columns, kind in ((m, k, "f16"), (k, n, "f16"), (m, n, "f32"))
    )
    bundle = compiled(
        f"""func.func @f(%A: {a_type}, %B: {b_type}, %C: {c_type}) {{
          linalg.matmul ins(%A, %B : {a_type}, {b_type}) outs(%C : {c_type})
          return
        }}""",
        "block=128,64,64 warp=16,64 stages=3,2",
    )
    (kernel,) = bundle.functions[0].kernels
    assert kernel.grid == (132, 1, 1)
    a, b = operands({"m": m, "n": n, "k": k}, "nn")
    c = np.random.default_rng(1).integers(-9, 9, (m, n)).astype(np.float32)
    np.testing.assert_array_equal(run(bundle, [a, b, c]), product(a, b, "nn") + c)


def test_columns_beyond_c_begin_with_zeros_before_the_fence() -> None:
    """LLVM would write constants to registers just before the wgmma that adds to them,
    behind the fence that orders the two.
    """
    sizes = {"m": 64, "n": 55, "k": 96}
    text = re.sub(r"linalg\.fill.*", "", program(sizes, "nt", out="f32"))
    bundle = compiled(text, "block=64,128,32 warp=16,128 stages=3,2")
    assert "wgmma" in ptx_of(bundle)
    a, b = operands(sizes, "nt")
    c = np.random.default_rng(1).integers(-9, 9, (64, 55)).astype(np.float32)
    for mode in MODES[:2]:
        got = run(bundle, [a, b, c], mode)
        np.testing.assert_array_equal(got, product(a, b, "nt") + c)


# -- what is chosen --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "block", "split_k"),
    [
        ((8192, 8192, 8192), (128, 256, 64), 1),
        # Few blocks: smaller tiles, and K in parts where that gains more than a tenth.
        ((1024, 1024, 1024), (64, 128, 64), 1),
        ((512, 512, 4096), (64, 64, 64), 1),
        ((256, 256, 8192), (64, 64, 64), 4),
        # Few rows, a short K, rows that are 500 bytes: as on other targets.
        ((16, 4096, 4096), None, 1),
        ((4096, 4096, 64), None, 1),
        ((4096, 250, 4096), None, 1),
    ],
)
def test_what_is_chosen_for_sm_90a(
    sizes: tuple[int, int, int], block: tuple[int, int, int] | None, split_k: int
) -> None:
    text = program(dict(zip("mnk", sizes, strict=True)))
    options = compiler.Options(target=find_target("sm_90a"), use_ptxas=False)
    lowered = compiler.compile_source(inputs.read(text), options)
    schedule = lowered.functions[0].kernels[0].schedule
    assert schedule is not None
    if block is None:
        assert schedule.engine == "mma"
    else:
        assert (schedule.engine, schedule.block) == ("wgmma", block)
        assert schedule.split_k == split_k
        assert "wgmma.mma_async" in lowered.code_of(lowered.functions[0].kernels[0]).ptx


# -- the code that ptxas gets ----------------------------------------------------------

BARRIERS = re.compile(r"mbarrier\.init\S*\s+\[(\S+?)\], (\S+);")


def test_a_ring_has_an_arrival_for_each_warp() -> None:
    text = ptx_of(compiled(program({"m": 256, "n": 128, "k": 256}), SCHEDULES[0]))
    assert ".reqntid 384, 1, 1" in text
    assert len(BARRIERS.findall(text)) == 2 * 4
    assert text.count("setmaxnreg.dec.sync.aligned.u32 \t40;") == 1
    assert text.count("setmaxnreg.inc.sync.aligned.u32 \t232;") == 1
    assert text.count("prefetch.tensormap") == 2
    # Neither by a generic address, nor to the cluster.
    assert "cp.async.bulk.tensor.2d.shared::cta.global.tile" in text
    assert "cvta.to.shared" not in text
    # The first iteration, and the loop.
    assert text.count("wgmma.fence.sync.aligned;") == 2
    assert text.count("wgmma.commit_group.sync.aligned;") == 2


# -- what a user may get wrong ---------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "schedule", "message"),
    [
        (
            "sm_80",
            "block=128,128,64 warp=16,128 stages=4,2",
            "needs wgmma, which sm_80 does not have: compile for sm_90a",
        ),
        (
            "sm_90",
            "block=128,128,64 warp=16,128 stages=4,2",
            "needs wgmma, which sm_90 does not have: compile for sm_90a",
        ),
        (
            "sm_90a",
            "block=256,256,64 warp=32,256 stages=2,2",
            "about 296 registers per thread that computes, 384 threads leave 232",
        ),
        (
            "sm_90a",
            "block=128,256,64 warp=16,256 stages=6,2",
            "294912 bytes of shared memory, sm_90a has 232448",
        ),
        (
            "sm_90a",
            "block=256,128,64 warp=32,128 stages=2,2 cluster=2",
            "clusters of 2 blocks along M, where M=256 has 1: a smaller block M",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(
    target: str, schedule: str, message: str
) -> None:
    text = program({"m": 256, "n": 256, "k": 256})
    with pytest.raises(CompileError, match=message) as raised:
        compiled(text, schedule, target)
    assert "\n" not in str(raised.value)


def test_rows_that_no_map_can_have_are_computed_by_mma_sync(
    capfd: pytest.CaptureFixture[str],
) -> None:
    sizes = {"m": 128, "n": 124, "k": 128}
    bundle = compiled(program(sizes, out="f32"), SCHEDULES[0])
    assert "no roles of warps, and mma.sync instead of wgmma" in capfd.readouterr().err
    assert "wgmma" not in ptx_of(bundle)
    a, b = operands(sizes, "nn")
    got = run(bundle, [a, b, np.zeros((128, 124), np.float32)])
    np.testing.assert_array_equal(got, product(a, b, "nn"))


def test_unaligned_arrays_are_refused_at_launch() -> None:
    sizes = {"m": 128, "n": 64, "k": 64}
    bundle = compiled(
        program(sizes, out="f32"), "block=128,64,16 warp=16,64 stages=2,1"
    )
    a, b = operands(sizes, "nn")
    memory = np.zeros(a.size + 1, np.float16)
    shifted = memory[1:].reshape(a.shape)
    with pytest.raises(LaunchError, match="16 bytes"):
        run(bundle, [shifted, b, np.zeros((128, 64), np.float32)])
