"""What the driver takes of a tensor map, and what it refuses.

CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, with the limits
that they document. That the innermost dimension of a box in im2col mode has whole
pieces of 16 bytes is said by the PTX ISA, "Bounding Box".
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.machine.tensor_map import CHUNK, Layout, Window

MAX_RANK = 5
MAX_SIZE = 2**32  # elements of a dimension
MAX_STRIDE = 2**40  # bytes, exclusive
MAX_BOX = 256  # elements of a dimension of a box, channels of a pixel
MAX_STEP = 8
MAX_PIXELS = 1024
# Bits of `lower`, `upper` and of an offset, by how many of W, H and D there are: PTX
# ISA, "Im2col mode", the tables of their sizes.
CORNER_BITS = {1: 16, 2: 8, 3: 5}


def problem(layout: Layout) -> str:
    """Why the driver would not take it, or ""."""
    if layout.address % 16:
        return f"its address 0x{layout.address:x} is not a multiple of 16"
    if any(not 1 <= n <= MAX_SIZE for n in layout.sizes):
        return f"sizes {layout.sizes} are not from 1 to 2^32"
    if any(s % 16 or not 0 <= s < MAX_STRIDE for s in layout.strides):
        return f"strides {layout.strides} are not multiples of 16 below 2^40"
    if any(not 1 <= n <= MAX_BOX for n in layout.box):
        return f"the box {layout.box} is not from 1 to {MAX_BOX}"
    if any(not 1 <= n <= MAX_STEP for n in layout.steps):
        return f"element strides {layout.steps} are not from 1 to {MAX_STEP}"
    row = layout.box[0] * layout.item
    if row % CHUNK:
        return f"a row of the box has {row} bytes, no multiple of 16"
    if layout.swizzle and row > layout.swizzle:
        return (
            f"a row of the box has {row} bytes, more than the swizzle of "
            f"{layout.swizzle}"
        )
    if layout.nan_fill and "f" not in layout.dtype:
        return f"numbers outside of an array of {layout.dtype} cannot be NaN"
    return "" if layout.window is None else _window_problem(layout, layout.window)


def _window_problem(layout: Layout, window: Window) -> str:
    if not 3 <= layout.rank <= MAX_RANK:
        return f"im2col mode needs 3 to 5 dimensions, it has {layout.rank}"
    bits = CORNER_BITS[layout.rank - 2]
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for name, corner in (("lower", window.lower), ("upper", window.upper)):
        if len(corner) != layout.rank - 2:
            return (
                f"the pixels' {name} {corner} has {len(corner)} numbers, for "
                f"{layout.rank} dimensions it needs {layout.rank - 2}"
            )
        if any(not low <= n <= high for n in corner):
            return (
                f"the pixels' {name} {corner} is not from {low} to {high}, as of "
                f"{layout.rank} dimensions"
            )
    if any(last < first for first, last in layout.corners()):
        return (
            f"no pixel lies from {window.lower} to {window.upper} of "
            f"an array of {layout.sizes}"
        )
    if not 1 <= window.pixels <= MAX_PIXELS:
        return f"{window.pixels} pixels of a column are not from 1 to {MAX_PIXELS}"
    return ""
