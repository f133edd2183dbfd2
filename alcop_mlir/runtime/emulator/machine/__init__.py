"""The state of a run: memory, registers, lanes, clocks, barriers, pending copies.

A *batch* is some blocks of the grid that run together. A *cohort* is a set of their
warps that share program counters.
"""
