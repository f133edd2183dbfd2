"""How data lies in memory and registers.

How copies are distributed to threads and matrices to the lanes of a warp, which
workgroup buffers are swizzled, and which outputs are staged in shared memory. Builds on
`analysis.ir`.
"""
