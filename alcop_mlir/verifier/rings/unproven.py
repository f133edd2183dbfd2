"""What the check of rings does not understand."""

from __future__ import annotations

from typing import Any


class Unproven(Exception):
    """Nothing is shown of a kernel, because of an op."""

    def __init__(self, op: Any, why: str):
        super().__init__(why)
        self.op = op
