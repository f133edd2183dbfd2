"""Passes that make `gpu.launch`es of linalg ops, after contractions have a schedule."""
