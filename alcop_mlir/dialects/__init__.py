"""The dialects of this project, and conversion of Python values to attributes."""
