"""What a kernel's argument is called: the array of a pointer, or the size."""

from __future__ import annotations

from alcop_mlir.manifest.kernels import Argument, SizeValue


def name_of(argument: Argument) -> str:
    return str(argument.size) if isinstance(argument, SizeValue) else argument.array
