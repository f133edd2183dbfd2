"""Reads the steps of a reference from a function of linalg ops.

Answers what each argument and result is computed from, on memrefs or tensors. Builds on
`reference`, `analysis.ir` and `analysis.linalg`.
"""
