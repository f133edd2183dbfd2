"""Runs kernels of the fuzz test: pipelined or not, compiled and emulated."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from kernels import Kernel

from alcop_mlir import diagnostics, dtypes
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.bindings import ir, make_context, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import build
from alcop_mlir.pipelines.pipeline_text import parse_pipeline
from alcop_mlir.pipelines.registry import Registry
from alcop_mlir.pipelines.running import BuiltPipeline
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.ptx import emit_ptx
from alcop_mlir.target import find_target
from alcop_mlir.verifier.check import check
from alcop_mlir.verifier.effects import changed, effects
from alcop_mlir.verifier.plans import check_plans
from alcop_mlir.verifier.promises import check_promises
from alcop_mlir.verifier.violations import Violation

LAUNCH = "gpu.launch_func"
DTYPES = {"i32": "i4", "f32": "f4", "f16": "f2", "f64": "f8"}
TARGET = find_target("sm_80")
CLEANUP = "canonicalize,cse"  # which computes with constants
# As alcop-pipeline does it.
PREPARATION = (
    "alcop-normalize-loops",
    CLEANUP,
    "alcop-separate-views,alcop-separate-buffers,alcop-fold-slots",
    CLEANUP,
    "alcop-split-guards",
)
VISIBILITIES = ("late", "early")
SCHEDULES = ("lockstep", "ascending", "descending", "random")
INSTRUCTION_LIMIT = (
    1_000_000  # a pipeline that does not end is reported, not waited for
)


LARGE_ELEMENTS = 5  # of each array: infinite, NaN, the largest
Mode = tuple[str, str]
Dim3 = tuple[int, int, int]
Report = tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Settings:
    """How a kernel is pipelined: options, and which passes run before and between.

    optimize: whether LLVM optimizes the kernels, as it does for users, passes are asked
              whether they leave what kernels write as it is, and the check runs before
              waits are placed too; the fuzz mostly leaves that out, as it takes longer
              than all of our passes
    """

    stages: tuple[int, int]
    tail: str = "predicated"
    noalias: bool = False
    cleanup: bool = True
    unroll: bool = True
    prepare: bool = False
    version: bool = False
    make_async: bool = False
    optimize: bool = True

    @property
    def preparation(self) -> tuple[str, ...]:
        """What runs before the plan."""
        prepare = PREPARATION if self.prepare else ()
        version = ("alcop-version-loops", CLEANUP) if self.version else ()
        return (*prepare, *version)

    def plan(self, report: Path) -> str:
        return (
            f"alcop-plan-pipelines{{stages={self.stages[0]},{self.stages[1]} "
            f"tail={self.tail} assume-noalias-args={str(self.noalias).lower()} "
            f"report={report}}}"
        )


@dataclass(frozen=True)
class Compiled:
    """A kernel's PTX, and what the plan made of its copies.

    taken: the numbers of the function's arguments that the kernel takes, in its order;
           None for all
    """

    ptx: str
    dynamic_shared: int
    report: Report = ()
    taken: tuple[int, ...] | None = None

    @property
    def levels(self) -> frozenset[str]:
        """The levels at which something was pipelined."""
        return frozenset(e["level"] for e in self.report if e["pipelined"])


@dataclass(frozen=True)
class Both:
    """A kernel as it is, and pipelined; `wrong` is what the verifier found."""

    plain: Compiled
    pipelined: Compiled
    wrong: tuple[str, ...]


def compile_both(text: str, settings: Settings) -> Both:
    """The way of a foreign kernel to PTX, with and without a pipeline.

    Where nothing was pipelined, and nothing else was changed, both are one.
    """
    with context(), ir.Location.unknown(), diagnostics.collect():
        module = ir.Module.parse(text)
        before = str(module)
        report, wrong = _expanded(module, settings)
        if str(module) == before and not settings.make_async:
            plain = emitted(_placed(module, settings), settings)
            return Both(plain, replace(plain, report=report), ())
        if settings.optimize:
            wrong += check(module.operation)
        wrong += check(_placed(module, settings).operation)
        pipelined = replace(emitted(module, settings), report=report)
        as_it_is = replace(settings, make_async=False)
        plain = emitted(_placed(ir.Module.parse(text), as_it_is), as_it_is)
        return Both(plain, pipelined, tuple(found.message for found in wrong))


def placed(text: str, settings: Settings) -> Any:
    """The pipelined module, its waits and barriers placed; in `context()`."""
    module = ir.Module.parse(text)
    _expanded(module, settings)
    return _placed(module, settings)


def _expanded(module: Any, settings: Settings) -> tuple[Report, list[Violation]]:
    """What the plan says of the copies, and what is wrong with it; executes it."""
    wrong = [
        found
        for step in settings.preparation
        for found in _same(module, step, settings)
    ]
    wrong += check_promises(module.operation)
    path = Path(_folder().name, "report.json")
    _run(module, settings.plan(path))
    report = tuple(json.loads(path.read_text()))
    wrong += check_plans(module.operation)
    wrong += _same(module, "alcop-multi-buffer,alcop-expand-pipelines", settings)
    return report, wrong


def _same(module: Any, passes: str, settings: Settings) -> list[Violation]:
    """Run passes; what kernels write otherwise afterwards, which is seldom asked."""
    is_asked = settings.optimize and passes != CLEANUP
    before = effects(module.operation) if is_asked else {}
    _run(module, passes)
    return list(changed(before, module.operation))


def _placed(module: Any, settings: Settings) -> Any:
    """Itself, with what is not pipelined lowered, and waits placed."""
    _lower_foreign_copies(module)
    _hoist_allocations(module)
    _lower_transfers(module)
    cleanup = "canonicalize,cse," if settings.cleanup else ""
    make_async = ",alcop-make-async" if settings.make_async else ""
    _run(module, f"{cleanup}alcop-place-waits{make_async}")
    return module


def emitted(module: Any, settings: Settings) -> Compiled:
    """The kernel of a `placed` module."""
    unroll = "alcop-unroll-steady-state," if settings.unroll else ""
    _run(
        module,
        f"scf-forall-to-for,alcop-distribute-copies,{unroll}canonicalize,cse,"
        f"alcop-outline-kernels,alcop-lower-to-nvvm",
    )
    ops = [op.operation for op in module.body.operations]
    (kernels,) = [op for op in ops if op.name == "gpu.module"]
    ptx = emit_ptx(kernels, TARGET, optimize=settings.optimize)
    return Compiled(ptx, _dynamic_shared(module), taken=_taken(module))


def _run(module: Any, passes: str) -> None:
    """In `context()`."""
    if passes:
        _pipeline(passes).run(module.operation)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """One for all reports, so that plans of the same settings are one pipeline."""
    return tempfile.TemporaryDirectory()


@cache
def _pipeline(passes: str) -> BuiltPipeline:
    """One for all kernels: to build one takes nearly as long as to run it."""
    return build(parse_pipeline(f"builtin.module({passes})"), Registry())


@cache
def context() -> Any:
    """One for all kernels: to make one, with our dialect, takes longer than a plan."""
    made = make_context()
    with made:
        alcop.load()
    return made


def run(
    kernel: Kernel, compiled: Compiled, mode: Mode = ("late", "lockstep")
) -> tuple[list[np.ndarray], tuple[Any, ...]]:
    """The kernel's arrays afterwards, and the hazards found."""
    arrays = data(kernel)
    arguments = [*arrays, *kernel.bounds()]
    hazards = launch(compiled, (1, 1, 1), (kernel.threads, 1, 1), arguments, mode)
    return arrays, hazards


