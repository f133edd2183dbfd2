"""Automatic multi-stage, multi-level software pipelining of GPU kernels in MLIR.

    import alcop_mlir

    matmul = alcop_mlir.compile("matmul.mlir", target="sm_80")
    matmul(A, B, C)  # NumPy arrays: the emulator; CuPy or DLPack arrays: the GPU

Importing this package imports nothing heavy: MLIR is loaded by the first `compile`,
CuPy by the first launch on a GPU.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeVar

from alcop_mlir.schedule import Partial, Schedule
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target
from alcop_mlir.variants import DEFAULT_VARIANTS
from alcop_mlir.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from alcop_mlir import diagnostics as diagnostics
    from alcop_mlir.passes.base import Pass
    from alcop_mlir.runtime.launch import Program

__all__ = [
    "Schedule",
    "Target",
    "__version__",
    "compile",
    "find_target",
    "load",
    "register",
    "register_pass",
    "run_pipeline",
]


def __getattr__(name: str) -> Any:
    """`diagnostics`, which loads MLIR, when it is first asked for."""
    if name == "diagnostics":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_PassClass = TypeVar("_PassClass", bound="type[Pass]")
_registered: list[type[Pass]] = []


def compile(
    source: Any,
    target: str | Target = DEFAULT_TARGET,
    schedule: str | Schedule | None = None,
    *,
    function: str | None = None,
    device: str = "auto",
    allow_tf32: bool = False,
    variants: int = DEFAULT_VARIANTS,
) -> Program:
    """Compile the linalg on memrefs or tensors in `source`; the result is callable.

    source: an MLIR module (not modified), the path of a .mlir file, or MLIR text
    schedule: tile sizes and stages, as `Schedule` or its text; the compiler chooses
        what the text leaves out, and all for None
    function: which one to call, where the module has several
    device: "cuda", "emulator", or "auto": where the arrays of a call are
    allow_tf32: compile contractions of f32 too, with inputs rounded to tf32
    variants: most kernels of a contraction with sizes known at run time only, of which
        each call picks one

    The program takes one array per argument, in order or by name, then one per tensor
    result, which it writes; results that are left out it returns. Raises an AlcopError
    (see alcop_mlir.errors) if compiling fails.
    """
    from alcop_mlir.compilation import compiler, inputs
    from alcop_mlir.runtime.launch import Program

    options = compiler.Options(
        target=find_target(target) if isinstance(target, str) else target,
        schedule=Partial.parse(schedule) if isinstance(schedule, str) else schedule,
        allow_tf32=allow_tf32,
        variants=variants,
    )
    bundle = compiler.compile_source(inputs.read(source), options)
    return Program(bundle, function, device)


def load(
    path: str | Path, *, function: str | None = None, device: str = "auto"
) -> Program:
    """Load the program of a stored bundle, without MLIR; ConfigError if damaged."""
    from alcop_mlir.runtime import bundle
    from alcop_mlir.runtime.launch import Program

    return Program(bundle.load(path), function, device)


def register(context: Any) -> None:
    """Register our dialects with a context that the caller owns; may be repeated.

    Needed to parse IR that holds `alcop` ops or attributes, and transform scripts with
    ops of `alcop_transform`. Disables multithreading in the context: ops that are
    defined in Python are verified in Python, and a thread of MLIR that verifies one
    would wait for an interpreter that waits for the thread.
    """
    from alcop_mlir.dialects import alcop, transform_ops
    from alcop_mlir.pipelines.registry import Registry

    context.enable_multithreading(False)
    with context:
        alcop.load()
        transform_ops.load(Registry().find_pass)


def register_pass(pass_class: _PassClass) -> _PassClass:
    """Register a pass of your own for `run_pipeline`; may be used as a decorator."""
    if pass_class not in _registered:
        _registered.append(pass_class)
    return pass_class


def run_pipeline(module: Any, text: str) -> None:
    """Run a pipeline such as `builtin.module(func.func(cse),alcop-compile)` in place.

    The caller owns the module and its context. Multithreading is disabled in the
    context meanwhile, and stays so if the pipeline leaves ops of ours, see `register`.
    Upstream passes, those of alcop_mlir and those given to `register_pass` may be
    mixed. Raises ConfigError for an invalid text, PassFailure where a pass fails.
    """
    from alcop_mlir.pipelines import driver

    op = module.operation
    had_threads = op.context.get_num_threads() > 1
    op.context.enable_multithreading(False)
    try:
        driver.run_pipeline(op, text, passes=_registered)
    finally:
        if had_threads and not _has_ops_of_ours(op):
            op.context.enable_multithreading(True)


def _has_ops_of_ours(root: Any) -> bool:
    from alcop_mlir.bindings import ir

    found = False

    def visit(op: Any) -> Any:
        nonlocal found
        found = op.operation.name.startswith(("alcop.", "alcop_transform."))
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    root.walk(visit)
    return found
