"""Passes that run before planning, on kernels in text form."""

from __future__ import annotations

from differential import SCHEDULES, VISIBILITIES, Settings, context
from test_reported_failures import SIZES, UNPIPELINED, compiled, results

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline

MODES = [(seen, order) for order in SCHEDULES for seen in VISIBILITIES]
PIPELINED = (
    Settings((3, 1), noalias=True),
    Settings((4, 2), tail="wrap", noalias=True),
)


def prepared(text: str, passes: str) -> str:
    """The module after these passes."""
    with context(), ir.Location.unknown(), diagnostics.collect():
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({passes},canonicalize,cse)")
        return str(module)


def assert_right(text: str, passes: str, before: str = "") -> None:
    """As it was, prepared, and pipelined after that: the same bits, no hazard.

    before: what runs instead of the text as it was
    """
    base = compiled(before or text, UNPIPELINED)
    after = prepared(text, passes)
    every = [compiled(after, settings) for settings in (UNPIPELINED, *PIPELINED)]
    assert ["shared" in one.levels for one in every] == [False, True, True]
    for place, size in enumerate(SIZES):
        expected = results(base, size, MODES[place])
        for number, one in enumerate(every):
            mode = MODES[(3 * number + place) % len(MODES)]
            found = results(one, size, mode)
            assert found.tobytes() == expected.tobytes(), (number, size, mode)
