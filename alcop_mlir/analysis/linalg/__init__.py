"""What linalg ops compute, and which can be fused. All ask `view` of an op."""
