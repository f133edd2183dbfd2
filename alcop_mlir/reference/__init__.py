"""What functions compute, as data, and its values in float64 to check results.

Steps and expressions are stored as JSON and evaluated with a bound of the kernel's
error. Nothing here needs MLIR: `analysis.reference` reads the steps from a function.
"""
