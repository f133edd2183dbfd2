"""What this machine can run, for lit features and for pytest's `gpu` marker."""

from __future__ import annotations

from alcop_mlir.runtime import launch


def has_gpu() -> bool:
    """Is there CuPy, and a GPU that it sees?"""
    return launch.cuda_is_available()


def has_ptxas() -> bool:
    """Is there a ptxas that the compiler would use?"""
    from alcop_mlir.runtime import ptx

    return ptx.find_ptxas() is not None
