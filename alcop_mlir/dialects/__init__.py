"""The dialects of this project, and conversion of Python values to attributes.

`alcop` has the attributes by which passes hand over decisions (contraction, schedule,
pipeline), the four primitives of a pipeline and the copies of tiles; `transform_ops`
has passes as ops of the transform dialect; `values` converts Python values. All passes
of `transforms` use them.
"""
