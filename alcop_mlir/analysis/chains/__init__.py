"""Chains of two contractions with row reductions between them, on tensors."""