def launch(
    compiled: Compiled, grid: Dim3, block: Dim3, arguments: Sequence[Any], mode: Mode
) -> tuple[Any, ...]:
    """Emulate; the hazards found. Arrays hold the results afterwards."""
    visibility, schedule = mode
    if compiled.taken is not None:
        arguments = [arguments[number] for number in compiled.taken]
    return emulate(
        compiled.ptx,
        None,
        grid,
        block,
        arguments,
        dynamic_shared=compiled.dynamic_shared,
        visibility=visibility,
        schedule=schedule,
        instruction_limit=INSTRUCTION_LIMIT,
    ).hazards


def data(kernel: Kernel) -> list[np.ndarray]:
    """The same numbers each time; results start from a pattern, not from zero.

    A few are extreme: NaN and infinities too, as all that is compared is bits.
    """
    found: dict[str, np.ndarray] = {}
    for number, array in enumerate(kernel.arrays()):
        if array.of:
            found[array.name] = found[array.of]
            continue
        random = np.random.default_rng(number)
        dtype = DTYPES[array.element]
        if array.is_table:
            found[array.name] = random.integers(0, 11, array.shape).astype(dtype)
            continue
        if array.element == "i32":
            values = random.integers(-(2**31), 2**31, array.shape).astype(dtype)
        else:
            values = random.uniform(-1, 1, array.shape).astype(dtype)
        found[array.name] = dtypes.with_extremes(
            random, values, array.element, LARGE_ELEMENTS
        )
    return list(found.values())


