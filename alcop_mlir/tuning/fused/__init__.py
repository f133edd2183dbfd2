"""Models of kernels that are no contractions: chains of contractions, and rows."""
