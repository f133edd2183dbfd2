"""The answer of an analysis that does not support an op."""

from __future__ import annotations

from typing import Any

from alcop_mlir.frozen import frozen


@frozen
class Rejected:
    """An unsupported op, and why it is unsupported: what is given, what was expected.

    `op` is the op to blame, which may be inside the one that was asked about.
    """

    op: Any
    reason: str
