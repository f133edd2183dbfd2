"""Passes over programs on tensors, before bufferization."""
