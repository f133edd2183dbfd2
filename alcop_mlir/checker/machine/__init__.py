"""Executes instructions in all threads at once: registers, cells of shared memory."""
