"""The manifest of a bundle: plain data that describes its functions and kernels.

It holds everything that is needed to launch and to check, and nothing executable: the
host analysis makes it, the runtime works by it; neither MLIR nor NumPy is needed.
"""
