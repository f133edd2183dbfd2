"""How large the bundle of a function of many kernels is, and what in it.

    python bench/bench_bundle_size.py --kernels 120 --no-ptxas

The function is a chain of matmuls in f16, a kernel each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.bundle import save

_SIZE = 64


def chain(kernels: int) -> str:
    """The MLIR of so many matmuls, each of what the one before has made."""
    kind = f"memref<{_SIZE}x{_SIZE}xf16>"
    lines = [f"func.func @chain(%w: {kind}, %x0: {kind}, %out: {kind}) {{"]
    lines.append("  %zero = arith.constant 0.0 : f16")
    for number in range(kernels):
        into = f"%x{number + 1}"
        if number + 1 < kernels:
            lines.append(f"  {into} = memref.alloc() : {kind}")
        else:
            into = "%out"
        lines.append(f"  linalg.fill ins(%zero : f16) outs({into} : {kind})")
        given = f"ins(%x{number}, %w : {kind}, {kind}) outs({into} : {kind})"
        lines.append(f"  linalg.matmul {given}")
    return "\n".join([*lines, "  return", "}", ""])


def main() -> int:
    """Compile, store in both forms, and print the sizes."""
    parser = argparse.ArgumentParser(description="size of a bundle of many kernels")
    parser.add_argument("--kernels", type=int, default=120)
    parser.add_argument("--no-ptxas", action="store_true")
    given = parser.parse_args()
    started = time.process_time()
    options = compiler.Options(use_ptxas=not given.no_ptxas)
    made = compiler.compile_source(inputs.read_text(chain(given.kernels)), options)
    seconds = time.process_time() - started
    with tempfile.TemporaryDirectory() as name:
        save(made, Path(name, "out"))
        sizes = {path.name: path.stat().st_size for path in Path(name, "out").iterdir()}
    found = len(made.functions[0].kernels)
    print(f"{found} kernels, compiled in {seconds:.1f} s of CPU time")
    for file, size in sorted(sizes.items()):
        print(f"  {size / 1e6:8.3f} MB  {file}")
    print(f"  {sum(sizes.values()) / 1e6:8.3f} MB  in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
