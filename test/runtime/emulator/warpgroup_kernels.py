"""wgmma in a kernel of its own, and its fragments by element, from the PTX ISA.

Operands are packed as a tensor map with that swizzle writes them: rows of 16, 32, 64 or
128 bytes, in which chunks of 16 bytes change places by the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_text import launch, module

from alcop_mlir.runtime.emulator import Result

SHARED = 0x400  # where the emulator's shared memory begins
ATOM = {"none": 16, "32": 32, "64": 64, "128": 128}  # bytes of a row of the swizzle
MODES = {"none": 0, "128": 1, "64": 2, "32": 3}


@dataclass(frozen=True)
class Packed:
    """An operand as bytes from `start` on, and its descriptor."""

    data: np.ndarray
    descriptor: int


def descriptor(
    start: int, leading: int, stride: int, swizzle: str, base: int = 0
) -> int:
    """PTX ISA, "Matrix Descriptor Format"; `start` in shared memory, all in bytes.

    base: which 128 bytes of the 1024 of a pattern its first ones lie in
    """
    low = ((start + SHARED) & 0x3FFFF) >> 4
    middle = (leading & 0x3FFFF) >> 4 << 16
    high = (stride & 0x3FFFF) >> 4 << 32 | base << 49 | MODES[swizzle] << 62
    return low | middle | high


def place(row: int, byte: int, swizzle: str) -> int:
    """Where a tensor map puts a byte of a row, in a tile that begins at 1024 n.

    CUDA driver API, CUtensorMapSwizzle: the chunk's number is turned over by the row,
    eight rows of 128 bytes, or rows that fill as many bytes.
    """
    width = ATOM[swizzle]
    at = row * width + byte
    line, chunk = divmod(at, 128)
    chunk, rest = divmod(chunk, 16)
    return line * 128 + (chunk ^ (line % 8 % (width // 16))) * 16 + rest


def pack_k_major(rows: np.ndarray, start: int, swizzle: str, step: int = 0) -> Packed:
    """Rows of 32 bytes (extent, 32), which lie at byte 32 `step` of longer ones."""
    extent = len(rows)
    if swizzle == "none":  # cores of 8 rows and 16 bytes, in an order of their own
        leading, stride = 128 * (extent // 8) + 256, 128
        data = np.zeros(2 * leading, np.uint8)
        for row in range(extent):
            for half in range(2):
                at = half * leading + row // 8 * stride + row % 8 * 16
                data[at : at + 16] = rows[row, 16 * half : 16 * half + 16]
        return Packed(data, descriptor(start, leading, stride, swizzle))
    width = ATOM[swizzle]
    first = 32 * step % width
    data = np.full(extent * width, 0x55, np.uint8)
    for row in range(extent):
        for byte in range(32):
            data[place(row, first + byte, swizzle)] = rows[row, byte]
    # The leading dimension is not used: what is there must not matter.
    return Packed(data, descriptor(start + first, 48, 8 * width, swizzle))


def pack_mn_major(columns: np.ndarray, start: int, swizzle: str) -> Packed:
    """(16, extent) of 16-bit elements, 16 rows along K."""
    extent = columns.shape[1]
    raw = np.ascontiguousarray(columns).view(np.uint8).reshape(16, 2 * extent)
    width = ATOM[swizzle]
    parts = -(-2 * extent // width)  # tiles of `width` bytes along M or N
    if swizzle == "none":  # k-halves far from each other, tiles near
        down, along = 128 * parts + 384, 128
        data = np.zeros(2 * down, np.uint8)
    else:
        down, along = 8 * width, 16 * width
        data = np.zeros(parts * along, np.uint8)
    for k in range(16):
        for byte in range(2 * extent):
            part, inside = divmod(byte, width)
            if swizzle == "none":
                at = k // 8 * down + part * along + k % 8 * 16 + inside
            else:
                at = part * along + place(k, inside, swizzle)
            data[at] = raw[k, byte]
    leading, stride = (down, along) if swizzle == "none" else (along, down)
    return Packed(data, descriptor(start, leading, stride, swizzle))


def pack_apart(
    columns: np.ndarray, start: int, gaps: tuple[int, int], base: int
) -> Packed:
    """As `pack_mn_major` with the swizzle of 128 bytes, with gaps between patterns.

    columns: (16, extent), of 16-bit elements; gaps: in patterns, between those along K
    and behind each pair of these; base: how many 128 bytes behind 1024 n all begins
    """
    down = 1024 * (1 + gaps[0])
    along = 2 * down + 1024 * gaps[1]
    raw = np.ascontiguousarray(columns).view(np.uint8).reshape(16, -1)
    data = np.full(128 * base + along * (raw.shape[1] // 128), 0x55, np.uint8)
    for k in range(16):
        for byte in range(raw.shape[1]):
            part, inside = divmod(byte, 128)
            at = part * along + k // 8 * down + place(k % 8, inside, "128")
            data[128 * base + at] = raw[k, byte]
    begin = start + 128 * base
    return Packed(data, descriptor(begin, along, down, "128", base))


def accumulators(d: np.ndarray, per_register: int) -> np.ndarray:
    """Matrix (64, n) to what each thread holds, (128, registers of elements)."""
    n = d.shape[1]
    out = np.zeros((128, n // 2), d.dtype)
    for thread in range(128):
        for i in range(n // 2):
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
            out[thread, i] = d[row, i // 4 * 8 + thread % 4 * 2 + i % 2]
    return out.reshape(128, -1, per_register)


def fragment(a: np.ndarray, per: int) -> np.ndarray:
    """A (64, k) to what each thread holds, (128, 4, per) for `per` in a register."""
    out = np.zeros((128, 4, per), a.dtype)
    for thread in range(128):
        for q in range(4):
            for j in range(per):
                row = thread // 32 * 16 + thread % 32 // 4 + 8 * (q % 2)
                column = q // 2 * 4 * per + thread % 4 * per + j
                out[thread, q, j] = a[row, column]
    return out


BODY = """
    .reg .b32 %t<8>, %a<4>, %d<128>;
    .reg .b64 %g<12>, %x, %y;
    .reg .pred %p<4>;
    .shared .align 1024 .b8 tile[{bytes}];
    mov.u32 %t0, %tid.x;
    ld.param.u64 %g0, [p0];
    ld.param.u64 %g1, [p1];
    ld.param.u64 %g2, [p2];
    mov.u32 %t1, tile;
    shl.b32 %t2, %t0, 4;
    add.u32 %t1, %t1, %t2;
    cvt.u64.u32 %g3, %t2;
    add.u64 %g3, %g0, %g3;
    mov.u32 %t3, 0;
