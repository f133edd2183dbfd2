"""Which op of a row group makes what another one reads, and what waits for a reduction.

Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.frozen import frozen


@frozen
class Source:
    """An output of a member, by the numbers of both."""

    member: int
    output: int


@frozen
class RowSources:
    """Where the members of a group have what they read from.

    made:   of each member, by memref that it reads: the output that was written there
            last; what is read from memory has none
    levels: of each member, how many reductions, one after the other, it waits for; a
            reduction counts itself
    last:   by memref, the output that was written there last of all
    """

    made: tuple[dict[Any, Source], ...]
    levels: tuple[int, ...]
    last: dict[Any, Source]

    def of(self, member: int, operand: Operand) -> Source | None:
        """The output of the group that an operand is; None of what is in memory."""
        return self.made[member].get(operand.value)


def row_sources(members: Sequence[Member]) -> RowSources:
    """Where members, in the order of the program, have what they read from."""
    written: dict[Any, Source] = {}
    made: list[dict[Any, Source]] = []
    levels: list[int] = []
    for number, member in enumerate(members):
        found = {
            one.value: written[one.value]
            for one in member.reads
            if one.value in written
        }
        level = max((levels[one.member] for one in found.values()), default=0)
        made.append(found)
        levels.append(level + (member.combine is not None))
        for position, output in enumerate(member.nest.outputs):
            written[output.value] = Source(number, position)
    return RowSources(tuple(made), tuple(levels), written)
