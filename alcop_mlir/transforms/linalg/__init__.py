"""Passes on linalg ops, from a program as given to contractions that are marked."""
