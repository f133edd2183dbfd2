"""The race shadow of shared memory where strong accesses and atomics take part.

PTX ISA "Memory Consistency Model", "Conflict and Data-races": two that are morally
strong, those of which each has the other one in its scope, do not race. What they order
is in `machine.releases`. Strong reads are not remembered: a weak write that comes after
one is found by the next.
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.reports import (
    READ_AFTER_WRITE,
    READ_IN_FLIGHT,
    UNINITIALISED,
)
from alcop_mlir.runtime.emulator.hazards.shared_shadow import (
    ATOMIC,
    IN_FLIGHT,
    WIDE,
    WRITTEN,
    SharedAccess,
    SharedShadow,
)
from alcop_mlir.runtime.emulator.machine.lanes import Lanes


class FlagShadow(SharedShadow):
    """Checks strong accesses too; `is_wide`: of scope .cluster or more."""

    def on_strong_read(self, lanes: Lanes, is_wide: bool) -> Array | None:
        """Checks a strong read; returns the origins as `on_read` does."""
        if not lanes.offset.size:
            return None
        access = SharedAccess(self, lanes)
        at = access.at
        state, line = self.state.take(at), self.write_line.take(at)
        writer, written = self.writer.take(at), self.written.take(at)
        flying = (state & IN_FLIGHT) != 0
        raced = self._is_unordered(access, writer, written, reads=True) & ~flying
        raced &= self._is_weak(access, state, writer, is_wide)
        self._each(READ_IN_FLIGHT, flying, line, access, writer)
        self._each(READ_AFTER_WRITE, raced, line, access, writer)
        return self._origins(access, state == 0)

    def on_strong_write(
        self, lanes: Lanes, is_wide: bool, updates: bool = False
    ) -> None:
        """Checks and records a strong write; `updates`: it reads as well."""
        if not lanes.offset.size:
            return
        access = SharedAccess(self, lanes)
        state, writer = self.state.take(access.at), self.writer.take(access.at)
        self._check_write(access, self._is_weak(access, state, writer, is_wide), None)
        if updates and not state.all():
            self._explain_read(access)
            self._each(UNINITIALISED, state == 0, None, access, access.warp)
        self._set_writer(access)
        mark = WRITTEN | ATOMIC | (WIDE if is_wide else 0)
        self.state[access.at] = (state & (0xFF ^ WIDE)) | mark

    def _is_weak(
        self, access: SharedAccess, state: Array, writer: Array, is_wide: bool
    ) -> Array:
        """Whether the last writes are not morally strong with an access."""
        weak = (state & ATOMIC) == 0
        each = self.clocks.block_warps
        if each == self.clocks.warps:
            return weak
        far = writer // each != access.warp // each
        return weak | (far & (not is_wide or (state & WIDE) == 0))
