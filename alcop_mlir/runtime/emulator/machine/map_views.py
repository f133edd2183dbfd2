"""What tensor copies may know of tensor maps that the launch itself has changed.

PTX ISA "Proxies", "fence.proxy.tensormap": a map in global memory is read through a
proxy of its own. A change is there after a release behind it, and an acquire of that
address behind the release. Both are kept as the bytes that a map had: by the launch, as
blocks acquire what others have released. Threads of a block are not told apart, nor are
scopes.
"""

from __future__ import annotations

from collections.abc import Iterable

from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW, GlobalMemory
from alcop_mlir.runtime.emulator.machine.tensor_map import SIZE

NOT_ACQUIRED = "no fence.proxy.tensormap::generic.acquire of it comes before"
NOT_RELEASED = (
    "no fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) comes "
    "between the change and the acquire"
)
STALE = "it was changed after its last acquire"


class MapViews:
    """The maps in global memory that fences, or changes, have named."""

    def __init__(self, memory: GlobalMemory):
        self.memory = memory
        self.changed: set[int] = set()
        self.released: dict[int, bytes] = {}
        # By the number of the block and the address; None: nothing was released.
        self.acquired: dict[tuple[int, int], bytes | None] = {}
        self.releases = 0

    def bytes_at(self, address: int) -> bytes:
        """Those in memory now."""
        start = address - GLOBAL_WINDOW
        return self.memory.data[start : start + SIZE].tobytes()

    def change(self, addresses: Iterable[int]) -> None:
        """A tensormap instruction has written these maps."""
        self.changed.update(addresses)

    def release(self) -> None:
        """A release fence: of all changes so far."""
        self.releases += 1
        for address in self.changed:
            self.released[address] = self.bytes_at(address)

    def publish(self, addresses: Iterable[int]) -> None:
        """A change with its release."""
        for address in addresses:
            self.changed.add(address)
            self.released[address] = self.bytes_at(address)

    def acquire(self, block: int, address: int) -> None:
        """An acquire fence of a block."""
        if address not in self.changed and self.releases:
            # Plain stores may have changed it, before any of the releases.
            self.publish([address])
        self.acquired[block, address] = self.released.get(address)

    def problem(self, block: int, address: int) -> str:
        """Why a block may not see what a changed map holds now, or ""."""
        if (block, address) not in self.acquired:
            return NOT_ACQUIRED
        seen, now = self.acquired[block, address], self.bytes_at(address)
        if seen == now:
            return ""
        return STALE if self.released.get(address) == now else NOT_RELEASED
