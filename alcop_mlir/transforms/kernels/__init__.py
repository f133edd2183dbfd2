"""Passes that make kernels of `gpu.launch`es, and lower them: the last ones.

outline-kernels makes `gpu.module`s with kernels of a fixed ABI, with their shared
memory (`launch_buffers`) and constants (`constant_buffers`); lower-to-nvvm converts
them to the llvm and nvvm dialects, with bodies for math functions
(`device_functions`). PTX is made of the result by `runtime.ptx`.
"""
