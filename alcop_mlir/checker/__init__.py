"""Checks certificates that `certificate` has made, and shares no code with it.

It reads the PTX again by a reader of its own, goes once from each listed state, and
looks whether what it meets is listed. There is no search in it.
"""
