"""A small compiler in Python that pipelines its kernels with alcop_mlir.

    python examples/embedding/python_flow.py

It builds a kernel that averages the rows of an array, alternates its own passes with
ours on a module that it owns, and runs the PTX on the emulator. The context, the module
and the `flow` dialect, which MLIR does not know, belong to the flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import alcop_mlir
from alcop_mlir.analysis.host.host_function import host, host_functions
from alcop_mlir.bindings import arith, func, gpu, ir, memref, passmanager, scf
from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime import ptx
from alcop_mlir.runtime.emulator.api import emulate
from alcop_mlir.runtime.launch import grid_of

ROWS, COLUMNS = 256, 512
BLOCK = 128  # threads, and rows, of a block
STEP = 32  # columns in shared memory at a time
SHARED = "#gpu.address_space<workgroup>"

# One name per step of the transformation. The copies are of whole tiles, which
# alcop-distribute-copies spreads over the threads when all else is done.
PIPELINE = """builtin.module(func.func(
    alcop-plan-pipelines{target=sm_80 stages=3,1 assume-noalias-args=true},
    alcop-multi-buffer,
    alcop-expand-pipelines,
    canonicalize,
    cse,
    alcop-place-waits,
    alcop-distribute-copies))"""
LOWER = """builtin.module(
    alcop-outline-kernels,
    alcop-lower-to-nvvm{target=sm_80})"""


def main() -> None:
    """The whole flow."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    alcop_mlir.register(context)
    with context, ir.Location.unknown():
        module = build()
        passmanager.PassManager.parse("builtin.module(canonicalize,cse)").run(
            module.operation
        )
        alcop_mlir.run_pipeline(module, PIPELINE)
        print(f"asynchronous copies: {count(module, 'nvgpu.device_async_copy')}")
        lower_means(module)
        alcop_mlir.run_pipeline(module, LOWER)
        check(module)


def build() -> Any:
    """A launch in which a block adds up a tile of its rows per step."""
    f32 = ir.F32Type.get()
    source = ir.MemRefType.get([ROWS, COLUMNS], f32)
    result = ir.MemRefType.get([ROWS], f32)
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("mean", ([source, result], []))
    with ir.InsertionPoint(function.add_entry_block()):
        grid, block = [index(ROWS // BLOCK)], [index(BLOCK)]
        launch = gpu.LaunchOp((*grid, index(1), index(1)), (*block, index(1), index(1)))
        func.ReturnOp([])
    with ir.InsertionPoint(launch.regions[0].blocks[0]):
        build_kernel(launch, *function.arguments)
        gpu.TerminatorOp()
    assert module.operation.verify()
    return module


def build_kernel(launch: Any, source: Any, result: Any) -> None:
    """Copy a tile to shared memory, wait for it, add it up; `flow.mean` at the end."""
    f32 = ir.F32Type.get()
    block_x, thread_x = (launch.regions[0].blocks[0].arguments[n] for n in (0, 3))
    first = arith.muli(block_x, index(BLOCK))
    space = ir.Attribute.parse(SHARED)
    tile = memref.alloc(ir.MemRefType.get([BLOCK, STEP], f32, None, space), [], [])
    zero = arith.constant(f32, 0.0)
    steps = scf.ForOp(index(0), index(COLUMNS), index(STEP), [zero])
    with ir.InsertionPoint(steps.body):
        part = memref.subview(
            source, [first, steps.induction_variable], [BLOCK, STEP], [1, 1]
        )
        memref.copy(part, tile)
        gpu.barrier()
        total = build_sum(tile, thread_x, steps.inner_iter_args[0])
        gpu.barrier()
        scf.yield_([total])
    mean = ir.Operation.create("flow.mean", [f32], [steps.results[0]])
    memref.store(mean.result, result, [arith.addi(first, thread_x)])


def build_sum(tile: Any, row: Any, initial: Any) -> Any:
    """`initial` and all elements of the row of `tile`."""
    columns = scf.ForOp(index(0), index(STEP), index(1), [initial])
    with ir.InsertionPoint(columns.body):
        element = memref.load(tile, [row, columns.induction_variable])
        scf.yield_([arith.addf(columns.inner_iter_args[0], element)])
    return columns.results[0]


def index(value: int) -> Any:
    """An index constant."""
    return arith.constant(ir.IndexType.get(), value)


def lower_means(module: Any) -> None:
    """A pass of the flow: `flow.mean` becomes a division. Ours leave it unchanged."""
    for op in find(module, "flow.mean"):
        with ir.InsertionPoint(op):
            columns = arith.constant(ir.F32Type.get(), float(COLUMNS))
            op.result.replace_all_uses_with(arith.divf(op.operands[0], columns))
        op.erase()


def count(module: Any, name: str) -> int:
    """How many ops of that name there are."""
    return len(find(module, name))


def find(module: Any, name: str) -> list[Any]:
    """All ops of that name."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def check(module: Any) -> None:
    """Run the kernel as the host function would, and compare with NumPy."""
    (kernels,) = find(module, "gpu.module")
    text = ptx.emit_ptx(kernels, alcop_mlir.find_target("sm_80"))
    done = host(host_functions(module)[0])
    assert isinstance(done, Function), done
    (kernel,) = done.kernels
    source = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)
    means = np.zeros(ROWS, np.float32)
    arrays = {"arg0": source, "arg1": means}
    ran = emulate(
        text,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [arrays[name] for name in kernel.arrays],
        dynamic_shared=kernel.shared_bytes,
    )
    assert not ran.hazards, ran.hazards
    error = np.abs(means - source.mean(axis=1, dtype=np.float64)).max()
    assert error < 1e-6, error
    print(f"{kernel.name}: {kernel.shared_bytes} bytes of shared memory")
    print("rows averaged on the emulator: as NumPy, without hazards")


if __name__ == "__main__":
    main()
