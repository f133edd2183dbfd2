"""Compiling with the IR seen, or changed, behind one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.passes.base import Pass


@contextmanager
def ir_behind(step: type[Pass], then: Callable[[Any], None]) -> Iterator[None]:
    """While this holds, `then` gets the op that the pass has run on."""
    original = step.run

    def run(self: Any, op: ir.Operation) -> None:
        original(self, op)
        then(op)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "run", run)
        yield
