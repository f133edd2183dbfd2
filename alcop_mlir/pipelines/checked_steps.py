"""An instrument that checks pipelines after the passes that make or change them.

A file of its own, as the verifier is a fifth of what a compile would import, and
compiles do without: alcop-opt runs it after each pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from alcop_mlir.bindings import ir
from alcop_mlir.diagnostics import remark
from alcop_mlir.errors import PassError
from alcop_mlir.pipelines.instrument import Instrument, RunningStep
from alcop_mlir.verifier.check import check
from alcop_mlir.verifier.effects import Effects, changed, effects
from alcop_mlir.verifier.plans import check_plans
from alcop_mlir.verifier.promises import check_promises
from alcop_mlir.verifier.rings.check import UNKNOWN_TEXT, check_rings, in_text
from alcop_mlir.verifier.violations import Violation

# After these passes the pipelines in the IR are complete, and in scf loops.
CHECKED_AFTER = frozenset(
    "alcop-expand-pipelines alcop-place-waits alcop-make-async "
    "alcop-distribute-copies alcop-unroll-steady-state alcop-drop-last-waits".split()
)
# After these warps may have roles, or wgmma are instructions.
RINGS_AFTER = frozenset(
    "alcop-specialize-warps alcop-expand-pipelines alcop-place-waits "
    "alcop-distribute-copies alcop-lower-mma".split()
)
VERSIONS = "alcop-version-loops"
# After these the plans of loops stand in the IR, and nothing was executed of them.
PLANNED_AFTER = frozenset(["alcop-plan-pipelines", "alcop-multi-buffer"])


# These leave what kernels write to global memory as it is, where nothing races.
SAME_AFTER = frozenset(
    "alcop-raise-barriers alcop-normalize-loops alcop-separate-views "
    "alcop-separate-buffers alcop-fold-slots alcop-split-guards alcop-version-loops "
    "alcop-expand-pipelines alcop-make-async alcop-unroll-steady-state "
    "alcop-drop-last-waits".split()
)


@dataclass
class CheckPipelines(Instrument):
    """Checks that pipelines are right, after each pass that makes or changes them.

    And that passes before it leave what kernels compute as it is.
    """

    _last: tuple[str, Effects] = ("", {})  # of the last text
    _in_text: set[str] = field(default_factory=set)  # where rings were not checked

    @contextmanager
    def around(self, step: RunningStep, op: ir.Operation) -> Iterator[None]:
        """PassError at the first thing that is wrong."""
        is_same = step.name in SAME_AFTER
        before = self._effects(op) if is_same else {}
        yield
        found: list[Violation] = []
        if step.name == VERSIONS:
            found = check_promises(op)
        elif step.name in PLANNED_AFTER:
            found = check_plans(op)
        elif step.name in CHECKED_AFTER:
            found = check(op)
        if step.name in RINGS_AFTER:
            found = [*found, *check_rings(op)]
            self._say_in_text(op)
        if is_same and not found and str(op) != self._last[0]:
            found = list(changed(before, op))
        for wrong in found:
            raise PassError(wrong.op, wrong.message)

    def _say_in_text(self, op: ir.Operation) -> None:
        """Remarks at texts of PTX for which rings are not checked, once each."""
        for text in in_text(op):
            if str(text.location) not in self._in_text:
                self._in_text.add(str(text.location))
                remark(text, f"rings of mbarriers are not checked: {UNKNOWN_TEXT}")

    def _effects(self, op: ir.Operation) -> Effects:
        text = str(op)
        if text != self._last[0]:
            self._last = text, effects(op)
        return self._last[1]
