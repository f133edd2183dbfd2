"""Passes that make `gpu.launch`es of linalg ops, after contractions have a schedule.

split-k divides K among blocks; tile-to-blocks tiles contractions to thread blocks,
warps and K steps; launch-loops makes SIMT fallbacks of all other ops; sink-loads moves
host loads into the kernels. The builders `tile_*`, `raster` and `vector_code` build
tile code, `thread_points`, `size_checks` and `warp_reductions` SIMT fallbacks. What
they build is pipelined next (`transforms.pipelining`).
"""
