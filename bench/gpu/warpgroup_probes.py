"""Probes of wgmma: what a descriptor reads, and where D and a fragment A lie.

The tile holds small whole numbers anywhere, so that what is compared is which of them
the hardware reads, whatever the descriptors mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.gpu.instruction_probes import numbers
from bench.gpu.probe import Probe, Words, generator_of

_THREADS = 128
_TILE = 8192  # words
_B = 16384  # the byte of the tile at which B begins
# Descriptors of A and B, by the kind: start, leading, stride and base offset, swizzle.
_K_MAJOR = {
    "none": (0, 2048, 256, 0, 0),
    "32": (0, 16, 256, 0, 3),
    "64": (0, 16, 512, 0, 2),
    "128": (0, 16, 1024, 0, 1),
    "128 step": (32, 16, 1024, 0, 1),
    "64 step": (32, 16, 512, 0, 2),
    "128 offset": (256, 16, 1024, 2, 1),
    "64 offset": (128, 16, 512, 1, 2),
    "128 no offset": (256, 16, 1024, 0, 1),
}
_MN_MAJOR = {
    "none": (0, 2048, 256, 0, 0),
    "32": (0, 512, 2048, 0, 3),
    "64": (0, 1024, 4096, 0, 2),
    "128": (0, 2048, 1024, 0, 1),
    "128 offset": (384, 2048, 1024, 3, 1),
}
# name: words of a lane in D, types of the tile and of D
_FORMS = {
    "wgmma_f16": (32, "f16", "f32"),
    "wgmma_f16_mn": (32, "f16", "f32"),
    "wgmma_f16_f16": (6, "f16", "f16"),
    "wgmma_f16_registers": (8, "f16", "f32"),
    "wgmma_bf16": (52, "bf16", "f32"),
    "wgmma_tf32": (16, "f32", "f32"),
    "wgmma_tf32_registers": (4, "f32", "f32"),
    "wgmma_e4m3": (20, "e4m3", "f32"),
    "wgmma_e5m2_f16": (4, "e5m2", "f16"),
    "wgmma_s8": (24, "bits", "bits"),
    "wgmma_u8_registers": (16, "bits", "bits"),
    "wgmma_b1": (12, "bits", "bits"),
}
_LAYOUTS = {"wgmma_f16": _K_MAJOR, "wgmma_f16_mn": _MN_MAJOR}


def warpgroup_probes() -> Iterator[Probe]:
    """All of them: of Hopper alone."""
    for name in _FORMS:
        for kind, fields in _LAYOUTS.get(name, {"": _K_MAJOR["128"]}).items():
            yield _probe(name, kind, fields)


def _probe(name: str, kind: str, fields: tuple[int, ...]) -> Probe:
    count, operand, result = _FORMS[name]
    full = f"{name}:{kind}" if kind else name
    generator = generator_of(full)
    words = (
        numbers(generator, operand, _TILE),
        _descriptors(*fields),
        numbers(generator, result, _THREADS * count),
    )
    forms = ((full, "bits"),)
    return Probe(
        full,
        "wgmma",
        words,
        _THREADS * count,
        forms,
        threads=_THREADS,
        capability=90,
        only=True,
    )


def _descriptors(
    start: int, leading: int, stride: int, base: int, swizzle: int
) -> Words:
    """Those of A and B, which begin at bytes `start` and `start` more than _B."""
    rest = leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | swizzle << 62
    both = [(at + start) >> 4 | rest for at in (0, _B)]
    return np.array(both, np.uint64).view(np.uint32)
