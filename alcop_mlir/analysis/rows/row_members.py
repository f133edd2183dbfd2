"""An op of a row group: its loops over rows and along a row, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Loops, Operand


@dataclass(frozen=True)
class Member:
    """An op of a group with so many loops over rows.

    combine: the op that combines two terms, of a reduction; None of an element-wise op
    """

    nest: Nest
    rows: int
    combine: Any

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """The loops over rows, then the one along a row, if it has that."""
        return (*self.nest.points, *self.nest.reductions)

    @property
    def has_columns(self) -> bool:
        """Whether it looks at each element of a row."""
        return len(self.loops) > self.rows

    @property
    def column(self) -> int | None:
        """The loop along a row."""
        return self.loops[self.rows] if self.has_columns else None

    @property
    def reads(self) -> list[Operand]:
        """The memrefs that it reads."""
        outputs = self.nest.outputs
        old = [one for one in outputs if self.combine is not None or _is_kept(one)]
        return [one for one in (*self._read_inputs(), *old) if one.is_memref]

    def place(self, operand: Operand) -> Loops:
        """The loops that index an operand, by their position in `loops`."""
        where = {loop: number for number, loop in enumerate(self.loops)}
        return tuple(None if one is None else where[one] for one in operand.loops)

    def is_along_rows(self, operand: Operand) -> bool:
        """Whether neighbours of a row are neighbours along the last dimension."""
        return not any(self.column in index.loops for index in operand.indices[:-1])

    def _read_inputs(self) -> list[Operand]:
        return [one for one in self.nest.inputs if one.is_read]


def _is_kept(output: Operand) -> bool:
    return output.argument is not None and output.is_read
