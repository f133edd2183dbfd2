"""MLIR's `rewrite` module: reached unchecked."""

from typing import Any

def __getattr__(name: str) -> Any: ...
