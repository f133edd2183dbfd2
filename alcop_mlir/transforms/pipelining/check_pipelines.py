"""Check that pipelined programs are right: slots, waits, barriers, groups in flight.

Before:  an expanded pipeline, wrong or right
After:   the same; or an error at each wrong op, such as "slot 1 of
         'memref<3x64xf32, 3>' is read while a copy into it is in flight: no wait covers
         its group"

`alcop_mlir.verifier.check` says what is checked, and how: by code that shares nothing
with the passes that make pipelines. With `--verify-each` it runs by itself after every
pass that changes pipelines, and passes that prepare loops are asked whether what
kernels write is what it was before: `alcop_mlir.verifier.effects`. Of a program that is
planned and not expanded it checks the plans: `alcop_mlir.verifier.plans`; of one with
two versions of a loop, that the first runs only where it may:
`alcop_mlir.verifier.promises`; of one whose warps have roles, its rings of mbarriers,
for all trip counts: `alcop_mlir.verifier.rings.check`. Where such a kernel has text of
PTX that may do anything, nothing is shown of its rings, with a remark.

Runs anywhere after alcop-version-loops, as long as there are scf loops and memrefs;
rings of mbarriers, and wgmma, until alcop-outline-kernels.
Reads `alcop.noalias`, `alcop.pipeline` and `alcop.op`; writes and erases no attributes.
"""

from __future__ import annotations

from alcop_mlir.bindings import ir
from alcop_mlir.diagnostics import remark
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.verifier.check import check
from alcop_mlir.verifier.plans import check_plans
from alcop_mlir.verifier.promises import check_promises
from alcop_mlir.verifier.rings.check import UNKNOWN_TEXT, check_rings, in_text


@frozen
class CheckPipelines(Pass):
    name = "alcop-check-pipelines"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        wrong = [
            *check_promises(op),
            *check_plans(op),
            *check(op),
            *check_rings(op),
        ]
        for text in in_text(op):
            remark(text, f"rings of mbarriers are not checked: {UNKNOWN_TEXT}")
        for violation in wrong[:-1]:
            violation.op.location.emit_error(f"{self.name}: {violation.message}")
        if wrong:
            raise PassError(wrong[-1].op, wrong[-1].message)
