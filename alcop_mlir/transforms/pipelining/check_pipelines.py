"""Check that pipelined programs are right: slots, waits, barriers, nothing left over.

Before:  an expanded pipeline, wrong or right
After:   the same; or an error at each op where something is wrong, such as "slot 1 of
         'memref<3x64xf32, 3>' is read while a copy into it is in flight: no wait covers
         its group"

What is checked, and how, says `alcop_mlir.verifier.check`: by code that shares
nothing with the passes that make pipelines. Stands anywhere after
alcop-expand-pipelines, as long as there are scf loops and memrefs. With
`--verify-each` it runs by itself after every pass that changes pipelines.

Reads, writes and erases no attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.errors import PassError
from alcop_mlir.passes.base import Pass
from alcop_mlir.verifier.check import check


@dataclass(frozen=True)
class CheckPipelines(Pass):
    name = "alcop-check-pipelines"
    anchor = "any"

    def run(self, op: Any) -> None:
        wrong = check(op)
        for violation in wrong[:-1]:
            violation.op.location.emit_error(f"{self.name}: {violation.message}")
        if wrong:
            raise PassError(wrong[-1].op, wrong[-1].message)
