"""Passes that pipeline the copies of loops, on scf loops and memrefs.

separate-views prepares programs of others; plan-pipelines decides, multi-buffer gives
buffers a slot per stage, expand-pipelines builds prologue, steady state and tail,
place-waits their waits and barriers, unroll-steady-state makes slots constant after
`transforms.tensor_cores`; check-pipelines checks the result. They run after
`transforms.tiling`, or on any program with such loops.
"""
