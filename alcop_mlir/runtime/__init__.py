"""Bundles of compiled kernels, and running them on a GPU or on the emulator.

`manifest` and `bundle` describe and store kernels, `launch` runs them, `emulator`
executes PTX, `checking` compares results with the reference, `ptx` generates code.
Builds on NumPy and `alcop_mlir.reference`; only `ptx` needs MLIR, and only launches on
a GPU need CuPy. Importing this package imports nothing.
"""
