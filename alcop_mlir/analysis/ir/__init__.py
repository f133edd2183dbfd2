"""General questions about IR: loops, memrefs, slices, alignment, code motion, kernels.

The bottom room of analysis: it builds on the bindings and `target` only. `walk` finds
ops, and `rejected` has the answer of all analyses about an unsupported op.
"""
