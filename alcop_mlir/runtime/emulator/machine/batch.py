"""A batch: blocks of the grid that run together, with their memory and clocks."""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.loaded_kernel import LoadedKernel
from alcop_mlir.runtime.emulator.machine.memory import POISON, BlockMemory, GlobalMemory
from alcop_mlir.runtime.emulator.machine.warps import BlockSet, Dim3
from alcop_mlir.runtime.emulator.machine.watchers import GlobalWatcher, SharedWatcher

Array = np.ndarray


class Batch(BlockSet):
    """The state that the blocks `numbers` of the grid share, and that of each.

    `early`: copies land when they are issued. `shadow` and `global_shadow` check
    accesses for races; both are None where nobody looks for races.
    """

    def __init__(
        self,
        kernel: LoadedKernel,
        numbers: Array,
        grid: Dim3,
        block: Dim3,
        memory: GlobalMemory,
        early: bool,
    ):
        super().__init__(numbers, grid, block)
        self.kernel = kernel
        self.memory = memory
        self.early = early
        memory_map = kernel.memory_map
        self.shared = BlockMemory(self.blocks, memory_map.shared_size, POISON)
        self.parameters = BlockMemory(1, len(memory_map.parameter_bytes), 0)
        data = np.frombuffer(memory_map.parameter_bytes, np.uint8)
        self.parameters.data[0, : data.size] = data
        self.clocks = Clocks(self.warps)
        self.shadow: SharedWatcher | None = None
        self.global_shadow: GlobalWatcher | None = None
