"""Pipelines of passes: their text form, the named ones, and how they are run."""
