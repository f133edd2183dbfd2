"""PTX of small kernels by CuTe's DSL, as JSON. Runs where it is installed.

    python bench/findings/cute_kernels.py CAPABILITY            # 80 or 90

No GPU is needed. `bench_findings.py` runs it, by the Python of such an environment.
"""

import json
import os
import sys
from importlib import metadata

if __name__ == "__main__":
    # Read when CuTe is imported.
    os.environ["CUTE_DSL_ARCH"] = f"sm_{sys.argv[1]}"
    os.environ["CUTE_DSL_KEEP_PTX"] = "1"

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.utils import SmemAllocator

F32 = cutlass.Float32
THREADS, ROWS, WIDTH, SLOTS = 128, 16, 512, 3


@cute.kernel
def row_totals_kernel(x: cute.Tensor, y: cute.Tensor):
    """The sum of a row by each block: shuffles, then shared memory."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    value = cute.arch.warp_reduction(x[block, thread], lambda one, other: one + other)
    parts = SmemAllocator().allocate_tensor(F32, cute.make_layout(4))
    if thread % 32 == 0:
        parts[thread // 32] = value
    cute.arch.sync_threads()
    if thread == 0:
        y[block] = parts[0] + parts[1] + parts[2] + parts[3]


@cute.jit
def row_totals(x: cute.Tensor, y: cute.Tensor):
    """Eight rows."""
    row_totals_kernel(x, y).launch(grid=[8, 1, 1], block=[THREADS, 1, 1])


@cute.kernel
def columns_kernel(x: cute.Tensor, y: cute.Tensor):
    """Columns added up, of rows that cp.async copies early, into three slots."""
    thread, _, _ = cute.arch.thread_idx()
    layout = cute.make_layout((WIDTH, SLOTS), stride=(1, WIDTH))
    slots = SmemAllocator().allocate_tensor(F32, layout, 16)
    copy = cute.make_copy_atom(
        cute.nvgpu.cpasync.CopyG2SOp(), F32, num_bits_per_copy=128
    )
    for row in cutlass.range_constexpr(SLOTS - 1):
        source = cute.local_tile(x[row, None], (4,), (thread,))
        cute.copy(copy, source, cute.local_tile(slots[None, row], (4,), (thread,)))
        cute.arch.cp_async_commit_group()
    total = F32(0.0)
    for row in cutlass.range(ROWS):
        cute.arch.cp_async_wait_group(SLOTS - 2)
        cute.arch.sync_threads()
        early = row + SLOTS - 1
        if early < ROWS:
            source = cute.local_tile(x[early, None], (4,), (thread,))
            target = cute.local_tile(slots[None, early % SLOTS], (4,), (thread,))
            cute.copy(copy, source, target)
        cute.arch.cp_async_commit_group()
        # What another thread has copied.
        total = total + slots[(thread * 4 + 5) % WIDTH, row % SLOTS]
    y[thread] = total


@cute.jit
def columns(x: cute.Tensor, y: cute.Tensor):
    """One block."""
    columns_kernel(x, y).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


def compiled(function, *shapes):
    """The kernel's record: how it is launched, and its PTX."""
    tensors = [
        make_fake_compact_tensor(
            F32,
            shape,
            stride_order=tuple(reversed(range(len(shape)))),
            assumed_align=16,
        )
        for shape in shapes
    ]
    ptx = cute.compile(function, *tensors).__ptx__
    name, shared = function.__name__, 4 * WIDTH * SLOTS
    return {
        "name": name,
        "entry": None,
        "threads": THREADS,
        "shared": shared,
        "ptx": ptx,
    }


if __name__ == "__main__":
    version = metadata.version("nvidia-cutlass-dsl")
    made = [
        compiled(row_totals, (8, THREADS), (8,)),
        compiled(columns, (ROWS, WIDTH), (THREADS,)),
    ]
    compiler = f"CuTe DSL {version}, sm_{sys.argv[1]}"
    print(json.dumps({"compiler": compiler, "kernels": made}))
