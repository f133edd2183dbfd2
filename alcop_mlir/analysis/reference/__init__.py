"""Reads the steps of a reference from a function, on memrefs or tensors."""
