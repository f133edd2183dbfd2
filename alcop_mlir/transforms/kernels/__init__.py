"""Passes that make kernels of `gpu.launch`es, and lower them: the last ones."""
