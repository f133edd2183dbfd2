"""The chooser that compiles ask, for schedules of contractions and tiles of chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir
from alcop_mlir.target import Target

if TYPE_CHECKING:
    from alcop_mlir.tuning.selection import Chooser


def compiler_chooser(func: ir.Operation, target: Target) -> Chooser:
    """By the user's records; warns once of what is wrong in these, at the function."""
    from alcop_mlir.tuning.selection import Chooser

    chooser = Chooser(target)
    for note in chooser.counted.notes:
        diagnostics.warn_once(func, note)
    return chooser
