"""Modules of dialects that MLIR loads in place of its own, see `bindings`."""
