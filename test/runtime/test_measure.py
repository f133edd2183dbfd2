"""Timing: medians, and what is launched on a GPU (through a CuPy that is none)."""

from __future__ import annotations

import sys

import pytest
from bundles import arrays, bundle
from fake_cupy import FakeCupy, GpuArray
from fake_emulator import FakeEmulator

from alcop_mlir.runtime import measure
from alcop_mlir.runtime.launch import Program
from alcop_mlir.runtime.measure import Timing


def test_the_median_is_shown_with_its_spread() -> None:
    """The interquartile range; none where runs are too few to have any."""
    timing = Timing((1.0, 2.0, 2.0, 2.0, 9.0))
    assert timing.median == 2
    assert timing.spread == pytest.approx(2.0)  # from 1.5 to 5.5
    assert Timing((1.0, 2.0, 3.0)).spread == 0


def test_each_call_on_the_host_is_timed(emulator: FakeEmulator) -> None:
    """As many as asked for, on the same arrays."""
    timing = measure.time_on_host(Program(bundle()), arrays(), 3)
    assert len(timing.seconds) == len(emulator.calls) == 3
    assert all(seconds > 0 for seconds in timing.seconds)


@pytest.mark.parametrize(("repeat", "sets"), [(1, 1), (2, 2), (50, 5)])
def test_launches_take_turns_over_the_cache(
    monkeypatch: pytest.MonkeyPatch, repeat: int, sets: int
) -> None:
    """Enough sets of arrays for twice the L2 cache, warmed up, each launch timed."""
    cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(measure, "WARM_UP_SECONDS", 0.0)
    given = [GpuArray(array) for array in arrays()]
    assert sum(array.nbytes for array in given) * 5 > 2 * 40000  # the fake's cache
    timing = measure.time_on_gpu(Program(bundle()), given, repeat)
    assert timing.seconds == (1e-3,) * repeat
    assert len(cupy.launches) == measure.WARM_UP_LAUNCHES + repeat
    timed = cupy.launches[measure.WARM_UP_LAUNCHES :]
    assert len({launch.arguments for launch in timed}) == sets
    own = tuple(array.data.ptr for array in given)
    assert own not in {launch.arguments for launch in timed}
    assert cupy.synchronized == 1
