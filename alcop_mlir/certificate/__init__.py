"""Proofs that kernels use shared memory right, at all trip counts of their loops.

`prover` reads PTX and finds a proof, or the first alarm; what it found is a
certificate, which the room `checker` checks again and shares nothing with this one.
"""
