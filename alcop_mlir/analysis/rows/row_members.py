"""An op of a row group: its loops over rows and along a row, and what it reads."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Loops, Operand
from alcop_mlir.analysis.rows.combinations import Combination
from alcop_mlir.frozen import frozen


@frozen
class Member:
    """An op of a group.

    rows:    its loops over rows
    columns: its loops along a row, outer ones first; none where it makes one element
    combine: how a reduction combines two terms; None of an element-wise op
    """

    nest: Nest
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    combine: Combination | None

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """The loops over rows, then those along a row."""
        return (*self.rows, *self.columns)

    @property
    def has_columns(self) -> bool:
        """Whether it looks at each element of a row."""
        return bool(self.columns)

    @property
    def makes_rows(self) -> bool:
        """Whether its outputs have an element for each column, not one for a row."""
        return self.has_columns and self.combine is None

    @property
    def reads(self) -> list[Operand]:
        """The memrefs that it reads."""
        outputs = self.nest.outputs
        old = [one for one in outputs if self.combine is not None or _is_kept(one)]
        return [one for one in (*self._read_inputs(), *old) if one.is_memref]

    @cached_property
    def tables(self) -> tuple[Any, ...]:
        """The memrefs that its body looks up elements of."""
        return tuple(op.operands[0] for op in walk(self.nest.op, "memref.load"))

    def place(self, operand: Operand) -> Loops:
        """The loops that index an operand, by their position in `loops`."""
        where = {loop: number for number, loop in enumerate(self.loops)}
        return tuple(None if one is None else where[one] for one in operand.loops)

    def is_along_rows(self, operand: Operand) -> bool:
        """Whether an operand has an element for each column."""
        return any(set(self.columns) & set(one.loops) for one in operand.indices)

    def is_innermost(self, loop: int, operand: Operand) -> bool:
        """Whether neighbours along a loop are neighbours in memory, if it is used."""
        return not any(loop in index.loops for index in operand.indices[:-1])

    def _read_inputs(self) -> list[Operand]:
        return [one for one in self.nest.inputs if one.is_read]


def _is_kept(output: Operand) -> bool:
    return output.argument is not None and output.is_read