def _lower_foreign_copies(module: Any) -> None:
    """What was not pipelined of linalg's copies, as the copies that are distributed."""
    for op in find(module, "linalg.copy", "linalg.generic"):
        with op.location, ir.InsertionPoint(op):
            memref.CopyOp(*op.operands)
        op.erase()


def _lower_transfers(module: Any) -> None:
    """Transfers in bounds as loads and stores: upstream's lowering comes too late."""
    for op in find(module, "vector.transfer_read"):
        memory, *rest = op.operands
        kind, rank = op.results[0].type, memory.type.rank
        indices, (padding, *mask) = rest[:rank], rest[rank:]
        with op.location, ir.InsertionPoint(op):
            if mask:
                other = vector.broadcast(kind, padding)
                loaded = vector.maskedload(kind, memory, indices, *mask, other)
            else:
                loaded = vector.load(kind, memory, indices)
        op.results[0].replace_all_uses_with(loaded)
        op.erase()
    for op in find(module, "vector.transfer_write"):
        value, memory, *rest = op.operands
        indices, mask = rest[: memory.type.rank], rest[memory.type.rank :]
        with op.location, ir.InsertionPoint(op):
            if mask:
                vector.maskedstore(memory, indices, *mask, value)
            else:
                vector.store(value, memory, indices)
        op.erase()


def find(module: Any, *names: str) -> list[Any]:
    """The ops of those names."""
    found = []

    def visit(op: Any) -> Any:
        if op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _hoist_allocations(module: Any) -> None:
    """Buffers that were not pipelined, out of their loops: kernels have them there."""
    for op in find(module, "memref.alloc"):
        outermost = None
        for outer in around(op):
            if outer.name.startswith("scf."):
                outermost = outer
        if outermost is not None:
            op.move_before(outermost)


def _dynamic_shared(module: Any) -> int:
    sizes = [op.opview.dynamicSharedMemorySize for op in find(module, LAUNCH)]
    return max((constant(size) or 0 for size in sizes if size is not None), default=0)


def _taken(module: Any) -> tuple[int, ...] | None:
    """What a launch gives its kernel: canonicalize may have left some of it unused."""
    launches = find(module, LAUNCH)
    if not launches:
        return None
    (launch,) = launches
    return tuple(map(_argument_number, launch.opview.kernelOperands))


def _argument_number(value: Any) -> int:
    """Of the function's argument that `value` is computed from."""
    while not isinstance(value.owner, ir.Block):
        value = value.owner.operation.operands[0]
    return ir.BlockArgument(value).arg_number
