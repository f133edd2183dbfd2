"""Ops of Hopper and of eight-bit floats, one kernel each, and what comes of them.

`bench_hopper_ops.py` runs them. Ops of nvvm are written on the arguments of `NVVM`,
those of nvgpu on the values that `NVGPU` makes.
"""

from __future__ import annotations

from dataclasses import dataclass

YES, REFUSED, UNKNOWN, ABORT = "yes", "refused", "unknown intrinsic", "process ends"
NVVM = """
module {{ gpu.module @k {{
  llvm.func @f(%p3: !llvm.ptr<3>, %p7: !llvm.ptr<7>, %p: !llvm.ptr, %g: !llvm.ptr<1>,
               %i: i32, %j: i32, %l: i64, %l2: i64, %b: i1, %h: i16, %f: f32, %f2: f32)
      attributes {{gpu.kernel, nvvm.kernel}} {{
    {body}
    llvm.return
  }} }} }}"""
_WORKGROUP = "#gpu.address_space<workgroup>"
_MAP = (
    "!nvgpu.tensormap.descriptor<tensor = memref<128x64x{}, 3>, swizzle = "
    "swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>"
)
_BARRIERS = f"!nvgpu.mbarrier.group<memorySpace = {_WORKGROUP}, num_barriers = 4>"
NVGPU = f"""
module {{{{ gpu.module @k {{{{
  gpu.func @f(%p: !llvm.ptr, %C: memref<1xf32>) kernel {{{{
    %map = builtin.unrealized_conversion_cast %p : !llvm.ptr to {_MAP.format("f16")}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %shared = gpu.dynamic_shared_memory : memref<?xi8, {_WORKGROUP}>
    %bar = nvgpu.mbarrier.create -> {_BARRIERS}
    %i = gpu.thread_id x
    %phase = arith.cmpi eq, %i, %c1 : index
    {{body}}
    gpu.return
  }}}} }}}} }}}}"""


@dataclass(frozen=True)
class Op:
    """One op, or a few that are of use together.

    body:   of a kernel
    runs:   YES, REFUSED by MLIR (it says why), UNKNOWN to LLVM as an intrinsic, or
            ABORT: LLVM ends the process
    shows:  what the PTX holds, or the message
    warns:  what ptxas says of it
    chip:   that LLVM compiles for
    ptx:    the version that LLVM is asked for, such as "+ptx86"; "" for its own
    note:   what a user has to know
    """

    name: str
    body: str
    runs: str = YES
    shows: str = ""
    chip: str = "sm_90a"
    ptx: str = ""
    note: str = ""
    warns: str = ""

    @property
    def text(self) -> str:
        """The module."""
        frame = NVGPU if self.name.startswith("nvgpu.") else NVVM
        return frame.format(body=self.body)


def _tile(name: str, rows: int, columns: int, kind: str = "f16") -> str:
    bytes_ = f"memref<?xi8, {_WORKGROUP}>"
    shape = f"memref<{rows}x{columns}x{kind}, {_WORKGROUP}>"
    return f"%{name} = memref.view %shared[%c0][] : {bytes_} to {shape}\n"


def _descriptor(name: str, rows: int, columns: int, kind: str = "f16") -> str:
    shape = f"memref<{rows}x{columns}x{kind}, {_WORKGROUP}>"
    made = _MAP.format(kind)
    return (
        _tile(name, rows, columns, kind)
        + f"%m{name} = builtin.unrealized_conversion_cast %p : !llvm.ptr to {made}\n"
        + f"%d{name} = nvgpu.warpgroup.generate.descriptor %{name}, %m{name} : "
        + f"{shape}, {made} -> !nvgpu.warpgroup.descriptor<tensor = {shape}>\n"
    )


def _warpgroup(b_rows: int, b_columns: int, attributes: str) -> str:
    """64x128 accumulators of f16 from 64 of K."""
    kind = "!nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>"
    a, b = (
        f"!nvgpu.warpgroup.descriptor<tensor = memref<{rows}x{columns}xf16, "
        f"{_WORKGROUP}>>"
        for rows, columns in ((64, 64), (b_rows, b_columns))
    )
    return (
        _descriptor("a", 64, 64)
        + _descriptor("b", b_rows, b_columns)
        + f"%z = nvgpu.warpgroup.mma.init.accumulator -> {kind}\n"
        + f"%r = nvgpu.warpgroup.mma %da, %db, %z {{{attributes}}} : {a}, {b}, {kind} "
        + f"-> {kind}\n"
        + "%out = memref.reinterpret_cast %C to offset: [0], sizes: [64, 128], "
        + "strides: [128, 1] : memref<1xf32> to memref<64x128xf32>\n"
        + f"nvgpu.warpgroup.mma.store %r, %out : {kind} to memref<64x128xf32>"
    )


