"""Those who watch a run without changing it: counters and the timeline of a block.

They follow the cohorts by the protocols of `machine.cohort`.
"""
