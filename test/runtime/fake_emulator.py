"""A stand-in for the emulator, which remembers what it was asked to run."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any


class FakeEmulator(ModuleType):
    """The module `alcop_mlir.runtime.emulator`; `calls` are the arguments, in order."""

    def __init__(self) -> None:
        super().__init__("alcop_mlir.runtime.emulator")
        self.hazards: tuple[str, ...] = ()
        self.calls: list[tuple[Any, ...]] = []

    def emulate(
        self, ptx: str, *rest: Any, dynamic_shared: int, **options: Any
    ) -> SimpleNamespace:
        """Run nothing."""
        self.calls.append((ptx, *rest, dynamic_shared))
        return SimpleNamespace(hazards=self.hazards)
