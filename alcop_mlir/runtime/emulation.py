"""Run the kernels of a program on the emulator, and keep its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alcop_mlir.errors import EmulationError
from alcop_mlir.frozen import frozen

if TYPE_CHECKING:
    from alcop_mlir.manifest.kernels import Dim3, Kernel
    from alcop_mlir.runtime.emulator import Result

_SHOWN_HAZARDS = 5


@frozen
class EmulatorOptions:
    """The options of `emulate`.

    time_limit: seconds of all launches together
    trace_folder: where each launch writes the trace of block `trace_block`, to
        `0.json`, `1.json`, ... in the order of launches
    """

    visibility: str = "late"
    schedule: str = "lockstep"
    hazards: bool = True
    instruction_limit: int | None = None
    time_limit: float | None = None
    counters: bool = False
    trace_folder: Path | None = None
    trace_block: int = 0


class Emulation:
    """Launches kernels on the emulator; `runs` holds the finished ones, in order.

    progress: is told the kernel, how many of its blocks are done, and how many it has
    """

    def __init__(
        self,
        options: EmulatorOptions | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ):
        self.options = options or EmulatorOptions()
        self._progress = progress
        self.runs: list[tuple[str, Result]] = []

    def launch(
        self, ptx: str, kernel: Kernel, grid: Dim3, arguments: Sequence[Any]
    ) -> None:
        """Run one kernel. Raises EmulationError on a fault or a hazard."""
        shared = kernel.shared_bytes
        result = self.run(ptx, kernel.name, grid, kernel.block, arguments, shared)
        if result.hazards:
            shown = [f"  {hazard}" for hazard in result.hazards[:_SHOWN_HAZARDS]]
            if len(result.hazards) > _SHOWN_HAZARDS:
                shown.append(f"  and {len(result.hazards) - _SHOWN_HAZARDS} more")
            raise EmulationError(
                f"kernel '{kernel.name}' has hazards:\n" + "\n".join(shown)
            )

    def run(
        self,
        ptx: str,
        name: str | None,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Any],
        dynamic_shared: int,
        cooperative: bool = False,
        symbols: Mapping[str, Any] | None = None,
        cluster: Dim3 | None = None,
    ) -> Result:
        """Run one kernel (None: the only one). Raises EmulationError on a fault."""
        from alcop_mlir.runtime.emulator import emulate

        options, trace = self.options, None
        shown = name or "the kernel"
        if options.trace_folder is not None:
            from alcop_mlir.runtime.emulator import TraceRequest

            path = options.trace_folder / f"{len(self.runs)}.json"
            trace = TraceRequest(path, options.trace_block)
        left = options.time_limit
        if left is not None:
            left = max(0.0, left - sum(done.seconds for _, done in self.runs))
        result = emulate(
            ptx,
            name,
            grid,
            block,
            arguments,
            dynamic_shared=dynamic_shared,
            cluster=cluster,
            cooperative=cooperative,
            symbols=symbols,
            visibility=options.visibility,
            schedule=options.schedule,
            hazards=options.hazards,
            instruction_limit=options.instruction_limit,
            time_limit=left,
            counters=options.counters,
            trace=trace,
            progress=self._progress and partial(self._progress, shown),
        )
        self.runs.append((shown, result))
        return result
