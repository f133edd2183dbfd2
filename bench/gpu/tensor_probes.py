"""Probes of tensor copies, and of the other instructions of Hopper with few forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from alcop_mlir.target import WARP_SIZE
from bench.gpu.maps import Columns, Map
from bench.gpu.probe import Probe, Words, generator_of

_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f16": 2, "f32": 4, "tf32": 4}
_Fields = dict[str, Any]  # of a map
# Loads of boxes: where they begin, the fields of the map. Some lie outside on a side.
_TILES: dict[str, tuple[tuple[int, ...], _Fields]] = {
    "1d": ((40,), dict(dtype="u32", shape=(96,), box=(64,))),
    "2d": ((-3, 8), dict(dtype="u16", shape=(30, 40), box=(20, 24))),
    "2d:32": ((2, 0), dict(dtype="u16", shape=(40, 32), box=(32, 16), swizzle=32)),
    "2d:64": ((2, 32), dict(dtype="u16", shape=(40, 64), box=(32, 32), swizzle=64)),
    "2d:128": ((33, 0), dict(dtype="u16", shape=(40, 64), box=(32, 64), swizzle=128)),
    "2d:nan": ((28, 32), dict(dtype="f16", shape=(30, 40), box=(4, 16), nan_fill=True)),
    "2d:tf32": ((0, 0), dict(dtype="tf32", shape=(16, 16), box=(16, 16))),
    "3d": (
        (-2, -4, 4),
        dict(dtype="u32", shape=(9, 25, 12), box=(4, 24, 8), steps=(2, 3, 1)),
    ),
    "3d:16": (
        (1, 2, 0),
        dict(dtype="u16", shape=(4, 9, 8), box=(2, 8, 8), interleave=16),
    ),
    "3d:16 swizzled": (
        (1, -2, 0),
        dict(dtype="u8", shape=(4, 9, 16), box=(4, 8, 16), swizzle=128, interleave=16),
    ),
    "3d:32": (
        (1, 2, 0),
        dict(dtype="u16", shape=(4, 9, 16), box=(4, 8, 16), swizzle=32, interleave=32),
    ),
    "4d": (
        (1, -1, 2, 0),
        dict(dtype="u32", shape=(3, 4, 5, 8), box=(2, 3, 4, 8), steps=(1, 2, 1, 1)),
    ),
    "5d": (
        (0, 1, 1, -1, 2),
        dict(dtype="u32", shape=(2, 3, 4, 3, 8), box=(2, 2, 3, 2, 4)),
    ),
}
# Loads of columns of pixels: where the first one begins, the offsets, the map.
_COLUMNS: dict[str, tuple[tuple[int, ...], tuple[int, ...], _Fields]] = {
    "3d": (
        (0, -1, 16),
        (1,),
        dict(
            dtype="u16", shape=(3, 9, 32), box=Columns(16, 20, (-1,), (-1,)), swizzle=32
        ),
    ),
    "4d": (
        (0, 3, -1, 0),
        (2, 1),
        dict(
            dtype="u16",
            shape=(2, 7, 6, 64),
            box=Columns(64, 48, (-1, -1), (-1, -1)),
            swizzle=128,
        ),
    ),
    "4d:steps": (
        (0, -1, -2, 0),
        (1, 2),
        dict(
            dtype="u8",
            shape=(4, 8, 9, 48),
            box=Columns(32, 24, (-1, -2), (-1, -1)),
            steps=(1, 2, 3, 1),
        ),
    ),
    "5d:16": (
        (1, 2, -1, 3, 0),
        (0, 1, 2),
        dict(
            dtype="u16",
            shape=(3, 4, 5, 7, 8),
            box=Columns(8, 24, (0, -1, -2), (0, -1, 0)),
            interleave=16,
        ),
    ),
    "4d:32": (
        (0, 2, 1, 0),
        (0, 1),
        dict(
            dtype="u16",
            shape=(2, 4, 9, 16),
            box=Columns(16, 24, (0, -1), (0, -1)),
            swizzle=32,
            interleave=32,
        ),
    ),
    "5d": (
        (0, -1, 1, 2, 0),
        (1, 0, 1),
        dict(
            dtype="u32",
            shape=(2, 3, 4, 5, 16),
            box=Columns(16, 70, (-1, 0, -1), (0, -2, -1)),
            swizzle=64,
        ),
    ),
}
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_STORED: _Fields = dict(dtype="u32", shape=(20, 24), box=(8, 16))
_CHANGED: _Fields = dict(dtype="u16", shape=(64,), box=(64,))


def tensor_probes() -> Iterator[Probe]:
    """All of them."""
    for name, (corner, fields) in _TILES.items():
        yield _copy(f"tensor_load_{name}", corner, (), Map(0, **fields))
    for name, (corner, offsets, fields) in _COLUMNS.items():
        yield _copy(f"tensor_columns_{name}", corner, offsets, Map(0, **fields))
    fields = _TILES["2d:64"][1]
    yield _copy("tensor_multicast", (0, 32), (), Map(0, **fields))
    changed = _copy("tensor_map_changed", (-1, 3), (), Map(0, **_CHANGED), words=64)
    yield _of_hopper(changed, "hopper")
    for how in ("store_2d", *(f"reduce_{how}" for how in _REDUCTIONS)):
        yield _copy(f"tensor_{how}", (14, 8), (), Map(-1, **_STORED))
    window = Columns(16, 24, (-1, -1), (0, 0))
    columns = Map(-1, "u32", (2, 4, 5, 16), window)
    yield _copy("tensor_store_columns", (0, 2, 3, 0), (), columns)
    source = generator_of("elected").integers(0, 2**32, WARP_SIZE, np.uint32)
    for name, count, threads in (
        ("elected", WARP_SIZE, WARP_SIZE),
        ("mbarrier_bytes", WARP_SIZE, WARP_SIZE),
        ("registers", 256, 256),
    ):
        forms = ((name, "bits"),)
        words = np.resize(source, count)
        yield _of_hopper(
            Probe(name, "hopper", (words,), count, forms, threads=threads), "hopper"
        )


def _copy(
    name: str,
    corner: tuple[int, ...],
    offsets: tuple[int, ...],
    given: Map,
    words: int = 0,
) -> Probe:
    """A copy of a box, or of a column, at `corner`, in the order of NumPy."""
    moved = words or _moved(given) // 4
    array = math.prod(given.shape) * _BYTES[given.dtype] // 4
    source = _source(name, given.dtype, max(moved, array, 256))
    kind = "f16" if given.nan_fill else "bits"
    return Probe(
        name,
        "tensor",
        (source, _given(corner, offsets, moved * 4)),
        array if given.array < 0 else moved,
        ((name, kind),),
        capability=90,
        maps=(given,),
        before=0x70605040,
    )


def _of_hopper(probe: Probe, file: str) -> Probe:
    return Probe(**{**vars(probe), "file": file, "capability": 90, "only": True})


def _moved(given: Map) -> int:
    """The bytes of a copy."""
    if isinstance(given.box, Columns):
        return given.box.channels * given.box.pixels * _BYTES[given.dtype]
    steps = (*(given.steps or (1,) * len(given.shape))[:-1], 1)
    counts = [-(-n // s) for n, s in zip(given.box, steps, strict=True)]
    return math.prod(counts) * _BYTES[given.dtype]


def _source(name: str, dtype: str, words: int) -> Words:
    generator = generator_of(name)
    if dtype == "f16":
        halves = generator.integers(-9, 9, 2 * words).astype(np.float16)
        return halves.view(np.uint32)
    if dtype == "tf32":
        return generator.standard_normal(words).astype(np.float32).view(np.uint32)
    return generator.integers(0, 2**32, words, np.uint32)


def _given(corner: tuple[int, ...], offsets: tuple[int, ...], size: int) -> Words:
    """As tensor.ptx reads it: innermost first."""
    out = np.zeros(9, np.int32)
    out[: len(corner)] = corner[::-1]
    out[5 : 5 + len(offsets)] = offsets[::-1]
    out[8] = size
    if not offsets and len(corner) < 5:
        out[4] = 24  # what tensor_map_changed makes of its innermost size
    return out.view(np.uint32)
