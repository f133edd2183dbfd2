"""What the verifier finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Violation:
    """What is wrong, diagnosed at `op`."""

    op: Any
    message: str
