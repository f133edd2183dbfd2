"""wgmma with A in registers as text of PTX: upstream's op takes descriptors only.

Before:  %c = alcop.warpgroup_mma %c0, %a0, %a1, %a2, %a3, %b
             {shape = [64, 8, 16], types = ["f16", "f16", "f32"], ...}
After:   %c = llvm.inline_asm "{ ... wgmma.fence.sync.aligned;
             wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3},
             {$8, $9, $10, $11}, $12, p, 1, 1, 0; }", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l"

The fence is part of the text, so that LLVM puts nothing between it and wgmma that
writes registers of A (PTX ISA, "wgmma.fence": it orders accesses of accumulators and of
A).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, llvm

_OP = "alcop.warpgroup_mma"
_TRANSPOSED = ("f16", "bf16")  # types that have a bit for B across K
_SCALED = ("f16", "bf16", "tf32", "e4m3", "e5m2")  # that have signs of A and B
_WORDS = 4


def lower_warpgroup_mma(kernels: ir.Operation) -> None:
    """Replace each `alcop.warpgroup_mma` in the kernels by its text."""
    for op in walk(kernels, _OP):
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_text(op))
        op.erase()


def _text(op: ir.Operation) -> Any:
    sums, *others = op.operands
    body = llvm.StructType(sums.type).body
    held = [llvm.extractvalue(kind, sums, [number]) for number, kind in enumerate(body)]
    letter = "f" if isinstance(body[0], ir.F32Type) else "r"
    tied = [str(number) for number in range(len(held))]
    constraints = [f"={letter}"] * len(held) + tied + ["r"] * _WORDS + ["l"]
    return llvm.inline_asm(
        sums.type,
        [*held, *others],
        _instruction(op, len(held)),
        ",".join(constraints),
        has_side_effects=True,
    )


def _instruction(op: ir.Operation, count: int) -> str:
    """With registers of D, the same again as they come, words of A, and B."""
    m, n, k = op.attributes["shape"]
    a, b, out = (kind.value for kind in op.attributes["types"])
    first = 2 * count
    signs = ["1", "1"] if a in _SCALED else []
    if a in _TRANSPOSED:
        signs.append(str(op.attributes["transpose_b"].value))
    operands = [
        _group(range(count)),
        _group(range(first, first + _WORDS)),
        f"${first + _WORDS}",
        "p",
        *signs,
    ]
    lines = [
        "{",
        ".reg .pred p;",
        f"setp.ne.b32 p, {op.attributes['adds'].value}, 0;",
        "wgmma.fence.sync.aligned;",
        f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{out}.{a}.{b} "
        f"{', '.join(operands)};",
        "}",
    ]
    return "\n".join(lines)


def _group(numbers: Sequence[int]) -> str:
    return f"{{{', '.join(f'${number}' for number in numbers)}}}"
