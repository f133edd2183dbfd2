"""What the run of a kernel may take: instructions, and seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

DEFAULT_INSTRUCTION_LIMIT = 1_000_000_000


@dataclass(frozen=True)
class Budget:
    """What the run of a kernel may take.

    instructions: of warps, for a batch of blocks
    started:      when the run did, a moment of `perf_counter`
    """

    instructions: int
    seconds: float
    started: float

    @classmethod
    def from_now(cls, instructions: int | None, seconds: float | None) -> Budget:
        """Starts now; without a limit of seconds, and one of instructions of ours."""
        most = instructions or DEFAULT_INSTRUCTION_LIMIT
        return cls(most, math.inf if seconds is None else seconds, perf_counter())

    def spent(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.started

    def check(self, taken: int, at: Instruction) -> None:
        """EmulationError where a batch has taken so many instructions, or too long."""
        if taken > self.instructions:
            raise EmulationError(
                f"the instruction limit of {self.instructions} warp instructions for a "
                f"batch of blocks is reached at PTX line {at.line}; "
                f"the kernel may not end (raise instruction_limit if it does)"
            )
        if self.spent() > self.seconds:
            raise EmulationError(
                f"the time limit of {self.seconds:.3g} seconds is reached at PTX line "
                f"{at.line}; the kernel may not end (raise time_limit if it does)"
            )
