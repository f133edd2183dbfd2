"""A PTX emulator for CPUs that finds the races of asynchronous-copy kernels.

Runs PTX of Ampere's instruction set (`cp.async`, `ldmatrix`, `mma.sync`, ...) from any
compiler on NumPy arrays and reports data races, copies used before they have landed,
and faulty accesses. Needs NumPy only. See `docs/emulator.md`.
"""

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.api import Result, emulate, prepare
from alcop_mlir.runtime.emulator.hazards.reports import Hazard
from alcop_mlir.runtime.emulator.observers.counters import Counters
from alcop_mlir.runtime.emulator.observers.trace import TraceRequest
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx
from alcop_mlir.runtime.emulator.structures import Pointers, Struct
from alcop_mlir.runtime.emulator.tensor_maps import Im2colMap, TensorMap

__all__ = [
    "Counters",
    "EmulationError",
    "Hazard",
    "Im2colMap",
    "Pointers",
    "Result",
    "Struct",
    "TensorMap",
    "TraceRequest",
    "emulate",
    "parse_ptx",
    "prepare",
]
