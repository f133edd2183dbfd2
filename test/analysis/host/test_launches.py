"""analysis/host/launches.py: what a kernel needs from its host; its shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from alcop_mlir import resources
from alcop_mlir.analysis.host import launches
from alcop_mlir.analysis.host.launches import KernelLaunch
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

LAUNCH = """
func.func @f(%a: memref<64xf16>, %b: memref<64xf16>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  {host}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {{
    {body}
    gpu.terminator
  }}
  return
}}
"""
SHARED = "#gpu.address_space<workgroup>"
TILES = st.sampled_from([16, 32, 64, 128, 256])


@contextmanager
def the_launch(body: str, host: str = "") -> Iterator[KernelLaunch]:
    with make_context(allow_unregistered=True), ir.Location.unknown():
        module = ir.Module.parse(LAUNCH.format(body=body, host=host))
        (func,) = module.body.operations
        found = [
            op.operation
            for op in func.regions[0].blocks[0].operations
            if op.operation.name == "gpu.launch"
        ]
        read = launches.read(found[0])
        assert isinstance(read, KernelLaunch)
        yield read


@given(TILES, TILES, TILES, st.integers(1, 8))
def test_layout_counts_what_resources_count(m: int, n: int, k: int, slots: int) -> None:
    """For the buffers that tiling and multi-buffering make of a schedule."""
    assume(m * n <= 8192)  # 32 warps
    schedule = Schedule((m, n, k), (16, 16), (slots, 1))
    body = f"""
    %a0 = memref.alloc() : memref<{slots}x{m}x{k}xf16, {SHARED}>
    %b0 = memref.alloc() : memref<{slots}x{k}x{n}xf16, {SHARED}>"""
    with the_launch(body) as launch:
        assert launch.shared_bytes == resources.shared_bytes(schedule)
        assert [buffer.offset for buffer in launch.buffers] == [0, slots * m * k * 2]


def test_layout_fits_what_resources_let_pass() -> None:
    """The limit is the same number on both sides."""
    target = find_target("sm_80")
    schedule = Schedule((128, 128, 64), (64, 64), (5, 1))
    resources.cost(schedule, target)
    with pytest.raises(ConfigError):
        resources.cost(Schedule((128, 128, 64), (64, 64), (6, 1)), target)
    tile = f"memref<5x128x64xf16, {SHARED}>"
    body = f"%a0 = memref.alloc() : {tile}\n%b0 = memref.alloc() : {tile}"
    with the_launch(body) as launch:
        assert launch.shared_bytes == resources.shared_bytes(schedule) == 163840


@pytest.mark.parametrize(
    ("buffers", "offsets", "total"),
    [
        ([], [], 0),
        (["3x33xf16", "64xf32"], [0, 256], 512),
        (["1xi1", "1xi8", "1xindex"], [0, 128, 256], 384),
        (["2xvector<8xf16>", "1xf64"], [0, 128], 256),
    ],
)
def test_layout(buffers: list[str], offsets: list[int], total: int) -> None:
    lines = [
        f"%s{number} = memref.alloc() : memref<{kind}, {SHARED}>"
        for number, kind in enumerate(buffers)
    ]
    with the_launch("\n".join(lines)) as launch:
        assert [buffer.offset for buffer in launch.buffers] == offsets
        assert launch.shared_bytes == total


def test_layout_keeps_a_larger_alignment() -> None:
    body = f"""
    %s0 = memref.alloc() : memref<1xi8, {SHARED}>
    %s1 = memref.alloc() {{alignment = 1024 : i64}} : memref<1xi8, {SHARED}>"""
    with the_launch(body) as launch:
        assert [buffer.offset for buffer in launch.buffers] == [0, 1024]
        assert launch.shared_bytes == 1152


def test_captures() -> None:
    """Arguments in their order, then other memrefs; scalars; pure ops in order."""
    host = """
    %temporary = memref.alloc() : memref<64xf16>
    %unused = arith.constant 7 : index
    %twice = arith.addi %n, %n : index
    %half = memref.subview %a[%twice] [32] [1]
      : memref<64xf16> to memref<32xf16, strided<[1], offset: ?>>"""
    body = """
    "test.use"(%temporary, %b, %half)
      : (memref<64xf16>, memref<64xf16>,
         memref<32xf16, strided<[1], offset: ?>>) -> ()"""
    with the_launch(body, host) as launch:
        names = [_name(value) for value in launch.memrefs]
        assert names == ["argument 0", "argument 1", "memref.alloc"]
        assert [_name(value) for value in launch.scalars] == ["argument 2"]
        assert [op.name for op in launch.sunk] == ["arith.addi", "memref.subview"]
        assert launch.block == (64, 1, 1)
        assert launch.static_grid is None


def test_sizes_are_captured_only_where_the_body_uses_them() -> None:
    with the_launch('"test.use"(%gx, %sx) : (index, index) -> ()') as launch:
        assert (launch.memrefs, launch.scalars, launch.sunk) == ((), (), ())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%v = memref.load %a[%tx] : memref<64xf16>", True),
        ("%d = memref.dim %a, %c0 : memref<64xf16>", True),
        ("memref.copy %a, %b : memref<64xf16> to memref<64xf16>", True),
        ("memref.copy %b, %a : memref<64xf16> to memref<64xf16>", False),
        ("memref.copy %a, %a : memref<64xf16> to memref<64xf16>", False),
        ('"test.use"(%a) : (memref<64xf16>) -> ()', False),
        ("%v = memref.load %view[%c0] : memref<4xf16, strided<[1]>>", True),
        ("memref.store %x, %view[%c0] : memref<4xf16, strided<[1]>>", False),
        ("memref.store %x, %a[%c0] : memref<64xf16>", False),
        (
            f"""%s = memref.alloc() : memref<64xf16, {SHARED}>
            %t = nvgpu.device_async_copy %a[%tx], %s[%tx], 8
              : memref<64xf16> to memref<64xf16, {SHARED}>""",
            True,
        ),
    ],
)
def test_is_only_read(body: str, expected: bool) -> None:
    before = """
    %x = arith.constant 0.0 : f16
    %view = memref.subview %a[0] [4] [1]
      : memref<64xf16> to memref<4xf16, strided<[1]>>
    """
    # `a` is used in every case, so it is the first memref.
    with the_launch(before + body) as launch:
        assert launches.is_only_read(launch.memrefs[0]) is expected


def _name(value: Any) -> str:
    if isinstance(value.owner, ir.Block):
        return f"argument {value.arg_number}"
    return value.owner.operation.name
