"""Reads PTX: its text, its instructions, and where control flows."""
