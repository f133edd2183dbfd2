"""Each instruction of the emulator, and each kind of form, is in some probe."""

from __future__ import annotations

import re

import pytest

from alcop_mlir.runtime.emulator.instructions.opcodes.table import OPCODES, opcode_of
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, PtxKernel
from bench.gpu.probe import FOLDER

NO_RESULT = "it has no result that a probe could compare"
APPROXIMATE = "the PTX ISA bounds its error only"
ORDERED = "what it orders is probed by another form"
# Rows of the emulator's table that no probe needs; each of the others is in one.
NOT_PROBED = {
    **dict.fromkeys(("sin", "cos", "lg2", "ex2", "tanh", "rsqrt"), APPROXIMATE),
    **dict.fromkeys(("prefetch", "prefetchu", "applypriority", "discard"), NO_RESULT),
    **dict.fromkeys(("createpolicy", "nanosleep", "pmevent", "brkpt"), NO_RESULT),
    **dict.fromkeys(("trap", "exit"), NO_RESULT),
    "cp.async.wait_all": ORDERED,
    "barrier.cluster.arrive": ORDERED,
    "barrier.cluster.arrive.release.aligned": ORDERED,
    "cp.async.bulk.shared::cta.global": "to shared::cluster is probed",
    "mma.sp::ordered_metadata.sync.aligned": "as mma.sp, whose metadata is in order",
    "wgmma.mma_async.sp": "the emulator refuses it",
}
# Kinds of forms that share a row with others, and how their instructions begin.
FAMILIES = {
    "calls by name": r"call(\.uni)? \(\w+\), [a-z]",
    "calls by address": r"call(\.uni)? \(\w+\), %",
    "recursion": r"call \(\w+\), collatz",
    "local memory": r"(ld|st)\.local",
    "stack": r"alloca|stacksave",
    "mbarrier of sm_80": r"mbarrier\.(init|arrive|test_wait)[.\w]*\.b64",
    "wmma of f16": r"wmma\.mma\S*\.m16n16k16\.f16\.f16",
    "wmma of integers": r"wmma\.mma\S*\.s8\.s8",
    "wmma of 4 bits": r"wmma\.mma\S*\.s4\.s4",
    "wmma of 1 bit": r"wmma\S*mma\S*\.b1\.b1",
    "mma of f64": r"mma\S*\.f64\.f64\.f64\.f64",
    "mma with accumulators of f16": r"mma\S*\.f16\.f16\.f16\.f16",
    "mma of m8n8k16": r"mma\S*\.m8n8k16\S*\.s8",
    "mma of 4 bits": r"mma\S*\.s4\.s4|mma\S*\.u4\.u4",
    "mma of 1 bit": r"mma\S*\.b1\.b1",
    "sparse mma": r"mma\.sp",
    "mma of fp8": r"mma\S*\.e4m3\.e4m3",
    "comparison of f16x2": r"setp\S*\.f16x2",
    "set of f16": r"set\.\S*\.f16",
    "video of a part": r"v(add|sub|min|max|absdiff|shl|shr|mad|set)\.",
    "video of two": r"v(add|sub|avrg|min|max|absdiff|set)2\.",
    "video of four": r"v(add|sub|avrg|min|max|absdiff|set)4\.",
    "cvt.pack": r"cvt\.pack",
    "conversions to fp8": r"cvt\S*\.e4m3x2\.f32",
    "conversions from fp8": r"cvt\S*\.f16x2\.e5m2x2",
    "bar.red": r"bar\.red\.popc",
    "redux": r"redux\.sync\.add",
    "match": r"match\.(any|all)",
    "vote": r"vote\.sync\.ballot",
    "clock": r"mov\.u\d+ %\w+, %clock",
    "printf": r"call\S* \(\w+\), vprintf",
    "assert": r"call\S* __assertfail",
    "malloc": r"call\S* \(\w+\), malloc",
    "mbarrier with bytes": r"mbarrier\.arrive\.expect_tx",
    "mbarrier that drops": r"mbarrier\.arrive_drop",
    "mbarrier without an end": r"mbarrier\.arrive\.noComplete",
    "mbarrier of another block": r"mbarrier\.arrive\S*\.shared::cluster",
    "waits by state": r"mbarrier\.(test|try)_wait\.shared",
    "waits by parity": r"mbarrier\.try_wait\.parity",
    "bulk copies in": r"cp\.async\.bulk\.shared::cluster\.global",
    "bulk copies out": r"cp\.async\.bulk\.global",
    "bulk copies across": r"cp\.async\.bulk\.shared::cluster\.shared::cta",
    "bulk reductions": r"cp\.reduce\.async\.bulk\.global",
    **{f"tiles {d}d": rf"cp\S*\.tensor\.{d}d\S*\.global\.tile" for d in range(1, 6)},
    **{f"columns {d}d": rf"cp\S*\.tensor\.{d}d\S*\.im2col\." for d in (3, 4, 5)},
    "multicast": r"cp\.async\.bulk\.\S*multicast",
    "multicast of tiles": r"cp\.async\.bulk\.tensor\S*multicast",
    "tensor stores": r"cp\.async\.bulk\.tensor\.2d\.global\.shared::cta\.tile",
    "tensor stores of columns": r"cp\.async\.bulk\.tensor\S*im2col_no_offs",
    **{
        f"tensor reductions by {how}": rf"cp\.reduce\.async\.bulk\.tensor\S*\.{how}\."
        for how in ("add", "min", "max", "inc", "dec", "and", "or", "xor")
    },
    **{
        f"tensormap.replace of {field}": rf"tensormap\.replace\.tile\.{field}\."
        for field in (
            *("global_address", "rank", "box_dim", "global_dim", "global_stride"),
            *("element_stride", "elemtype", "interleave_layout", "swizzle_mode"),
            "fill_mode",
        )
    },
    "fences of tensor maps": r"fence\.proxy\.tensormap",
    "stmatrix": r"stmatrix\S*\.x4\.trans",
    "elect": r"elect\.sync",
    "registers": r"setmaxnreg\.(inc|dec)",
    "wgmma of each type": r"wgmma\.mma_async\S*\.(f16|bf16|tf32|e4m3|s8|b1)\.",
    "wgmma with A in registers": r"wgmma\.mma_async\S* \{[^}]*\}, \{",
    "clusters": r"mapa|barrier\.cluster",
    "stores from block to block": r"st\.async",
    "dependent grids": r"griddepcontrol",
}


@pytest.fixture(scope="module")
def instructions() -> list[Instruction]:
    modules = [parse_ptx(path.read_text("utf-8")) for path in FOLDER.glob("*.ptx")]
    functions = [f for m in modules for f in (m.kernels | m.functions).values()]
    kernels = [f for f in functions if isinstance(f, PtxKernel)]
    assert len(kernels) == len(functions)
    return [ins for kernel in kernels for ins in kernel.instructions]


def test_each_row_of_the_table_is_probed(instructions: list[Instruction]) -> None:
    probed = {opcode_of(ins).name for ins in instructions}
    # Of sm_100 there is no probe: the kit is for GPUs up to Hopper.
    wanted = {row.name for row in OPCODES if not row.name.endswith(".f32x2")}
    assert wanted - probed - set(NOT_PROBED) == set()
    assert set(NOT_PROBED) <= wanted


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_is_probed(name: str, instructions: list[Instruction]) -> None:
    form = re.compile(FAMILIES[name])
    assert any(form.match(" ".join(ins.text.split())) for ins in instructions)
