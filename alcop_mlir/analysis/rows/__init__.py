"""Rows of memrefs: reductions by warps, and ops that are computed row by row."""
