"""C of kernels with warps in roles, stored through shared memory and by TMA.

Right and without a hazard wherever copies are read and warps stop, without bank
conflicts; and each thing that orders the stores is needed, and proven to be there.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from test_warp_roles import MODES, compiled, operands, product, program, ptx_of

import alcop_mlir
from alcop_mlir.compilation import inputs
from alcop_mlir.errors import EmulationError
from alcop_mlir.manifest.kernels import TensorMap
from alcop_mlir.pipelines.named import AlcopCompile
from alcop_mlir.runtime import tensor_maps
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.verifier.rings.check import check_rings

Array = np.ndarray
STORE = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.global\.shared::cta")
BY_TMA = (
    # Boxes of 128, 64 and 32 bytes; two instructions of a warp; one slot for two.
    ("block=128,128,64 warp=16,128 stages=3,2", (128, 256, 192)),
    ("block=128,96,64 warp=16,96 stages=3,2", (128, 96, 192)),
    ("block=128,16,64 warp=16,16 stages=2,2", (128, 16, 192)),
    ("block=256,64,64 warp=32,64 stages=3,2", (512, 64, 192)),
    ("block=128,256,64 warp=16,256 stages=4,2", (128, 256, 256)),
    # Beyond the edges of C.
    ("block=128,128,64 warp=16,128 stages=2,2", (200, 136, 72)),
    ("block=128,64,64 warp=16,64 stages=3,2", (1, 8, 72)),
    # Several tiles of a block, in turn and in clusters: slots are written again.
    ("block=64,64,64 warp=16,64 stages=3,2 mode=pingpong", (265 * 64, 64, 136)),
    ("block=128,64,64 warp=16,64 stages=3,2 cluster=2", (134 * 128, 56, 72)),
)


def run(bundle: Bundle, arrays: list[Array], mode: tuple[str, str]) -> Array:
    """What it computes, without bank conflicts of stores."""
    options = EmulatorOptions(visibility=mode[0], schedule=mode[1], counters=True)
    emulation = Emulation(options)
    out = arrays[-1].copy()
    out.view(np.uint8)[...] = 0xFF  # no number, of floats as of their bits
    Program(bundle, emulation=emulation)(*arrays[:-1], out)
    for _, result in emulation.runs:
        assert result.counters is not None
        assert result.counters.bank_conflicts == 0
    return out


@pytest.mark.parametrize(("schedule", "extents"), BY_TMA)
def test_tiles_are_stored_by_tma(schedule: str, extents: tuple[int, int, int]) -> None:
    sizes = dict(zip("mnk", extents, strict=True))
    bundle = compiled(program(sizes, "nt"), schedule)
    text = ptx_of(bundle)
    assert STORE.search(text)
    assert "st.global" not in text
    assert "shfl.sync.bfly" not in text
    a, b = operands(sizes, "nt")
    want = product(a, b, "nt").astype(np.float16)
    number = BY_TMA.index((schedule, extents))
    few = extents[0] < 1024
    for mode in (*[MODES[0]] * few, MODES[1 + number % (len(MODES) - 1)]):
        got = run(bundle, [a, b, np.zeros(want.shape, np.float16)], mode)
        np.testing.assert_array_equal(got, want)


WORDS = (
    # Boxes of 128 and 64 bytes; two instructions of a warp; one slot for three.
    ("block=128,128,64 warp=16,128 stages=3,2", (128, 256, 192), "f16"),
    ("block=128,48,64 warp=16,48 stages=3,2", (128, 48, 192), "f16"),
    ("block=128,16,64 warp=16,16 stages=2,2", (128, 16, 192), "f16"),
    ("block=256,64,64 warp=32,64 stages=3,2", (512, 64, 192), "f16"),
    ("block=128,256,64 warp=16,256 stages=4,2", (128, 256, 256), "f16"),
    # Beyond the edges of C.
    ("block=128,128,64 warp=16,128 stages=2,2", (200, 140, 72), "f16"),
    # Several tiles of a block, in turn and in clusters.
    (
        "block=64,64,64 warp=16,64 stages=3,2 mode=pingpong",
        (265 * 64, 64, 136),
        "f16",
    ),
    ("block=128,64,64 warp=16,64 stages=3,2 cluster=2", (134 * 128, 56, 72), "f16"),
    # Integers.
    ("block=128,64,64 warp=16,64 stages=3,2", (200, 60, 144), "i8"),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("schedule", "extents", "kind"), WORDS)
def test_elements_of_a_word_are_stored_by_tma(
    schedule: str, extents: tuple[int, int, int], kind: str
) -> None:
    """f32 and i32, by two of a row at once, without bank conflicts."""
    sizes = dict(zip("mnk", extents, strict=True))
    text = program(sizes, "nt", out="f32")
    if kind == "i8":
        text = of_bytes(sizes)
    bundle = compiled(text, schedule)
    assert STORE.search(ptx_of(bundle))
    assert "st.global" not in ptx_of(bundle)
    assert "shfl.sync.bfly" not in ptx_of(bundle)
    a, b = operands(sizes, "nt")
    want = product(a, b, "nt").astype(np.int32 if kind == "i8" else np.float32)
    if kind == "i8":
        a, b = a.astype(np.int8), b.astype(np.int8)
    number = WORDS.index((schedule, extents, kind))
    few = extents[0] < 1024
    for mode in (*[MODES[0]] * few, MODES[1 + number % (len(MODES) - 1)]):
        got = run(bundle, [a, b, np.zeros_like(want)], mode)
        np.testing.assert_array_equal(got, want)


def of_bytes(sizes: dict[str, int]) -> str:
    """C = A * B of integers of 8 bits, B stored N x K."""
    text = program(sizes, "nt", kind="i8", out="i32")
    for was, now in (("extf", "extsi"), ("mulf", "muli"), ("addf", "addi")):
        text = text.replace(f"arith.{was}", f"arith.{now}")
    return text.replace("constant 0.0 : i32", "constant 0 : i32")


def test_all_branches_at_an_edge_become_one_store() -> None:
    """The engine drops what is outside of C: no guard, and the code of one tile."""
    inside = ptx_of(
        compiled(program({"m": 256, "n": 128, "k": 128}, "nt"), BY_TMA[0][0])
    )
    at_edge = ptx_of(
        compiled(program({"m": 200, "n": 120, "k": 128}, "nt"), BY_TMA[0][0])
    )
    assert len(STORE.findall(inside)) == len(STORE.findall(at_edge)) == 2


EPILOGUE = """
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%A: tensor<{m}x128xf16>, %B: tensor<128x72xf16>,
    %bias: tensor<72xf32>, %R: tensor<{m}x72xf16>)
    -> (tensor<{m}x72xf16>, tensor<{m}x72xf16>) {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{m}x72xf32>
  %h = tensor.empty() : tensor<{m}x72xf16>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{m}x72xf32>) -> tensor<{m}x72xf32>
  %c = linalg.matmul ins(%A, %B : tensor<{m}x128xf16>, tensor<128x72xf16>)
      outs(%f : tensor<{m}x72xf32>) -> tensor<{m}x72xf32>
  %p = linalg.generic {{indexing_maps = [#all, #n, #all],
      iterator_types = ["parallel", "parallel"]}}
      ins(%c, %bias : tensor<{m}x72xf32>, tensor<72xf32>)
      outs(%h : tensor<{m}x72xf16>) {{
  ^bb0(%x: f32, %y: f32, %o: f16):
    %0 = arith.addf %x, %y : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  }} -> tensor<{m}x72xf16>
  %q = linalg.generic {{indexing_maps = [#all, #all, #all],
      iterator_types = ["parallel", "parallel"]}}
      ins(%p, %R : tensor<{m}x72xf16>, tensor<{m}x72xf16>)
      outs(%h : tensor<{m}x72xf16>) {{
  ^bb0(%x: f16, %y: f16, %o: f16):
    %2 = arith.addf %x, %y : f16
    linalg.yield %2 : f16
  }} -> tensor<{m}x72xf16>
  return %p, %q : tensor<{m}x72xf16>, tensor<{m}x72xf16>
}}"""


@pytest.mark.parametrize("m", [200, 134 * 128])
def test_all_that_an_epilogue_stores_goes_through_the_same_slots(m: int) -> None:
    schedule = "block=128,64,64 warp=16,64 stages=3,2"
    bundle = compiled(EPILOGUE.format(m=m), schedule)
    (kernel,) = bundle.functions[0].kernels
    assert "st.global" not in bundle.code_of(kernel).ptx
    # A, B and both results, in branches of blocks at an edge too.
    maps = [one for one in kernel.arguments if isinstance(one, TensorMap)]
    assert len(maps) == 4
    random = np.random.default_rng(6)
    a, b, bias, rest = (
        random.integers(-3, 4, size).astype(kind)
        for size, kind in (
            ((m, 128), np.float16),
            ((128, 72), np.float16),
            (72, np.float32),
            ((m, 72), np.float16),
        )
    )
    first = (a.astype(np.float32) @ b + bias).astype(np.float16)
    out = [np.full((m, 72), np.nan, np.float16) for _ in range(2)]
    for visibility, schedule in (MODES[0], MODES[-1])[: 1 if m > 1024 else 2]:
        emulation = Emulation(EmulatorOptions(visibility, schedule))
        Program(bundle, emulation=emulation)(a, b, bias, rest, *out)
        np.testing.assert_array_equal(out[0], first)
        np.testing.assert_array_equal(out[1], first + rest)


@pytest.mark.parametrize(
    ("schedule", "sizes", "out", "why"),
    [
        (
            "block=128,128,64 warp=16,128 stages=4,2",
            (128, 132, 128),
            "f16",
            "264 bytes",
        ),
        (
            "block=128,64,64 warp=16,64 stages=3,2",
            (128, 66, 256),
            "f32",
            "264 bytes",
        ),
        (
            "block=128,128,64 warp=16,128 stages=7,2",
            (128, 128, 448),
            "f16",
            "a slot for each warp needs 16384 bytes of shared memory, 2048 are left",
        ),
    ],
)
def test_what_does_not_fit_is_stored_from_registers(
    schedule: str,
    sizes: tuple[int, int, int],
    out: str,
    why: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = program(dict(zip("mnk", sizes, strict=True)), "nt", out=out)
    bundle = compiled(text, schedule)
    said = capfd.readouterr().err
    assert "C is stored from registers, not by TMA" in said
    assert why in said
    assert "wgmma" in ptx_of(bundle)
    assert not STORE.search(ptx_of(bundle))


def batched(sizes: dict[str, int]) -> str:
    """C = A * B of bf16, for each of two matrices."""
    a, b, c = (
        "x".join(["2", *(str(sizes[letter]) for letter in dims), "bf16"])
        for dims in ("mk", "nk", "mn")
    )
    return f"""
      func.func @f(%A: memref<{a}>, %B: memref<{b}>, %C: memref<{c}>) {{
        %z = arith.constant 0.0 : bf16
        linalg.fill ins(%z : bf16) outs(%C : memref<{c}>)
        linalg.generic {{
          indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
                           affine_map<(b, m, n, k) -> (b, n, k)>,
                           affine_map<(b, m, n, k) -> (b, m, n)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]
        }} ins(%A, %B : memref<{a}>, memref<{b}>) outs(%C : memref<{c}>) {{
        ^bb0(%a: bf16, %b: bf16, %c: bf16):
          %p = arith.mulf %a, %b : bf16
          %s = arith.addf %c, %p : bf16
          linalg.yield %s : bf16
        }}
        return
      }}"""


def test_batches_of_bf16_are_stored_by_tma_within_their_matrix() -> None:
    """Rows beyond one matrix are the next one's: the engine knows three dimensions."""
    sizes = {"m": 136, "n": 24, "k": 192}
    bundle = compiled(batched(sizes), "block=128,64,64 warp=16,64 stages=3,2")
    text = ptx_of(bundle)
    assert "cp.async.bulk.tensor.3d.global.shared::cta" in text
    assert "st.global" not in text
    random = np.random.default_rng(5)
    a, b = (
        random.integers(-3, 4, (2, sizes[rows], sizes["k"])).astype(np.float32)
        for rows in "mn"
    )
    want = a @ b.transpose(0, 2, 1)  # of up to 8 bits: exact in bf16, or rounded alike
    bits = [as_bf16(one) for one in (a, b)]
    for mode in (MODES[0], MODES[-1]):
        got = run(bundle, [*bits, np.zeros(want.shape, np.uint16)], mode)
        np.testing.assert_array_equal(got, as_bf16(want))


