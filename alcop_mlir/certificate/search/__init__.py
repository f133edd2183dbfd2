"""Answers to what a check asks: proofs from facts, what turns of loops add and leave,
columns of windows. The checker is run to find out what is asked; nothing here is of the
prover.
"""
