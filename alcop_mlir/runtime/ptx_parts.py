"""A `gpu.module` of many kernels in parts, and the PTX of the parts as one text.

LLVM takes longer for each kernel where there are many in a module. The joined text is
the one that the whole module gives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from alcop_mlir.bindings import ir

_KERNELS = 10  # of a part
# LLVM numbers labels and local memory by the function's place in the module.
_NUMBERED = re.compile(r"(\$L__BB|__local_depot)(\d+)")
_FUNCTION = "\t// .globl\t"
_DECLARATION = ".extern .shared "
_SHARED = 3  # NVPTX address space


def split(module: ir.Operation) -> list[ir.Operation]:
    """Modules of a few kernels each; `module` itself if the kernels share anything.

    They may share declarations, such as the dynamic shared memory.
    """
    ops = [op.operation for op in module.regions[0].blocks[0].operations]
    kernels = [op for op in ops if "nvvm.kernel" in op.attributes]
    others = [op for op in ops if "nvvm.kernel" not in op.attributes]
    if len(kernels) <= _KERNELS or not all(map(_is_external, others)):
        return [module]
    parts: list[ir.Operation] = []
    for start in range(0, len(kernels), _KERNELS):
        with module.location:
            part = ir.Operation.parse("gpu.module @part {}")
        for op in [*others, *kernels[start : start + _KERNELS]]:
            part.regions[0].blocks[0].append(op.clone(ip=False))
        parts.append(part)
    return parts


def join(texts: Sequence[str]) -> str:
    """One text of the PTX of parts."""
    whole = texts[0]
    for number, text in enumerate(texts[1:], 1):
        numbered = _NUMBERED.sub(
            lambda match, before=number * _KERNELS: (
                f"{match[1]}{int(match[2]) + before}"
            ),
            text[text.index(_FUNCTION) :],
        )
        head, found, rest = numbered.partition("\n.visible ")
        lines = head.splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(_DECLARATION)]
        whole += "".join(kept).rstrip("\n") + found + rest
    return whole


def _is_external(op: ir.Operation) -> bool:
    """Whether it is shared memory that the launch sizes."""
    return (
        op.name == "llvm.mlir.global"
        and str(op.attributes["linkage"]) == "#llvm.linkage<external>"
        and op.attributes["addr_space"].value == _SHARED
    )
