"""PTX text as data: types, operands, instructions, kernels, and the parser.

Nothing here runs anything. The rows of its scalar types name the arithmetic of those
that NumPy has not.
"""
