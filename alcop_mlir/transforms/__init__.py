"""The passes, in rooms by stage of a program's way from linalg to the nvvm dialect.

`linalg`: from a program as given to contractions with a schedule. `tiling`: to
`gpu.launch`es of tile code and of SIMT fallbacks. `pipelining`: copies run iterations
ahead of their uses. `tensor_cores`: tile code to code of threads and lanes. `kernels`:
to `gpu.module`s in the llvm and nvvm dialects. `pipelines.registry` lists all passes.
"""