def _wgmma(n: int, k: int, kind: str, d: str = "f32", b: str = "col") -> str:
    """One wgmma.mma_async of m64, and what orders it."""
    register = "i32" if d == "s32" else "f32"
    all_ = f"!llvm.struct<({', '.join([register] * (n // 2))})>"
    layouts = ("row", b)
    operands = ", ".join(
        f"{name} [#nvvm.wgmma_type<{kind}>, #nvvm.wgmma_scale_in<one>, "
        f"#nvvm.mma_layout<{layout}>]"
        for name, layout in zip("AB", layouts, strict=True)
    )
    return (
        f"%u = llvm.mlir.undef : {all_}\n"
        "nvvm.wgmma.fence.aligned\n"
        "%r = nvvm.wgmma.mma_async %l, %l2, %u, "
        f"#nvvm.shape<m = 64, n = {n}, k = {k}>, "
        f"D [#nvvm.wgmma_type<{d}>, #nvvm.wgmma_scale_out<one>], {operands} : "
        f"{all_} -> {all_}\n"
        "nvvm.wgmma.commit.group.sync.aligned\n"
        "nvvm.wgmma.wait.group.sync.aligned 0\n"
        f"%x = llvm.extractvalue %r[0] : {all_}\n"
        f"llvm.store %x, %p : {register}, !llvm.ptr"
    )


_LOAD = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
_TO_CLUSTER, _TO_BLOCK = ": !llvm.ptr<7>, !llvm.ptr", ": !llvm.ptr<3>, !llvm.ptr"
_F8_MMA = """%r = nvvm.mma.sync A[%i, %i, %i, %i] B[%i, %i] C[%f, %f, %f, %f]
  {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
   multiplicandAPtxType = #nvvm.mma_type<e4m3>,
   multiplicandBPtxType = #nvvm.mma_type<e5m2>,
   shape = #nvvm.shape<m = 16, n = 8, k = 32>}
  : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
%x = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
llvm.store %x, %p : f32, !llvm.ptr"""
_F8_CVT = """%c = nvvm.convert.f32x2.to.f8x2 %f, %f2
  {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
llvm.store %c, %p : i16, !llvm.ptr"""

