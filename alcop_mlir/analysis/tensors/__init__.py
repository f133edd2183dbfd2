"""Questions about programs on tensors, which passes ask before bufferization."""
