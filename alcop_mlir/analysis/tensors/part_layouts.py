"""Where the parts of a block of columns lie: as halves, or as pairs of neighbours.

    halves: block * P + part * L + column   pairs: block * P + column * 2 + part

An op whose loops are blocks, parts and columns reads one part by number, or that of its
own iteration. The pitch P is 2 * L, or more where blocks have columns between them.
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from alcop_mlir.analysis.tensors.linear_indices import Linear
from alcop_mlir.frozen import frozen

_OTHER = -1  # what is no part


@frozen
class PartLayout:
    """Which loops may be those of a rotation, and where parts of a block may lie."""

    extents: Mapping[int, int]
    block: int | None
    part: int
    column: int
    together: bool

    @property
    def step(self) -> int:
        """Columns of a block."""
        return self.extents[self.part] * self.extents[self.column]

    def pitch(self, lasts: Mapping[int, Linear]) -> int:
        """Columns from where a block begins to the next one; a block's where it is one.

        0 where blocks overlap.
        """
        if self.block is None:
            return self.step
        found = {dict(one.terms).get(self.block, 0) for one in lasts.values()}
        return min(found) if len(found) == 1 and min(found) >= self.step else 0

    def reads(self, lasts: Mapping[int, Linear]) -> dict[int, int | None] | None:
        """Which part each input reads, or that of its iteration; None if not so."""
        pitch = self.pitch(lasts)
        found = {number: self._part(one, pitch) for number, one in lasts.items()}
        parts = {one for one in found.values() if one is not None}
        blocks = {one.offset // self.step for one in lasts.values()}
        if _OTHER in parts or len(parts) < 2 or len(blocks) > 1:
            return None
        return found

    def _part(self, at: Linear, pitch: int) -> int | None:
        """The part that is read there, None for that of the iteration."""
        length, parts = self.extents[self.column], self.extents[self.part]
        steps = (parts, 1) if self.together else (1, length)
        terms = dict(at.terms)
        own = terms.pop(self.part, None)
        wanted = {self.column: steps[0]}
        if self.block is not None:
            wanted[self.block] = pitch
        part, rest = divmod(at.offset % self.step, steps[1])
        if terms != wanted or rest or part >= parts or own not in (None, steps[1]):
            return _OTHER
        if own is None:
            return part
        return _OTHER if part else None
