"""Run limit_shared.py from Python, on the kernels next to it.

python examples/own_pass/from_python.py
"""

from __future__ import annotations

from pathlib import Path

from limit_shared import LimitShared

import alcop_mlir
from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.running import PassFailure

KERNELS = Path(__file__).with_name("kernels.mlir")


def main() -> None:
    """Once with the limit as it is, once with one that a kernel breaks."""
    alcop_mlir.register_pass(LimitShared)
    context = ir.Context()
    context.allow_unregistered_dialects = True
    alcop_mlir.register(context)
    with context:
        module = ir.Module.parseFile(str(KERNELS))
    with diagnostics.collect() as remarks:
        alcop_mlir.run_pipeline(module, "builtin.module(func.func(own-limit-shared))")
    print(*(f"{said.line}: {said.severity}: {said.message}" for said in remarks))
    print(f"kernels marked: {str(module).count('own.shared_bytes')}")
    try:
        alcop_mlir.run_pipeline(module, "builtin.module(own-limit-shared{limit=4096})")
    except PassFailure as failure:
        (said,) = failure.diagnostics
        print(f"{said.line}: {said.severity}: {said.message}")


if __name__ == "__main__":
    main()
