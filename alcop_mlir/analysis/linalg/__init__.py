"""What linalg ops compute, and which of them can be fused.

Which ops are contractions, with which operand transforms and accumulator
initialisation; which element-wise ops run in their kernels; which ops are loop nests
for the SIMT fallback. All ask `view`, which reads operands, loops and indexing maps of
an op. Builds on `analysis.ir` and on the expressions of `reference`.
"""
