"""A PTX emulator for CPUs that finds the races of asynchronous-copy kernels.

Runs PTX of Ampere's instruction set (`cp.async`, `ldmatrix`, `mma.sync`, ...) from any
compiler on NumPy arrays and reports data races, copies used before they have landed,
and faulty accesses. Needs NumPy only. See `docs/emulator.md`.
"""

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.api import Result, emulate
from alcop_mlir.runtime.emulator.counters import Counters
from alcop_mlir.runtime.emulator.parser import parse_ptx
from alcop_mlir.runtime.emulator.reports import Hazard
from alcop_mlir.runtime.emulator.trace import TraceRequest

__all__ = [
    "Counters",
    "EmulationError",
    "Hazard",
    "Result",
    "TraceRequest",
    "emulate",
    "parse_ptx",
]