def as_bf16(values: Array) -> Array:
    """Bits of floats, rounded to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


CHAIN = """
  func.func @f(%A: memref<128x64xf16>, %B: memref<64x96xf16>, %D: memref<96x64xf16>,
               %C: memref<128x64xf16>) {
    %z = arith.constant 0.0 : f16
    %T = memref.alloc() : memref<128x96xf16>
    linalg.fill ins(%z : f16) outs(%T : memref<128x96xf16>)
    linalg.matmul ins(%A, %B : memref<128x64xf16>, memref<64x96xf16>)
        outs(%T : memref<128x96xf16>)
    linalg.fill ins(%z : f16) outs(%C : memref<128x64xf16>)
    linalg.matmul ins(%T, %D : memref<128x96xf16>, memref<96x64xf16>)
        outs(%C : memref<128x64xf16>)
    return
  }"""


def test_what_one_kernel_stores_the_next_one_copies() -> None:
    """An intermediate array is bytes of a workspace, whose maps say what they are."""
    bundle = compiled(CHAIN, "block=128,32,64 warp=16,32 stages=2,2")
    first, second = bundle.functions[0].kernels
    assert all("wgmma" in bundle.code_of(one).ptx for one in (first, second))
    random = np.random.default_rng(8)
    a, b, d = (
        random.integers(-1, 2, extents).astype(np.float16)
        for extents in ((128, 64), (64, 96), (96, 64))
    )
    got = run(bundle, [a, b, d, np.zeros((128, 64), np.float16)], MODES[0])
    exact = a.astype(np.float64) @ b @ d  # of whole numbers below 2048
    np.testing.assert_array_equal(got, exact)


# -- what orders the stores ------------------------------------------------------------

# Two tiles of the first block, of which each warp stores two portions: the columns of a
# tile by the type of C.
TILES = 133
COLUMNS = {"f16": 128, "f32": 64}
LEFT_OUT = re.compile(
    r"cp\.async\.bulk\.wait_group\.read|bar\.warp\.sync|fence\.proxy\.async"
    r"|cp\.async\.bulk\.commit_group"
)
OF_A_PORTION, PORTIONS = 5, 2
LIMIT = 200_000  # warp instructions of a mutant; a kernel here has 4,000 at most
# That lanes meet behind their fences the emulator does not follow (docs/emulator.md);
# the check of rings does, see below.
UNCHECKED = (3, 8)


def sizes_of(out: str) -> dict[str, int]:
    return {"m": TILES * 128, "n": COLUMNS[out], "k": 128}


def schedule_of(out: str) -> str:
    return f"block=128,{COLUMNS[out]},64 warp=16,{COLUMNS[out]} stages=2,2"


@cache
def kernel(out: str) -> Bundle:
    return compiled(program(sizes_of(out), "nt", out=out), schedule_of(out))


def ordering(out: str) -> list[int]:
    """Lines that order stores, of both portions; last the one at the kernel's end."""
    lines = ptx_of(kernel(out)).split("\n")
    found = [n for n, line in enumerate(lines) if LEFT_OUT.search(line)]
    waits = [n for n in found if "wait_group" in lines[n]]
    last = next(n for n in waits if lines[n].strip(" ;").endswith("0"))
    first = min(set(waits) - {last})
    return [*(n for n in found if n >= first and n != last), last]


