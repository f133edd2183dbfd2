"""The search for schedules: which are legal, how fast each should be, which to try.

problem, space      what is computed, and the schedules that may compute it
analytical          a latency model from Target and Problem alone
simulator           a discrete-event simulation of an SM: the device `simulated`
features, learned   a model of measured / predicted time; training fits it
search, strategies  what to measure next
residuals           what measurements say of what was not measured
records             what was measured
record_book         their file, by an index of it; counted: those that count
selection           the schedule that the compiler chooses

Importing this package imports nothing.
"""
