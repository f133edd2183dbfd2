"""Whether pipelined programs synchronise their slots correctly.

Runs kernels on a model of their slots, commit groups and barriers. Builds on the
bindings only, and shares no code with the passes that it checks.
"""
