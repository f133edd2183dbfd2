"""What host functions do: which kernels they launch, and with which arguments.

What a `gpu.launch` needs to become a kernel, and a host function as data that can be
stored. Builds on `analysis.ir`, `analysis.layout` and `polynomials`.
"""
