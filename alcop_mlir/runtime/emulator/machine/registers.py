"""Registers: arrays that broadcast to (blocks, warps, 32), by number of their slot.

A value is never changed in place: it may be held by several registers, and by the
accumulators that `instructions.matrix_multiply` remembers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Registers = list[Array]
Read = Callable[[Registers], Array]


class RegisterTable:
    """The slots of a kernel's registers, which grow as code is translated.

    `slots`: name -> slot; `initial`: the value of each slot at the start; `specials`:
    the slots of special registers, which each cohort fills for itself.
    """

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.initial: Registers = []
        self.specials: dict[str, int] = {}

    def add(self, name: str, value: Array) -> int:
        """A new slot that starts with `value`."""
        self.slots[name] = len(self.initial)
        self.initial.append(value)
        return self.slots[name]


def merge(mask: Array, new: Array, old: Array) -> Array:
    """`new` where the mask is on, `old` elsewhere, in the type of `new`."""
    if old.dtype is not new.dtype:
        old = old.view(new.dtype)
    return np.where(mask, new, old)
