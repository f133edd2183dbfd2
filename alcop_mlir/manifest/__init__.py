"""The manifest of a bundle: plain data that describes its functions and kernels.

It holds everything that is needed to launch and to check, and nothing executable.
`names` says what arrays are called, `arrays` describes them, `kernels` how kernels are
launched, `functions` what is called, and `bundles` a stored bundle. All are frozen
dataclasses of plain fields, `ranges` has what their values may be. The host analysis
makes them, the runtime works by them; neither MLIR nor NumPy is needed.
"""
