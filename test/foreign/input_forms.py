"""Passes that run before planning, on kernels in text form."""

from __future__ import annotations

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline


def prepared(text: str, passes: str) -> str:
    """The module after these passes."""
    with make_context(), ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({passes},canonicalize,cse)")
        return str(module)
