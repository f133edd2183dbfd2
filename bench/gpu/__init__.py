"""The kit for a machine with a GPU: checks and measures kernels compiled beforehand.

    python -m bench.gpu bundle BUNDLE     compiles; needs the compiler, and no GPU
    python -m bench.gpu check BUNDLE      results against cuBLAS, float64, the emulator
    python -m bench.gpu bench BUNDLE      times against cuBLAS and Triton
    python -m bench.gpu collect BUNDLE    times for the learned model
    python -m bench.gpu report RECORDS    tables and plots from what bench wrote

All but the first need only Python 3.12, NumPy and CuPy: no MLIR is imported, matplotlib
and Triton are used where they are installed.
"""
