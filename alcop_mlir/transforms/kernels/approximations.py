"""Powers of two by one instruction, where the program asks for no more.

Before:  %y = math.exp2 %x fastmath<afn> : vector<2x2xf32>
After:   %y0 = llvm.inline_asm "ex2.approx.ftz.f32 $0, $1;" %x0 : f32 ; ...

Without `afn` ("approximate functions") numbers that f32 holds as subnormal ones are
right too, as `device_functions.mlir` has it: that takes a comparison and two
multiplications more. [PTX] ex2: the relative error of `.approx` is at most 2^-22; with
`.ftz` subnormal inputs and results are zeros of the same sign, so that 2^x is 0 below
x = -126.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, llvm
from alcop_mlir.passes import build

_POWER = "math.exp2"
_FLAGS = "fastmath"
_APPROXIMATE = ("afn", "fast")  # flags that allow approximations


def approximate_powers(kernels: ir.Operation) -> None:
    """Replace each power of two in f32 that may be approximated."""
    for power in walk(kernels, _POWER):
        kind = power.results[0].type
        element = getattr(kind, "element_type", kind)
        if not isinstance(element, ir.F32Type) or not _may_approximate(power):
            continue
        with power.location, ir.InsertionPoint(power):
            result = build.each_element(power.operands[0], _of)
            power.results[0].replace_all_uses_with(result)
        power.erase()


def _may_approximate(op: ir.Operation) -> bool:
    flags = str(op.attributes[_FLAGS]) if _FLAGS in op.attributes else ""
    named = flags.removeprefix("#arith.fastmath<").removesuffix(">").split(",")
    return any(flag in _APPROXIMATE for flag in named)


def _of(exponent: Any) -> Any:
    f32 = ir.F32Type.get()
    return llvm.inline_asm(f32, [exponent], "ex2.approx.ftz.f32 $0, $1;", "=f,f")
