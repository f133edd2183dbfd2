"""PTX text as data: types, operands, instructions, kernels, and the parser.

Nothing here runs anything; every other room of the emulator builds on this one.
"""
