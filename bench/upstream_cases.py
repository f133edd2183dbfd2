"""The cases of bench_upstream.py: what is run, and what its row of the table says."""

from __future__ import annotations

from dataclasses import dataclass

SCRIPTS = "bench/upstream/scripts"


@dataclass(frozen=True)
class Case:
    """One call of alcop-opt, and what is claimed of it.

    script:   a file of bench/upstream/scripts, run by the transform interpreter
    before, after: passes around the script, or all there are, as `builtin.module(...)`
              elements
    runs:     "yes", "error" or "crash"
    computes: what the kernel is found to do where it is run, else ""
    shows:    patterns that the output or the messages must have
    lacks:    patterns that the output must not have
    """

    name: str
    input: str
    does: str
    stops: str
    script: str = ""
    before: str = ""
    after: str = ""
    runs: str = "yes"
    computes: str = ""
    shows: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def flags(self) -> list[str]:
        """The flags of the call."""
        passes = [self.before]
        if self.script:
            library = f"transform-library-paths={SCRIPTS}/{self.script}.mlir"
            passes.append(f"transform-preload-library{{{library}}}")
            passes.append("transform-interpreter")
        passes.append(self.after)
        return [f"--pass-pipeline=builtin.module({','.join(filter(None, passes))})"]


_LOWER_MMA = (
    "func.func(alcop-lower-mma),fold-memref-alias-ops,func.func(canonicalize,cse)"
)
_AFFINE = (
    "func.func(convert-linalg-to-affine-loops,affine-loop-tile{tile-sizes=128,128,32},"
    "affine-data-copy-generate{fast-mem-space=3 generate-dma=true "
    "fast-mem-capacity=16},affine-pipeline-data-transfer)"
)
_TO_GPU = (
    "func.func(convert-linalg-to-parallel-loops,"
    "scf-parallel-loop-tiling{parallel-loop-tile-sizes=16,16},gpu-map-parallel-loops),"
    "convert-parallel-loops-to-gpu"
)

