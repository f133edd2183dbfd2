"""From a module to a bundle: inputs, the pass pipeline, descriptions of functions.

Importing this package imports nothing.
"""
