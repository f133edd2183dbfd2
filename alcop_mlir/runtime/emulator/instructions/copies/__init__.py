"""Asynchronous copies and stores: in flight from their issue to a wait.

From global to shared memory by threads, by the copy engine in all directions, and to
other blocks of a cluster.
"""
