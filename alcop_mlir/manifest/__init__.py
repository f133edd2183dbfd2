"""What is known of compiled functions, as plain data without MLIR or NumPy.

`names` says what arrays are called.
"""
