"""Bundles of compiled kernels, and running them on a GPU or on the emulator.

Only `ptx` needs MLIR, and only launches on a GPU need CuPy. Importing this package
imports nothing.
"""
