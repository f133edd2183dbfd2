"""Offsets of intermediate buffers in the workspace, and launches that use them."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest
from bundles import bundle, chain, pointers
from fake_cupy import FakeCupy, GpuArray
from fake_emulator import FakeEmulator
from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel, unguarded
from alcop_mlir.polynomials import constant, size
from alcop_mlir.runtime.launch import Program
from alcop_mlir.runtime.workspace import ALIGNMENT, ByteRange, Workspace, plan


def function(*arrays: tuple[int, list[int]]) -> Function:
    """One that uses buffers of that many bytes in the kernels of these numbers."""
    last = max((n for _, users in arrays for n in users), default=-1)
    used = [
        pointers(*(f"x{i}" for i, (_, users) in enumerate(arrays) if n in users))
        for n in range(last + 1)
    ]
    launches = [
        unguarded(Kernel(f"k{n}", "f", taken, (1, 1, 1), (32, 1, 1), 0))
        for n, taken in enumerate(used)
    ]
    intermediates = [
        Intermediate(f"x{i}", "i8", (n,)) for i, (n, _) in enumerate(arrays)
    ]
    return Function("f", (), tuple(launches), intermediates=tuple(intermediates))


def planned(function: Function, sizes: dict[str, int]) -> Workspace:
    """The workspace of a call that runs all kernels of the function."""
    return plan(function.intermediates, function.kernels, sizes)


def test_buffers_that_are_live_together_do_not_overlap() -> None:
    """At multiples of 256 bytes, the larger one first."""
    found = planned(function((300, [0, 1]), (1000, [0, 2])), {})
    assert found.ranges == {
        "x1": ByteRange(0, 1000, 0, 2),
        "x0": ByteRange(1024, 1324, 0, 1),
    }
    assert found.bytes == 1324


def test_sizes_may_be_computed() -> None:
    """And are not negative."""
    less = size("N") - constant(3)
    buffer = Intermediate("x0", "i8", (less, 2))
    kernel = Kernel("k", "f", pointers("x0"), (1, 1, 1), (32, 1, 1), 0)
    assert plan([buffer], [kernel], {"N": 5}).bytes == 4
    assert plan([buffer], [], {"N": 1}).bytes == 0
    with pytest.raises(LaunchError, match="N - 3 is -2, expected at least 0"):
        plan([buffer], [kernel], {"N": 1})


def test_buffers_that_are_not_live_together_share_bytes() -> None:
    """A chain needs room for its two largest neighbours."""
    found = planned(function((512, [0, 1]), (512, [1, 2]), (512, [2, 3])), {})
    assert found.ranges["x0"].offset == found.ranges["x2"].offset
    assert found.bytes == 1024


def test_a_buffer_fills_a_gap() -> None:
    """The first that is large enough."""
    found = planned(function((4096, [0]), (2048, [0, 1]), (1024, [1])), {})
    assert found.ranges["x1"].offset == 4096
    assert found.ranges["x2"].offset == 0
    assert found.bytes == 4096 + 2048


def test_a_buffer_that_no_kernel_uses_takes_no_memory() -> None:
    """Fusion may leave one."""
    found = planned(function((512, [0]), (4096, [])), {})
    assert found.bytes == 512
    assert list(found.ranges) == ["x0"]


def test_nothing_to_place() -> None:
    assert planned(function(), {}).bytes == 0


def test_sizes_are_those_of_the_call() -> None:
    """Bits are stored as bytes, sizes multiply."""
    found = planned(chain("M"), {"M": 100})
    assert {name: part.end - part.offset for name, part in found.ranges.items()} == {
        "x": 3200,
        "y": 800,
    }
    assert planned(chain("M"), {"M": 0}).bytes == 0


USERS = st.lists(st.integers(0, 6), min_size=1, max_size=4)


@given(st.lists(st.tuples(st.integers(0, 2000), USERS), max_size=8))
def test_no_plan_lets_buffers_overlap(arrays: list[tuple[int, list[int]]]) -> None:
    """And no workspace is larger than all buffers side by side."""
    found = planned(function(*arrays), {})
    for one, other in itertools.combinations(found.ranges.values(), 2):
        together = one.first <= other.last and other.first <= one.last
        apart = one.end <= other.offset or other.end <= one.offset
        assert apart or not together
    assert all(part.offset % ALIGNMENT == 0 for part in found.ranges.values())
    assert found.bytes <= sum(-(-n // ALIGNMENT) * ALIGNMENT for n, _ in arrays)


def test_the_emulator_is_given_unwritten_memory(emulator: FakeEmulator) -> None:
    """NaN where no kernel has written yet; the same memory for both users."""
    Program(bundle(chain()))(np.zeros((4, 8), "f4"), np.zeros((4, 8), "f4"))
    arguments = [call[4] for call in emulator.calls]
    x, y = arguments[0][1], arguments[1][1]
    assert arguments[1][0] is x
    assert arguments[2][0] is y
    assert np.isnan(x.view(np.float32)).all()
    assert x.size == 128
    assert (y == 0xFF).all()
    assert x.ctypes.data % ALIGNMENT == y.ctypes.data % ALIGNMENT == 0


def test_reused_memory_is_marked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contents of an earlier buffer must not look like a result."""
    seen: list[int] = []

    class Writing(FakeEmulator):
        def emulate(self, *given: Any, **options: Any) -> Any:
            for array in given[4]:
                seen.append(int(array[0]))
                array.fill(1)
            return super().emulate(*given, **options)

    fake = Writing()
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    Program(bundle(function((512, [0]), (512, [1]))))()
    assert seen == [0xFF, 0xFF]


def test_cuda_takes_one_block_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the stream of the call, so that the next call may have it."""
    fake = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    program = Program(bundle(chain("M")))
    for rows in (100, 100, 3):
        arrays = [GpuArray(np.zeros((rows, 8), "f4")) for _ in range(2)]
        program(*arrays, stream=11)
    assert [block.size for block in fake.allocated] == [3200 + 128 + 800] * 2 + [280]
    block = fake.allocated[0]
    assert [entered.ptr for entered in block.inside if hasattr(entered, "ptr")] == [11]
    x, y = fake.launches[1].arguments
    assert (int(x), int(y)) == (block.ptr, block.ptr + 3328)
    assert [call.grid[0] for call in fake.launches[::3]] == [4, 4, 1]


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, before anything runs."""
    fake = FakeCupy()
    fake.free_bytes = 100
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(LaunchError, match="no 288 bytes left for intermediate buffers"):
        Program(bundle(chain()))(*(GpuArray(np.zeros((4, 8), "f4")) for _ in range(2)))
    assert fake.launches == []
