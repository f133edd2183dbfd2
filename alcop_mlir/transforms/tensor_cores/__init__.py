"""Passes that turn tile code into code of threads and lanes, on pipelined kernels.

distribute-copies distributes the copies of tiles to threads, lower-mma distributes
vectors to the lanes of a warp, as fragments for mma.sync, swizzle-shared permutes
shared memory. The builders `fragment_*`, `staged_stores`, `pair_views` and `bounds` are
lower-mma's, `copy_offsets` those of the copies. They run after
`transforms.pipelining` has placed the waits, and before `transforms.kernels`.
"""