def is_found(text: str, out: str) -> bool:
    """Whether a hazard, a fault or the numbers of the first block show it."""
    function = kernel(out).functions[0]
    (one,) = function.kernels
    names = [parameter.name for parameter in function.parameters]
    sizes = sizes_of(out)
    a, b = operands(sizes, "nt")
    want = product(a, b, "nt")
    for visibility, schedule in MODES[:5]:
        c = np.full(want.shape, np.nan, f"float{out[1:]}")
        arrays = dict(zip(names, (a, b, c), strict=True))
        given = [
            tensor_maps.on_emulator(argument, arrays[argument.array], {})
            for argument in one.arguments
            if isinstance(argument, TensorMap)
        ]
        options = EmulatorOptions(visibility, schedule, instruction_limit=LIMIT)
        try:
            result = Emulation(options).run(
                text, one.name, (1, 1, 1), one.block, given, one.shared_bytes
            )
        except EmulationError:
            return True
        apart = (TILES, 128, sizes["n"])
        tiles = [c.reshape(apart)[n] for n in (0, TILES - 1)]
        wanted = [want.reshape(apart)[n] for n in (0, TILES - 1)]
        if result.hazards or not np.array_equal(tiles, wanted):
            return True
    return False


@pytest.mark.parametrize("out", COLUMNS)
def test_unchanged_it_is_right_and_clean(out: str) -> None:
    assert not is_found(ptx_of(kernel(out)), out)


