"""What the driver takes of a tensor map, and what it refuses.

CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, with the limits
that they document. That the innermost dimension of a box in im2col mode has whole
pieces of 16 bytes is said by the PTX ISA, "Bounding Box".

Which dimensions NC/8HWC8 and NC/16HWC16 have (interleave 16 and 32) they do not say.
Here they are those of memory: a slice of channels innermost, then W, H, D, C / 8 and N
as the map lists them. That fits the formula of their strides; only whole slices are
taken as innermost dimension, of which that is sure. The same goes for im2col mode, of
which the PTX ISA ("Interleave layout") leaves out `.im2col::w` alone: slices are one of
the dimensions along which pixels move on.
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
    if layout.interleave and (why := _slice_problem(layout)):
        return why
    if layout.swizzle and row > layout.swizzle:
        return (
            f"a row of the box has {row} bytes, more than the swizzle of "
            f"{layout.swizzle}"
        )
    if layout.nan_fill and "f" not in layout.dtype:
        return f"numbers outside of an array of {layout.dtype} cannot be NaN"
    return "" if layout.window is None else _window_problem(layout, layout.window)


def _slice_problem(layout: Layout) -> str:
    """PTX ISA "Interleave layout", and the rules of cuTensorMapEncodeTiled for it."""
    name, slice_bytes = f"interleave {layout.interleave}", layout.interleave
    if not 3 <= layout.rank <= MAX_RANK:
        return f"{name} needs 3 to 5 dimensions, it has {layout.rank}"
    inner = layout.sizes[0] * layout.item
    if inner != slice_bytes or layout.box[0] != layout.sizes[0] or layout.steps[0] != 1:
        return (
            f"of {name} the innermost dimension, and that of the box, is one slice of "
            f"{slice_bytes} bytes, with the slices as a dimension of their own; it has "
            f"{inner} bytes, in the box {layout.box[0] * layout.item}"
        )
    if layout.interleave == 32:
        if layout.swizzle != 32:
            return f"{name} needs a swizzle of 32, it has {layout.swizzle}"
        odd = [n for n in (layout.address, *layout.strides) if n % 32]
        if odd:
            return f"of {name} {odd[0]}, an address or stride, is not a multiple of 32"
    return ""


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
