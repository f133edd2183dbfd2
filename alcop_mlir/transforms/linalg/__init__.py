"""Passes on linalg ops, from a program as given to contractions with a schedule.

Around bufferization: fill-constants, fold-transposes, protect-arguments,
separate-results, drop-offsets. On memrefs: merge-elementwise, fuse-producers
(operand-side fusion), collapse-loops, raise-contractions, select-schedule,
fuse-elementwise (epilogue fusion). `matrices` builds the operands of a contraction as
matrices, for the tiling that follows.
"""