@pytest.mark.sample(5)
@pytest.mark.parametrize("out", COLUMNS)
@pytest.mark.parametrize(
    "number",
    [n for n in range(OF_A_PORTION * PORTIONS + 1) if n not in UNCHECKED],
)
def test_each_thing_that_orders_stores_is_needed(number: int, out: str) -> None:
    assert len(ordering(out)) == OF_A_PORTION * PORTIONS + 1
    lines = ptx_of(kernel(out)).split("\n")
    lines[ordering(out)[number]] = ""
    assert is_found("\n".join(lines), out)


SAID = re.compile("store by TMA|stored by TMA|stored while threads may still write")
IR_LEFT_OUT = re.compile(r"nvvm\.(?:cp\.async\.bulk|bar\.warp\.sync|fence\.proxy)")


def lowered(out: str) -> list[str]:
    """The lines of the IR behind alcop-lower-mma, of two portions of two tiles."""
    schedule = f"{schedule_of(out)} engine=wgmma"
    steps = ",".join(AlcopCompile(target="sm_90a", schedule=schedule).steps())
    until = steps[: steps.index("alcop-lower-mma") + len("alcop-lower-mma")]
    module = inputs.read(program({**sizes_of(out), "k": 192}, "nt", out=out)).module
    alcop_mlir.run_pipeline(module, f"builtin.module({until}))")
    return str(module).split("\n")


def said(lines: list[str]) -> str:
    """What the check of rings says."""
    found = check_rings(inputs.read("\n".join(lines)).module.operation)
    return "\n".join(map(str, found))


@pytest.mark.parametrize("out", COLUMNS)
def test_what_orders_stores_is_proven(out: str) -> None:
    """For any number of tiles; and nothing of it can be left out."""
    lines = lowered(out)
    assert said(lines) == ""
    found = [n for n, line in enumerate(lines) if IR_LEFT_OUT.search(line)]
    # But the barrier behind the last wgmma, which keeps the lanes together for ptxas.
    assert len(found) == OF_A_PORTION * PORTIONS + 2
    for number in found[1:]:
        text = said(lines[:number] + lines[number + 1 :])
        assert SAID.search(text), lines[number]