OPS = (
    Op("nvvm.setmaxregister", "nvvm.setmaxregister increase 232", shows="setmaxnreg"),
    Op(
        "nvvm.elect.sync",
        "%e = nvvm.elect.sync -> i1\n%z = llvm.zext %e : i1 to i32\n"
        "llvm.store %z, %p3 : i32, !llvm.ptr<3>",
        shows="elect.sync",
    ),
    Op(
        "nvvm.mbarrier.init",
        "nvvm.mbarrier.init %p3, %i : !llvm.ptr<3>, i32",
        shows="mbarrier.init",
    ),
    Op(
        "nvvm.mbarrier.arrive.expect_tx",
        "nvvm.mbarrier.arrive.expect_tx %p3, %i : !llvm.ptr<3>, i32",
        shows="mbarrier.arrive.expect_tx",
    ),
    Op(
        "nvvm.mbarrier.arrive, of another block",
        "%q = nvvm.mapa %p3, %i : !llvm.ptr<3> -> !llvm.ptr<7>\n"
        "nvvm.mbarrier.arrive %q {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>",
        shows="mbarrier.arrive.release.cluster.shared::cluster",
        note="without `scope = cluster` it releases to the own block only",
    ),
    Op(
        "nvvm.mbarrier.try_wait.parity",
        "nvvm.mbarrier.try_wait.parity %p3, %i, %j : !llvm.ptr<3>, i32, i32",
        shows="mbarrier.try_wait.parity",
        note="loops until the phase is over",
    ),
    Op(
        "nvvm.mbarrier.try_wait",
        "%w = nvvm.mbarrier.try_wait %p3, %i : !llvm.ptr<3>, i32 -> i1\n"
        "%z = llvm.zext %w : i1 to i32\nllvm.store %z, %p : i32, !llvm.ptr",
        shows="mbarrier.try_wait.parity",
    ),
    Op(
        "nvvm.fence.mbarrier.init",
        "nvvm.fence.mbarrier.init",
        shows="fence.mbarrier_init",
    ),
    Op(
        "nvvm.fence.proxy",
        "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
        "space = #nvvm.shared_space<cta>}",
        shows="fence.proxy.async.shared::cta",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor, load",
        f"{_LOAD} %p7, %p, %p3, box[%i, %j] {_TO_CLUSTER}",
        shows="cp.async.bulk.tensor.2d.shared::cluster.global",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor, load to several blocks",
        f"{_LOAD} %p7, %p, %p3, box[%i, %j] multicast_mask = %h {_TO_CLUSTER}",
        shows="multicast::cluster",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor, load with a predicate",
        f"{_LOAD} %p7, %p, %p3, box[%i, %j] predicate = %b {_TO_CLUSTER}",
        shows="@%p1 cp.async.bulk.tensor",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor, load to ptr<3>",
        f"{_LOAD} %p3, %p, %p3, box[%i, %j] {_TO_BLOCK}",
        REFUSED,
        "requires address-space 7",
        note="`llvm.addrspacecast` to ptr<7>, or `isCTAOnly`",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor {isCTAOnly}",
        f"{_LOAD} %p3, %p, %p3, box[%i, %j] {{isCTAOnly = true}} {_TO_BLOCK}",
        ABORT,
        "Cannot select",
        note="`.shared::cta` is PTX 8.6",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor {isCTAOnly}",
        f"{_LOAD} %p3, %p, %p3, box[%i, %j] {{isCTAOnly = true}} {_TO_BLOCK}",
        shows="cp.async.bulk.tensor.2d.shared::cta.global",
        ptx="+ptx86",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor, store",
        "nvvm.cp.async.bulk.tensor.global.shared.cta %p, %p3, box[%i, %j] "
        ": !llvm.ptr, !llvm.ptr<3>",
        shows="cp.async.bulk.tensor.2d.global.shared::cta",
    ),
    Op(
        "nvvm.cp.async.bulk.tensor.reduce",
        "nvvm.cp.async.bulk.tensor.reduce %p, %p3, box[%i, %j] "
        "{redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>",
        UNKNOWN,
        "llvm.nvvm.cp.async.bulk.tensor.reduce.tile.2d",
        note="LLVM 22 has it by another name: `nvvm.inline_ptx`",
    ),
    Op(
        "nvvm.cp.async.bulk.commit.group, wait_group",
        "nvvm.cp.async.bulk.commit.group\nnvvm.cp.async.bulk.wait_group 1 {read}",
        shows="cp.async.bulk.wait_group.read",
    ),
    Op(
        "nvvm.prefetch tensormap",
        "nvvm.prefetch tensormap, %p : !llvm.ptr",
        shows="prefetch.tensormap",
    ),
    Op(
        "nvvm.prefetch.tensormap",
        "nvvm.prefetch.tensormap %p : !llvm.ptr",
        REFUSED,
        "is unknown",
        note="the name before `nvvm.prefetch tensormap`",
    ),
    Op(
        "nvvm.barrier, barrier.arrive",
        "nvvm.barrier id = %i number_of_threads = %j\n"
        "nvvm.barrier.arrive id = %i number_of_threads = %j",
        shows="bar.arrive",
    ),
    Op(
        "nvvm.cluster.arrive, wait",
        "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}",
        shows="barrier.cluster.wait",
    ),
    Op(
        "nvvm.stmatrix",
        "nvvm.stmatrix %p3, %i, %i, %j, %j {layout = #nvvm.mma_layout<row>, "
        "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
        "eltType = #nvvm.ld_st_matrix_elt_type<b16>} "
        ": !llvm.ptr<3>, i32, i32, i32, i32",
        shows="stmatrix.sync",
    ),
    Op(
        "nvvm.griddepcontrol",
        "nvvm.griddepcontrol wait\nnvvm.griddepcontrol launch_dependents",
        shows="griddepcontrol.launch_dependents",
    ),
    Op(
        "nvvm.clusterlaunchcontrol.try.cancel",
        "nvvm.clusterlaunchcontrol.try.cancel %p3, %p3",
        ABORT,
        "Cannot select",
        note="of sm_100",
    ),
    Op("nvvm.wgmma.mma_async, f16", _wgmma(256, 16, "f16"), shows="m64n256k16.f32.f16"),
    Op(
        "nvvm.wgmma.mma_async, f16, B across K",
        _wgmma(128, 16, "f16", b="row"),
        shows="m64n128k16.f32.f16.f16",
    ),
    Op("nvvm.wgmma.mma_async, bf16", _wgmma(8, 16, "bf16"), shows="m64n8k16.f32.bf16"),
    Op("nvvm.wgmma.mma_async, tf32", _wgmma(128, 8, "tf32"), shows="k8.f32.tf32.tf32"),
    Op(
        "nvvm.wgmma.mma_async, tf32, B across K",
        _wgmma(128, 8, "tf32", b="row"),
        REFUSED,
        "only supported for: f16 and bf16",
        note="as the instruction has it",
    ),
    Op(
        "nvvm.wgmma.mma_async, e4m3", _wgmma(128, 32, "e4m3"), shows="k32.f32.e4m3.e4m3"
    ),
    Op(
        "nvvm.wgmma.mma_async, e5m2", _wgmma(128, 32, "e5m2"), shows="k32.f32.e5m2.e5m2"
    ),
    Op("nvvm.wgmma.mma_async, s8", _wgmma(128, 32, "s8", "s32"), shows="k32.s32.s8.s8"),
    Op(
        "nvvm.mma.sync, e4m3 by e5m2",
        _F8_MMA,
        ABORT,
        "Cannot select",
        chip="sm_89",
        note="PTX 8.4; LLVM's own for sm_89 is 7.8",
    ),
    Op(
        "nvvm.mma.sync, e4m3 by e5m2",
        _F8_MMA,
        shows="m16n8k32.row.col.f32.e4m3.e5m2.f32",
        chip="sm_89",
        ptx="+ptx84",
    ),
    Op(
        "nvvm.mma.sync, e4m3 by e5m2",
        _F8_MMA,
        ABORT,
        "does not support target",
        chip="sm_120",
        ptx="+ptx84",
        note="a version before the target's own, which knows the op",
    ),
    Op(
        "nvvm.convert.f32x2.to.f8x2",
        _F8_CVT,
        ABORT,
        "Cannot select",
        chip="sm_89",
        note="PTX 8.1",
    ),
    Op(
        "nvvm.convert.f32x2.to.f8x2",
        _F8_CVT,
        shows="cvt.rn.satfinite.e4m3x2.f32",
        chip="sm_89",
        ptx="+ptx81",
    ),
    Op(
        "nvgpu.mbarrier.init",
        f"nvgpu.mbarrier.init %bar[%c0], %c1 : {_BARRIERS}",
        shows="mbarrier.init",
    ),
    Op(
        "nvgpu.mbarrier.try_wait.parity",
        f"nvgpu.mbarrier.try_wait.parity %bar[%i], %phase, %i : {_BARRIERS}",
        shows="mbarrier.try_wait.parity",
    ),
    Op(
        "nvgpu.tma.async.load",
        _tile("s", 128, 64)
        + f"nvgpu.tma.async.load %map[%i, %i], %bar[%c0] to %s : {_MAP.format('f16')}, "
        f"{_BARRIERS} -> memref<128x64xf16, {_WORKGROUP}>",
        shows="cp.async.bulk.tensor.2d.shared::cluster.global",
    ),
    Op(
        "nvgpu.tma.async.store",
        _tile("s", 128, 64) + "nvgpu.tma.async.store %s to %map[%i, %i] : "
        f"memref<128x64xf16, {_WORKGROUP}> -> {_MAP.format('f16')}",
        shows="cp.async.bulk.tensor.2d.global.shared::cta",
    ),
    Op(
        "nvgpu.warpgroup.mma {transposeB}",
        _warpgroup(64, 128, "transposeB"),
        shows="m64n128k16.f32.f16.f16",
        note="reads its accumulators while a group is in flight: ptxas makes all of "
        "them wait (C7514)",
        warns="C7514",
    ),
    Op(
        "nvgpu.warpgroup.mma, B stored N x K",
        _warpgroup(128, 64, ""),
        REFUSED,
        "2nd dim matrix-A (64)!= 1st dim matrix-B (128 )",
        note="its lowering knows one order of B: descriptors of one's own, and "
        "`nvvm.wgmma.mma_async`",
    ),
    Op(
        "nvgpu.warpgroup.generate.descriptor, f8E4M3FN",
        _descriptor("a", 64, 128, "f8E4M3FN"),
        REFUSED,
        "must have last dimension of 128 bytes",
        note="rows of 128 bytes only",
    ),
)