CASES = (
    Case(
        "transform.memref.multibuffer",
        "tiled_matmul.mlir",
        "three slots per buffer, `(k floordiv 32) mod 3` as the slot",
        "the copies stay synchronous; a division per iteration",
        script="multibuffer",
        computes="right, 655360 bank conflicts",
        shows=(r"memref<3x128x32xf16", r"floordiv 32\) mod 3", r"memref.copy"),
    ),
    Case(
        "transform.memref.multibuffer, copies by threads",
        "thread_matmul.mlir",
        "nothing",
        (
            "`op failed to multibuffer`: a copy of one thread does not fill the "
            "buffer, as its analysis sees it"
        ),
        script="multibuffer",
        runs="error",
        shows=(r"op failed to multibuffer",),
    ),
    Case(
        "transform.memref.multibuffer {skip_analysis}",
        "thread_matmul.mlir",
        "the same slots",
        "whoever calls it answers for its correctness",
        script="multibuffer_unchecked",
        computes="right, 1310720 bank conflicts",
        shows=(r"memref<3x128x32xf16",),
    ),
    Case(
        "transform.nvgpu.create_async_groups, tile copies",
        "tiled_matmul.mlir",
        "nothing",
        "no message: `memref.copy` is no copy that it knows",
        script="create_async_groups",
        computes="right, 655360 bank conflicts",
        shows=(r"memref.copy",),
        lacks=(r"nvgpu",),
    ),
    Case(
        "transform.nvgpu.create_async_groups",
        "thread_matmul.mlir",
        "two `device_async_copy`, one group, `bypassL1`",
        "a wait for the group follows at once",
        script="create_async_groups",
        computes="right, 1310720 bank conflicts",
        shows=(
            r"device_async_copy .* 8 {bypassL1}",
            r"device_async_create_group %\d+, %\d+\n *nvgpu.device_async_wait",
        ),
    ),
    Case(
        "transform.nvgpu.pipeline_shared_memory_copies",
        "thread_matmul.mlir",
        (
            "with slots and groups made before: a prologue of 3 groups, then a loop"
            " that waits for all but 2; the tail copies 0 bytes"
        ),
        (
            "one level; slots are not its own; 13 values carried by the loop; "
            "predicated copies lose `bypassL1`; the last groups are never waited "
            "for"
        ),
        script="pipeline_copies",
        computes="right, copy-in-flight-at-exit, 1310720 bank conflicts",
        shows=(
            r"%\d+:13 = scf.for",
            r"numGroups = 2 : i32",
            r"arith.select",
            r"8, %\d+ : memref",
        ),
        lacks=(r"8, %\d+ {bypassL1}",),
    ),
    Case(
        "transform.nvgpu.pipeline_shared_memory_copies {peel_epilogue}",
        "thread_matmul.mlir",
        "the last 3 iterations become code of their own",
        "as above, but for the predicates and the open groups",
        script="pipeline_copies_peeled",
        computes="right, 1310720 bank conflicts",
        shows=(r"numGroups = 0 : i32",),
    ),
    Case(
        "transform.nvgpu.pipeline_shared_memory_copies, one slot",
        "thread_matmul.mlir",
        "the same pipeline on buffers without slots: a race, without a message",
        "that buffers have slots is not checked",
        script="pipeline_copies_one_slot",
        computes=(
            "wrong, copy-in-flight-at-exit, write-in-flight, 1310720 bank conflicts"
        ),
        lacks=(r"memref<3x",),
    ),
    Case(
        "transform.nvgpu.pipeline_shared_memory_copies, tile copies",
        "tiled_matmul.mlir",
        "nothing",
        "`cannot find stage 0 ops for pipelining`",
        script="pipeline_copies_outer",
        runs="error",
        shows=(r"cannot find stage 0 ops for pipelining",),
    ),
    Case(
        "transform.nvgpu.pipeline_shared_memory_copies, loop of loops",
        "nested_matmul.mlir",
        "nothing",
        "`cannot find stage 0 ops for pipelining`: no loop may be inside",
        script="pipeline_copies_outer",
        runs="error",
        shows=(r"cannot find stage 0 ops for pipelining",),
    ),
    Case(
        "transform.nvgpu.pipeline_shared_memory_copies, K at run time",
        "dynamic_matmul.mlir",
        "nothing",
        "`pipelining preconditions failed`",
        script="pipeline_copies",
        runs="error",
        shows=(r"pipelining preconditions failed",),
    ),
    Case(
        (
            "transform.nvgpu.pipeline_shared_memory_copies {peel_epilogue}, K at "
            "run time"
        ),
        "dynamic_matmul.mlir",
        "nothing",
        "`pipelining preconditions failed`",
        script="pipeline_copies_peeled",
        runs="error",
        shows=(r"pipelining preconditions failed",),
    ),
    Case(
        "transform.loop.pipeline",
        "tiled_matmul.mlir",
        "a pipeline in which fragments are read before their tile is copied",
        (
            "follows SSA values only, so copies, barriers and reads of memory are "
            "reordered"
        ),
        script="loop_pipeline_outer",
        computes=(
            "wrong, read-after-write, uninitialised-read, write-after-read, "
            "write-after-write, 655360 bank conflicts"
        ),
        shows=(r"gpu.barrier\n *gpu.barrier",),
    ),
    Case(
        "transform.loop.pipeline, copies by threads",
        "thread_matmul.mlir",
        "nothing",
        "`operation scheduled before its operands`",
        script="loop_pipeline",
        runs="error",
        shows=(r"operation scheduled before its operands",),
    ),
    Case(
        "test-scf-pipelining",
        "tiled_matmul.mlir",
        "nothing",
        (
            "`unknown pass`: `scf::pipelineForLoop` has no pass; upstream's test "
            "pass is not in the bindings"
        ),
        after="func.func(test-scf-pipelining)",
        runs="error",
        shows=(r"unknown pass 'test-scf-pipelining'",),
    ),
    Case(
        "affine-pipeline-data-transfer",
        "linalg_matmul.mlir",
        (
            "from linalg by affine loops and `affine-data-copy-generate`: two "
            "slots, `affine.dma_start` one iteration early"
        ),
        "two slots, no more",
        after=_AFFINE,
        shows=(r"memref<2x32x128xf16, 3>", r"affine.dma_start", r"affine.dma_wait"),
    ),
    Case(
        "affine-pipeline-data-transfer, then convert-to-llvm",
        "linalg_matmul.mlir",
        "nothing",
        (
            "`'llvm.call' op operand type mismatch`: the slots, in memory space 3, "
            "are given to the host's `free`"
        ),
        after=f"{_AFFINE},lower-affine,convert-scf-to-cf,convert-to-llvm",
        runs="error",
        shows=(r"'llvm.call' op operand type mismatch",),
    ),
    Case(
        "transform.nvgpu.rewrite_matmul_as_mma_sync",
        "linalg_matmul.mlir",
        "nothing",
        "`unsupported target op`: the op must be one `mma.sync` large",
        script="mma_sync",
        runs="error",
        shows=(r"unsupported target op",),
    ),
    Case(
        "transform.nvgpu.rewrite_matmul_as_mma_sync, f32 accumulators",
        "mma_f32.mlir",
        "nothing",
        (
            "`unsupported target op`: 16x8x16 of f16 with f16 accumulators, or "
            "16x8x4 of f32"
        ),
        script="mma_sync",
        runs="error",
        shows=(r"unsupported target op",),
    ),
    Case(
        "transform.nvgpu.rewrite_matmul_as_mma_sync, f16 accumulators",
        "mma_f16.mlir",
        "one `mma.sync`",
        "operands are loaded element by element, without `ldmatrix`",
        script="mma_sync",
        shows=(r"nvgpu.mma.sync", r"memref.load %arg0"),
        lacks=(r"ldmatrix",),
    ),
    Case(
        "convert-vector-to-gpu{use-nvgpu}",
        "tiled_matmul.mlir",
        "nothing",
        (
            "`unhandled vector to mma type`: vectors larger than one `mma.sync`, "
            "and the index arithmetic of their offsets"
        ),
        after="func.func(convert-vector-to-gpu{use-nvgpu=true})",
        runs="error",
        shows=(r"unhandled vector to mma type",),
    ),
    Case(
        "convert-vector-to-gpu{use-nvgpu}, 16x8x16",
        "warp_contract.mlir",
        "two `ldmatrix`, one `mma.sync`, stores of pairs",
        "sizes of one `mma.sync`, B transposed; vectors must be unrolled before",
        after="func.func(convert-vector-to-gpu{use-nvgpu=true})",
        shows=(
            r"numTiles = 4 : i32, transpose = false",
            r"numTiles = 2 : i32, transpose = true",
            r"mmaShape = \[16, 8, 16\]",
        ),
    ),
    Case(
        "nvgpu-optimize-shared-memory",
        "thread_matmul.mlir",
        (
            "after `create_async_groups` and `alcop-lower-mma`: columns XOR rows, "
            "no bank conflicts"
        ),
        ("one kind of swizzle; other copies than these are unknown to it, see below"),
        script="create_async_groups",
        after=f"{_LOWER_MMA},func.func(nvgpu-optimize-shared-memory)",
        computes="right",
        shows=(r"arith.xori",),
    ),
    Case(
        "nvgpu-optimize-shared-memory, slots",
        "thread_matmul.mlir",
        "the same on buffers of three slots",
        "as above",
        script="pipeline_copies",
        after=f"{_LOWER_MMA},func.func(nvgpu-optimize-shared-memory)",
        computes="right, copy-in-flight-at-exit",
        shows=(r"arith.xori", r"memref<3x128x32xf16"),
    ),
    Case(
        "nvgpu-optimize-shared-memory, vector.transfer_write",
        "thread_matmul.mlir",
        "nothing",
        "no message: copies by `vector.transfer_write` are unknown to it",
        before=_LOWER_MMA,
        after="func.func(nvgpu-optimize-shared-memory)",
        computes="right, 1310720 bank conflicts",
        lacks=(r"arith.xori",),
    ),
    Case(
        "transform.nvgpu.rewrite_copy_as_tma",
        "linalg_copies.mlir",
        "nothing",
        (
            "`operand #0 does not dominate this use`: the descriptor is made in "
            "front of the launch, the source is a tile of the loop's"
        ),
        script="copy_as_tma",
        runs="error",
        shows=(r"operand #0 does not dominate this use",),
    ),
    Case(
        "transform.nvgpu.rewrite_copy_as_tma, an argument as a whole",
        "tma_copy.mlir",
        "descriptor, `mbarrier`, one `tma.async.load`, and a wait for it",
        "waits at once; needs sm_90",
        script="copy_as_tma",
        shows=(
            r"nvgpu.tma.create.descriptor",
            r"nvgpu.tma.async.load",
            r"mbarrier.try_wait.parity",
        ),
    ),
    Case(
        "transform.structured.tile_using_forall",
        "tensor_matmul.mlir",
        "`scf.forall` of 4 x 4 blocks mapped to `#gpu.block`",
        "tiles only",
        script="tile_forall",
        shows=(r"scf.forall .* in \(4, 4\)",),
    ),
    Case(
        "transform.structured.tile_using_forall, 100 x 128",
        "tensor_matmul.mlir",
        "6 x 4 blocks, tiles of `affine.min` sizes",
        "types become dynamic; someone must pad or mask",
        script="tile_forall_ragged",
        shows=(r"in \(6, 4\)", r"affine.min", r"tensor<\?x1024xf16>"),
    ),
    Case(
        "transform.structured.pad, hoist_pad",
        "tensor_matmul.mlir",
        ("operands padded; a loop of its own packs all K steps of A before the loop"),
        "all of K is packed at once: no ring of slots, no asynchronous copies",
        script="pad_and_hoist",
        shows=(r"tensor.empty\(%\w+\) : tensor<\?x128x32xf16>", r"tensor.pad"),
    ),
    Case(
        "transform.structured.vectorize",
        "linalg_matmul.mlir",
        "a `vector.contract` of 128x32 by 32x128",
        "C is read and written in each K step until transfers are hoisted",
        script="vectorize",
        shows=(r"vector.contract .*vector<32x128xf16> into vector<128x128xf32>",),
    ),
    Case(
        "transform.structured.promote",
        "linalg_matmul.mlir",
        "workgroup buffers, `memref.copy` with barriers",
        (
            "buffers in front of the blocks' loop; 4 barriers per K step, views of "
            "dynamic sizes"
        ),
        script="promote",
        shows=(r"#gpu.address_space<workgroup>", r"gpu.barrier\n *gpu.barrier"),
    ),
    Case(
        "transform.structured.gpu.map_copy_to_threads, tensors",
        "tensor_matmul.mlir",
        "128 threads, 4x8 elements each, by `scf.forall`",
        "synchronous; each thread pads and inserts into a tensor",
        script="map_pad_to_threads",
        shows=(r"in \(32, 4\)", r"#gpu.thread<linear_dim_1>"),
    ),
    Case(
        "transform.structured.gpu.map_copy_to_threads, memrefs",
        "linalg_copies.mlir",
        "nothing",
        "the process crashes",
        script="map_copy_to_threads",
        runs="crash",
    ),
    Case(
        "convert-linalg-to-loops",
        "linalg_matmul.mlir",
        "three `scf.for`, scalar loads and stores",
        "sequential; C in memory throughout",
        after="func.func(convert-linalg-to-loops)",
        shows=(r"memref.store",),
        lacks=(r"scf.parallel",),
    ),
    Case(
        (
            "convert-linalg-to-parallel-loops, gpu-map-parallel-loops, convert-"
            "parallel-loops-to-gpu"
        ),
        "linalg_matmul.mlir",
        "a kernel of 512 x 512 blocks of one thread",
        "one thread per block",
        after=(
            "func.func(convert-linalg-to-parallel-loops,gpu-map-parallel-loops),"
            "convert-parallel-loops-to-gpu,canonicalize"
        ),
        shows=(
            r"%c512, %\w+ = %c512, %\w+ = %c1\) threads\(.*= %c1, .*= %c1, .*= %c1\)",
        ),
    ),
    Case(
        "the same with scf-parallel-loop-tiling",
        "linalg_matmul.mlir",
        "32 x 32 blocks of 16 x 16 threads",
        (
            "no shared memory, no tensor cores; rows of C along x, so that "
            "neighbouring lanes read different rows of A"
        ),
        after=f"{_TO_GPU},canonicalize",
        shows=(r"= %c16, .*= %c16, .*= %c1\)",),
        lacks=(r"workgroup",),
    ),
    Case(
        "linalg-fuse-elementwise-ops",
        "tensor_matmul.mlir",
        "nothing",
        "the matmul, named or generic, takes no consumer",
        after="linalg-generalize-named-ops,linalg-fuse-elementwise-ops",
        shows=(r"arith.maximumf", r'"reduction"(.|\n)*linalg.generic'),
    ),
    Case(
        "gpu-kernel-outlining",
        "tiled_matmul.mlir",
        "a `gpu.module` with the kernel, and `gpu.launch_func`",
        (
            "memrefs as descriptors; constants as arguments unless `gpu-launch-"
            "sink-index-computations` ran"
        ),
        after="gpu-kernel-outlining",
        shows=(r"gpu.launch_func",),
    ),
    Case(
        "gpu-lower-to-nvvm-pipeline",
        "linalg_matmul.mlir",
        "lowers host and kernel, then stops",
        "`no targets are registered`: these bindings have no NVPTX back end",
        after=(
            f"{_TO_GPU},gpu-kernel-outlining,"
            "gpu-lower-to-nvvm-pipeline{cubin-chip=sm_80 cubin-format=isa}"
        ),
        runs="error",
        shows=(r"no targets are registered",),
    ),
    Case(
        "gpu-lower-to-nvvm-pipeline, tiles",
        "tiled_matmul.mlir",
        "nothing",
        "a `memref.copy` in a kernel becomes a call of the host's `memrefCopy`",
        after=(
            "gpu-kernel-outlining,"
            "gpu-lower-to-nvvm-pipeline{cubin-chip=sm_80 cubin-format=isa}"
        ),
        runs="error",
        shows=(r"'memrefCopy' does not reference a symbol",),
    ),
    Case(
        "convert-math-to-nvvm",
        "math.mlir",
        "calls of CUDA's libdevice, `__nv_expf`",
        "libdevice must be linked; f16 by way of f32",
        after="convert-math-to-nvvm",
        shows=(r"__nv_expf", r"__nv_tanhf", r"__nv_erff"),
    ),
    Case(
        "convert-gpu-to-nvvm",
        "math.mlir",
        "the same calls, with the kernel's ABI",
        "as above",
        after="gpu.module(convert-gpu-to-nvvm)",
        shows=(r"__nv_expf", r"__nv_erff"),
    ),
    Case(
        "math-expand-ops",
        "math.mlir",
        "`tanh` by `exp`",
        "`exp` and `erf` stay",
        after="math-expand-ops",
        shows=(r"math.exp", r"math.erf"),
        lacks=(r"math.tanh",),
    ),
    Case(
        "math-polynomial-approximation",
        "math.mlir",
        "nothing",
        (
            "`unknown pass`: upstream has it as a test pass only, which the "
            "bindings lack"
        ),
        after="math-polynomial-approximation",
        runs="error",
        shows=(r"unknown pass 'math-polynomial-approximation'",),
    ),
    Case(
        "promote-buffers-to-stack",
        "tiled_matmul.mlir",
        "`memref.alloca` of type `#gpu.address_space<workgroup>`",
        ("takes a block's buffers for a thread's: the memory space is not looked at"),
        after="func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=65536})",
        shows=(
            r"memref.alloca\(\) : memref<128x32xf16, #gpu.address_space<workgroup>>",
        ),
    ),
    Case(
        "buffer-deallocation",
        "tiled_matmul.mlir",
        "nothing",
        "`unknown pass`: replaced by the one below",
        after="func.func(buffer-deallocation)",
        runs="error",
        shows=(r"unknown pass 'buffer-deallocation'",),
    ),
    Case(
        "ownership-based-buffer-deallocation",
        "tiled_matmul.mlir",
        "nothing",
        ("`ops with unknown memory side effects are not supported`: `gpu.barrier`"),
        after="ownership-based-buffer-deallocation",
        runs="error",
        shows=(r"ops with unknown memory side effects",),
    ),
)
