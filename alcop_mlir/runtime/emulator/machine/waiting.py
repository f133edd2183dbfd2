"""An instruction at which lanes wait until something is over."""

from __future__ import annotations

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


class Waited:
    """Decoded; one for each form derives from it.

    slot: the predicate that says whether it is over, -1 for none; may_fail: lanes may
    go on although it is not
    """

    ins: Instruction
    slot: int
    may_fail: bool

    def test(self, cohort: Cohort, mask: Mask) -> Array:
        """For which lanes it is over, a register; they have gone on."""
        raise NotImplementedError

    def cells(self, cohort: Cohort, mask: Array) -> set[int]:
        """The cells of the mbarriers that these lanes wait for."""
        raise NotImplementedError

    def describe(self, cohort: Cohort, mask: Array) -> str:
        """Who waits for what, for the message of a deadlock."""
        raise NotImplementedError