COPY:
    ld.global.v4.b32 {{%t4, %t5, %t6, %t7}}, [%g3];
    st.shared.v4.b32 [%t1], {{%t4, %t5, %t6, %t7}};
    add.u32 %t1, %t1, 2048;
    add.u64 %g3, %g3, 2048;
    add.u32 %t3, %t3, 2048;
    setp.lt.u32 %p1, %t3, {bytes};
    @%p1 bra COPY;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mul.wide.u32 %g4, %t0, 16;
    add.u64 %g4, %g2, %g4;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%g4];
    mul.wide.u32 %g5, %t0, {stride};
    add.u64 %g5, %g1, %g5;
{load}
{code}
{store}
    ret;
"""


def kernel(code: str, registers: int, size: int) -> str:
    """A warpgroup loads `size` bytes of shared memory, A and D; runs; stores D."""
    load = [f"    ld.global.b32 %d{i}, [%g5+{4 * i}];" for i in range(registers)]
    store = [f"    st.global.b32 [%g5+{4 * i}], %d{i};" for i in range(registers)]
    body = BODY.format(
        bytes=size,
        stride=4 * registers,
        load="\n".join(load),
        store="\n".join(store),
        code=code,
    )
    return module(body, ["u64"] * 3, target="sm_90a", version="8.6")


def vector(name: str, count: int) -> str:
    return f"{{{', '.join(f'%{name}{i}' for i in range(count))}}}"


def run(
    code: str,
    memory: np.ndarray,
    d: np.ndarray,
    a: np.ndarray | None = None,
    **options: Any,
) -> tuple[np.ndarray, Result]:
    """D of each thread afterwards; d, a: uint32 (128, registers)."""
    size = -(-memory.size // 2048) * 2048
    image = np.zeros(size, np.uint8)
    image[: memory.size] = memory
    out = d.copy()
    a = np.zeros((128, 4), np.uint32) if a is None else a
    text = kernel(code, d.shape[1], size)
    result = launch(text, "kernel", (1,), (128,), [image, out, a], **options)
    return out, result


def together(parts: Sequence[Packed], starts: Sequence[int]) -> np.ndarray:
    """Shared memory with operands at these bytes."""
    size = max(s + p.data.size for p, s in zip(parts, starts, strict=True))
    out = np.zeros(size, np.uint8)
    for part, start in zip(parts, starts, strict=True):
        out[start : start + part.data.size] = part.data
    return out
