"""Contexts and modules that the caller owns, before and after our passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import alcop_mlir
from alcop_mlir.bindings import ir
from alcop_mlir.errors import ConfigError
from scripts import kernel, op, run_script

OPTIONS = "{stages=3,1 assume-noalias-args=true}"
TO_WAITS = (
    f"builtin.module(func.func(alcop-plan-pipelines{OPTIONS},alcop-multi-buffer,"
    "alcop-expand-pipelines,canonicalize,alcop-place-waits))"
)
DEADLINE = 60  # seconds; what is looked for is a deadlock


def test_registering_again_is_harmless() -> None:
    """Also in several contexts by turns."""
    contexts = [ir.Context(), ir.Context()]
    for context in (*contexts, *contexts):
        assert alcop_mlir.register(context) is None
        with context:
            run_script(f"%g = {op('pipeline', '%f', 'stages = [3, 1]')}")
            ir.Attribute.parse("#alcop.pipeline<{shared = 3}>")


def test_registering_makes_no_context_current() -> None:
    alcop_mlir.register(ir.Context())
    assert ir.Context.current is None


def test_a_module_of_the_callers_stays_the_callers() -> None:
    """Its context need not be current, nor registered; other dialects are unchanged."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    with context:
        module = ir.Module.parse(f'{kernel()} "mine.op"() {{mine.note = 1}} : () -> ()')
    alcop_mlir.run_pipeline(module, TO_WAITS)
    assert "memref<3x64x32xf16" in str(module)
    assert '"mine.op"() {mine.note = 1 : i64}' in str(module)
    assert module.context is context or module.context == context


def test_one_function_of_a_module() -> None:
    """The pipeline may be anchored on what it is given."""
    with ir.Context():
        module = ir.Module.parse(kernel("f") + kernel("g"))
    first, second = module.body.operations
    inner = TO_WAITS.removeprefix("builtin.module(").removesuffix(")")
    alcop_mlir.run_pipeline(first, inner)
    assert "memref<3x64x32xf16" in str(first)
    assert "memref<3x64x32xf16" not in str(second)


def test_threads_come_back_when_nothing_of_ours_is_left() -> None:
    context = ir.Context()
    context.enable_multithreading(True)
    threads = context.get_num_threads()
    with context:
        module = ir.Module.parse(kernel())
    alcop_mlir.run_pipeline(module, "builtin.module(canonicalize)")
    assert context.get_num_threads() == threads
    with pytest.raises(ConfigError):
        alcop_mlir.run_pipeline(module, "builtin.module(no-such-pass)")
    assert context.get_num_threads() == threads
    alcop_mlir.run_pipeline(module, TO_WAITS)
    assert "alcop.async_copy" in str(module)
    assert context.get_num_threads() == 1


@pytest.mark.parametrize("way", ["pipeline", "script"])
def test_a_context_with_threads_does_not_deadlock(way: str) -> None:
    """With many functions, which MLIR verifies in threads if it may."""
    code = f"""
import alcop_mlir
from alcop_mlir.bindings import ir, passmanager
from scripts import kernel, op
context = ir.Context()
context.enable_multithreading(True)
functions = "".join(kernel(f"f{{n}}") for n in range(40))
if {way!r} == "script":
    alcop_mlir.register(context)
with context:
    if {way!r} == "pipeline":
        module = ir.Module.parse(functions)
        alcop_mlir.run_pipeline(module, {TO_WAITS!r})
    else:
        from scripts import SCRIPT
        call = op("pipeline", "%f", "stages = [3, 1], assume_noalias_args")
        text = SCRIPT.format(body=f"%g = {{call}}", payload=functions)
        module = ir.Module.parse(text)
        pipeline = "builtin.module(canonicalize,transform-interpreter,cse)"
        passmanager.PassManager.parse(pipeline).run(module.operation)
    assert module.operation.verify()
print(str(module).count("memref.alloc() : memref<3x64x32xf16"))
"""
    folder = str(Path(__file__).parent)
    setup = f"import sys; sys.path.insert(0, {folder!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + code],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stdout == "40\n", done.stderr
