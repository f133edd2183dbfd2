"""Pipelines of passes: their text form, the named ones, and how they are run.

`registry` lists our passes and `upstream` finds MLIR's; `named` has alcop-compile, the
whole way from linalg to kernels; `pipeline_text` parses, `driver` checks and builds,
`running` runs; `instrument` prints IR, measures time and checks pipelined loops.
"""
