"""Probes of instructions: matrices of all shapes, arithmetic, video, floats of 8 bits,
warps and blocks, calls, local memory, the device runtime.

Operands of floats are small whole numbers, which are exact in any order of additions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.target import WARP_SIZE
from bench.gpu.probe import FOLDER, Probe, Words, generator_of

_THREADS = 128
_NUMBERS = 1024
_FORM = re.compile(r"^    // ((?:\w+\.)+\w+.*)$", re.M)

# name: words of a lane in A, B, C and D, types of A and B and of C and D
_SHAPES = {
    "mma_m8n8k4_f64": ((2, 2, 4, 4), "f64", "f64"),
    "mma_m8n8k4_f16": ((2, 2, 4, 4), "f16", "f16"),
    "mma_m8n8k4_f32": ((2, 2, 8, 8), "f16", "f32"),
    "mma_m8n8k16_s8": ((1, 1, 2, 2), "bits", "bits"),
    "mma_m8n8k32_s4": ((1, 1, 2, 2), "bits", "bits"),
    "mma_m16n8k32_s4": ((2, 1, 4, 4), "bits", "bits"),
    "mma_m16n8k64_u4": ((4, 2, 4, 4), "bits", "bits"),
    "mma_m8n8k128_b1": ((1, 1, 2, 2), "bits", "bits"),
    "mma_m16n8k128_b1": ((2, 1, 4, 4), "bits", "bits"),
    "mma_m16n8k256_b1": ((4, 2, 4, 4), "bits", "bits"),
    "sparse_m16n8k16_f16": ((2, 2, 4, 4), "f16", "f32"),
    "sparse_m16n8k32_f16": ((4, 4, 4, 4), "f16", "f32"),
    "sparse_m16n8k8_tf32": ((2, 2, 4, 4), "f32", "f32"),
    "sparse_m16n8k16_tf32": ((4, 4, 4, 4), "f32", "f32"),
    "sparse_m16n8k32_s8": ((2, 2, 4, 4), "bits", "bits"),
    "sparse_m16n8k64_s8": ((4, 4, 4, 4), "bits", "bits"),
    "sparse_m16n8k64_s4": ((2, 2, 4, 4), "bits", "bits"),
    "sparse_m16n8k128_u4": ((4, 4, 4, 4), "bits", "bits"),
}
_FLOATS8 = {
    "mma_m16n8k32_e4m3": ((4, 2, 4, 4), "e4m3", "f32"),
    "mma_m16n8k32_e5m2": ((4, 2, 4, 4), "e5m2", "f32"),
    "sparse_m16n8k64_e4m3": ((4, 4, 4, 4), "e4m3", "f32"),
}
_DOUBLES = {
    "mma_m16n8k4_f64": ((4, 2, 8, 8), "f64", "f64"),
    "mma_m16n8k8_f64": ((8, 4, 8, 8), "f64", "f64"),
    "mma_m16n8k16_f64": ((16, 8, 8, 8), "f64", "f64"),
}
# name: words of the whole of A, B, C and D
_WMMA = {
    "wmma_m16n16k16_f16": ((128, 128, 128, 128), "f16", "f16"),
    "wmma_m8n32k16_f32": ((64, 256, 256, 256), "f16", "f32"),
    "wmma_m32n8k16_bf16": ((256, 64, 256, 256), "bf16", "f32"),
    "wmma_m16n16k8_tf32": ((128, 128, 256, 256), "f32", "f32"),
    "wmma_m8n8k4_f64": ((64, 64, 128, 128), "f64", "f64"),
    "wmma_m16n16k16_s8": ((64, 64, 256, 256), "bits", "bits"),
    "wmma_m8n32k16_u8": ((32, 128, 256, 256), "bits", "bits"),
    "wmma_m8n8k32_s4": ((32, 32, 64, 64), "bits", "bits"),
    "wmma_m8n8k128_b1": ((32, 32, 64, 64), "bits", "bits"),
}
# Of the quarters that metadata may name: two in order, or either half of a pair.
_PAIRS = np.array([0x4, 0x8, 0xC, 0x9, 0xD, 0xE])
_HALVES = np.array([0x4, 0xE])


def instruction_probes() -> Iterator[Probe]:
    """All of them, for GPUs of any age."""
    for name in _SHAPES:
        yield _matrix_probe(name, _SHAPES, "matrix_shapes", 80, WARP_SIZE)
    for name in _FLOATS8:
        yield _matrix_probe(name, _FLOATS8, "matrix_floats8", 89, WARP_SIZE)
    for name in _DOUBLES:
        yield _matrix_probe(name, _DOUBLES, "matrix_doubles", 90, WARP_SIZE)
    for name in _WMMA:
        yield _matrix_probe(name, _WMMA, "wmma", 80, 1)
    for name in ("lanes", "arithmetic", "warps", "calls"):
        yield _lanes(name, 80)
    yield _lanes("lanes_floats8", 89)
    yield _lanes("vector_atomics", 90)


def _matrix_probe(
    name: str,
    table: dict[str, tuple[tuple[int, int, int, int], str, str]],
    file: str,
    capability: int,
    lanes: int,
) -> Probe:
    (a, b, c, d), operand, result = table[name]
    generator = generator_of(name)
    words = (
        numbers(generator, operand, lanes * a),
        numbers(generator, operand, lanes * b),
        numbers(generator, result, lanes * c),
    )
    if name.startswith("sparse"):
        words = (*words, _metadata(generator, _HALVES if "tf32" in name else _PAIRS))
    forms = ((name, "bits"),)
    return Probe(name, file, words, lanes * d, forms, capability=capability)


def _metadata(generator: np.random.Generator, fields: np.ndarray[Any, Any]) -> Words:
    chosen = generator.choice(fields, (WARP_SIZE, 8)).astype(np.uint32)
    return np.bitwise_or.reduce(chosen << np.arange(0, 32, 4, dtype=np.uint32), axis=1)


def numbers(generator: np.random.Generator, kind: str, words: int) -> Words:
    """Words of small whole numbers, or of any bits."""
    if kind == "bits":
        return generator.integers(0, 2**32, words, np.uint32)
    per_word: dict[str, float] = {"f64": 0.5, "f32": 1, "e4m3": 4, "e5m2": 4}
    count = int(words * per_word.get(kind, 2))
    whole = generator.integers(-8, 9, count).astype(np.float32)
    if kind in ("e4m3", "e5m2"):
        return SCALARS[kind].encode(whole, "rn").view(np.uint32)
    if kind in ("f32", "f64"):
        return whole.astype(kind.replace("f", "float")).view(np.uint32)
    return np.ascontiguousarray(dtypes.encode(whole, kind)).view(np.uint32)


def _lanes(name: str, capability: int) -> Probe:
    """One kernel of many instructions; each is named by a comment before it."""
    forms = _FORM.findall((FOLDER / f"{name}.ptx").read_text("utf-8"))
    words = generator_of(name).integers(0, 2**32, _NUMBERS, np.uint32)
    return Probe(
        name,
        name,
        (words,),
        len(forms) * _NUMBERS,
        tuple((form, "bits") for form in forms),
        blocks=_NUMBERS // _THREADS,
        threads=_THREADS,
        capability=capability,
    )
