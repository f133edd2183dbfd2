"""alcop-version-loops: which version of a loop runs is right, whatever overlaps."""

from __future__ import annotations

import numpy as np
import pytest
import reported_kernels as reported
from differential import SCHEDULES, VISIBILITIES, Compiled, Settings
from input_forms import prepared
from test_reported_failures import compiled

from alcop_mlir.runtime.emulator import emulate

ROWS = reported.ROWS
MODES = [(seen, order) for seen in VISIBILITIES for order in SCHEDULES]
# Each iteration stores a row of C: a later one may copy it, where C is in A.
STORE = """
    memref.store %next, %C[%k, %t] : memref<256x64xf32>"""
TEXT = reported.kernel(reported.loop(reported.COPY, reported.READ + STORE)).replace(
    "memref<64x64xf32>", "memref<256x64xf32>"
)
ELEMENTS = ROWS * 64
# Elements of one allocation: where A begins, and where C begins.
PLACES = {
    "apart": (0, ELEMENTS),
    "apart, the other way": (ELEMENTS, 0),
    "the same": (0, 0),
    "a row further": (0, 64),
    "a row before": (64, 0),
    "the last element": (0, ELEMENTS - 1),
    "the first element": (ELEMENTS - 1, 0),
}


@pytest.fixture(scope="module")
def kernels() -> tuple[Compiled, Compiled]:
    """As it is, and in two versions."""
    versions = prepared(TEXT, "alcop-version-loops")
    return compiled(TEXT, Settings((1, 1))), compiled(versions, Settings((3, 2)))


@pytest.mark.parametrize("name", PLACES)
def test_versions(name: str, kernels: tuple[Compiled, Compiled]) -> None:
    base, versions = kernels
    assert base.levels == frozenset()
    assert "shared" in versions.levels
    for size, mode in zip((0, 1, 2, 5, 8, 13), MODES, strict=False):
        expected, _ = run(base, PLACES[name], size, mode)
        found, copied = run(versions, PLACES[name], size, mode)
        assert found.tobytes() == expected.tobytes(), (size, mode)
        # 64 threads copy 4 bytes each iteration, asynchronously where it is pipelined.
        assert copied == (size * 256 if name.startswith("apart") else 0)


def run(
    kernel: Compiled, places: tuple[int, int], size: int, mode: tuple[str, str]
) -> tuple[np.ndarray, int]:
    """The allocation afterwards, and the bytes that were copied asynchronously."""
    random = np.random.default_rng(0)
    memory = random.uniform(-1, 1, 2 * ELEMENTS).astype("f4")
    a, c = (memory[place : place + ELEMENTS] for place in places)
    result = emulate(
        kernel.ptx,
        None,
        (1, 1, 1),
        (reported.THREADS, 1, 1),
        [a, c, size],
        dynamic_shared=kernel.dynamic_shared,
        visibility=mode[0],
        schedule=mode[1],
        counters=True,
    )
    assert result.hazards == ()
    assert result.counters is not None
    return memory, result.counters.copy_bytes
