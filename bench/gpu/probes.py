"""Small kernels that show what one instruction does, lane by lane.

Each runs on the GPU and on the emulator on the same inputs, which are generated from a
fixed seed. The GPU's results are kept, so that machines without a GPU can test the
emulator against hardware.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.target import WARP_SIZE
from bench.gpu.cluster_probes import cluster_probes
from bench.gpu.instruction_probes import instruction_probes
from bench.gpu.probe import Probe, Words, generator_of
from bench.gpu.tensor_probes import tensor_probes
from bench.gpu.warpgroup_probes import warpgroup_probes

GOLDEN_SCHEMA = 1
# Forms of convert.ptx in its order: the name, and how results are compared.
FROM_F32 = (
    ("cvt.rn.f16.f32", "f16"),
    ("cvt.rz.f16.f32", "f16"),
    ("cvt.rn.relu.f16.f32", "f16"),
    ("cvt.rn.f16x2.f32", "f16"),
    ("cvt.rn.bf16.f32", "bf16"),
    ("cvt.rz.bf16.f32", "bf16"),
    ("cvt.rn.relu.bf16.f32", "bf16"),
    ("cvt.rn.bf16x2.f32", "bf16"),
    ("cvt.rna.tf32.f32", "f32"),
    ("cvt.rni.s32.f32", "bits"),
    ("cvt.rzi.s32.f32", "bits"),
    ("cvt.rmi.s32.f32", "bits"),
    ("cvt.rpi.s32.f32", "bits"),
    ("cvt.rzi.u32.f32", "bits"),
    ("cvt.rni.sat.s8.f32", "bits"),
    ("cvt.rni.f32.f32", "f32"),
)
FROM_OTHER = (
    ("cvt.f32.f16", "f32"),
    ("cvt.rni.s32.f16", "bits"),
    ("cvt.rn.f16.s32", "f16"),
    ("cvt.rn.f32.s32", "f32"),
    ("cvt.rz.f32.u32", "f32"),
    ("cvt.sat.s8.s32", "bits"),
    ("cvt.sat.u8.s32", "bits"),
)
_THREADS = 128
_NUMBERS = 2048  # that are converted


def all_probes() -> list[Probe]:
    """Every probe, for GPUs of any age."""
    return [
        *_matrix_moves(),
        *_mma(),
        *_copies(),
        *_mbarriers(),
        _swizzle(),
        *_conversions(),
        *_shuffles(),
        *instruction_probes(),
        *warpgroup_probes(),
        *cluster_probes(),
        *tensor_probes(),
    ]


def golden(results: Mapping[str, Words], about: Mapping[str, Any]) -> str:
    """The results of a GPU as the text of a file; `about` says which GPU."""
    return json.dumps(
        {
            "schema": GOLDEN_SCHEMA,
            "about": dict(about),
            "results": {name: words.tobytes().hex() for name, words in results.items()},
        },
        indent=0,
    )


def read_golden(text: str) -> tuple[dict[str, Any], dict[str, Words]]:
    """The arguments of `golden`: `about`, and the results by the probe's name."""
    value = json.loads(text)
    assert value["schema"] == GOLDEN_SCHEMA
    results = {
        name: np.frombuffer(bytes.fromhex(words), np.uint32)
        for name, words in value["results"].items()
    }
    return value["about"], results


def _matrix_moves() -> Iterator[Probe]:
    """Every 16-bit element has a value of its own; rows are addressed out of order."""
    tile = np.arange(256, dtype=np.uint16).view(np.uint32)
    rows = generator_of("rows").permutation(WARP_SIZE).astype(np.uint32) * 16
    for file, capability in (("ldmatrix", 80), ("stmatrix", 90)):
        for count in (1, 2, 4):
            for end in ("", "_trans"):
                name = f"{file}_x{count}{end}"
                yield Probe(
                    name,
                    file,
                    (tile, rows),
                    4 * WARP_SIZE,
                    ((name, "bits"),),
                    capability=capability,
                )
    forms = (("movmatrix", "bits"),)
    yield Probe("movmatrix", "ldmatrix", (tile, rows), 4 * WARP_SIZE, forms)


def _mma() -> Iterator[Probe]:
    """Probes of mma.sync: small integers, exact in any order; then random numbers."""
    halves = ("m16n8k16_f16_f32", "m16n8k16_f16_f16", "m16n8k8_f16_f32")
    brains = ("m16n8k16_bf16_f32", "m16n8k8_bf16_f32")
    for form in (*halves, *brains):
        dtype = "bf16" if "bf16" in form else "f16"
        narrow = form.endswith("f16_f16")
        yield _mma_probe(form, "", partial(_halves, _whole, dtype), narrow)
        if not narrow:
            yield _mma_probe(form, ":random", partial(_halves, _random, dtype), False)
    for form in ("m16n8k8_tf32", "m16n8k4_tf32"):
        yield _mma_probe(form, "", _singles, False)
    for form in (
        "m16n8k32_s8",
        "m16n8k32_u8",
        "m16n8k32_s8_satfinite",
        "m16n8k16_s8",
    ):
        yield _mma_probe(form, "", _any_bits, False, integers=True)


def _mma_probe(
    form: str,
    suffix: str,
    make: Callable[[np.random.Generator, int], Words],
    narrow: bool,
    integers: bool = False,
) -> Probe:
    name = f"mma_{form}{suffix}"
    generator = generator_of(name)
    a, b = make(generator, 4 * WARP_SIZE), make(generator, 2 * WARP_SIZE)
    if integers:
        # Near the ends of the range too, where satfinite matters.
        c = generator.integers(0, 2**32, 4 * WARP_SIZE, np.uint32)
    elif narrow:
        c = make(generator, 4 * WARP_SIZE)
    else:
        c = _whole(generator, 4 * WARP_SIZE).view(np.uint32)
    kind = "accumulators" if suffix else "bits"
    return Probe(name, "mma", (a, b, c), 4 * WARP_SIZE, ((name, kind),))


def _whole(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    return generator.integers(-8, 9, count).astype(np.float32)


def _random(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    return generator.random(count, np.float32) * 2 - 1


def _halves(
    numbers: Callable[[np.random.Generator, int], np.ndarray[Any, Any]],
    dtype: str,
    generator: np.random.Generator,
    words: int,
) -> Words:
    """Two numbers of 16 bits in each word."""
    values = dtypes.encode(numbers(generator, 2 * words), dtype)
    return np.ascontiguousarray(values).view(np.uint32)


def _singles(generator: np.random.Generator, words: int) -> Words:
    return _whole(generator, words).view(np.uint32)


def _any_bits(generator: np.random.Generator, words: int) -> Words:
    return generator.integers(0, 2**32, words, np.uint32)


def _copies() -> Iterator[Probe]:
    """Every legal src-size of a form, at some lane."""
    source = np.arange(1, 1 + 16 * WARP_SIZE, dtype=np.uint16).astype(np.uint8)
    lanes = np.arange(WARP_SIZE, dtype=np.uint32)
    for name, sizes in (
        ("cp_async_cg_16", lanes % 17),
        ("cp_async_ca_16", lanes % 17),
        ("cp_async_ca_8", lanes % 9),
        ("cp_async_ca_4", lanes % 5),
        ("cp_async_cg_16_ignore", lanes % 2),
    ):
        inputs = (source.view(np.uint32), sizes.astype(np.uint32))
        yield Probe(name, "cp_async", inputs, 4 * WARP_SIZE, ((name, "bits"),))


def _mbarriers() -> Iterator[Probe]:
    """Counts and phases, and copies that arrive; those of the copy engine on Hopper."""
    given = generator_of("mbarrier_counts").integers(0, 2**12, WARP_SIZE, np.uint32)
    forms = (("mbarrier_counts", "bits"),)
    yield Probe("mbarrier_counts", "mbarrier", (given,), 6 * WARP_SIZE, forms)
    source = np.arange(1, 1 + 4 * WARP_SIZE, dtype=np.uint32)
    for name, file, capability in (
        ("mbarrier_copies", "mbarrier", 80),
        ("bulk_copy", "bulk_copy", 90),
        ("bulk_turns", "bulk_copy", 90),
        ("bulk_reduce", "bulk_copy", 90),
    ):
        forms = ((name, "bits"),)
        yield Probe(name, file, (source,), 4 * WARP_SIZE, forms, capability=capability)


def _swizzle() -> Probe:
    tile = np.arange(512, dtype=np.uint16).view(np.uint32)
    return Probe("swizzle", "swizzle", (tile,), 8 * WARP_SIZE, (("swizzle", "bits"),))


def _conversions() -> Iterator[Probe]:
    """Numbers of every size, halfway cases, infinities, NaN, and any bits at all."""
    generator = generator_of("conversions")
    yield _conversion("convert_f32", _hard_singles(generator), FROM_F32)
    words = generator.integers(0, 2**32, _NUMBERS, np.uint32)
    words[:512] = generator.integers(-300, 300, 512).astype(np.int32).view(np.uint32)
    words[512:1024] = np.arange(0, 65536, 128, dtype=np.uint32)
    yield _conversion("convert_other", words, FROM_OTHER)


def _conversion(name: str, words: Words, forms: Sequence[tuple[str, str]]) -> Probe:
    return Probe(
        name,
        "convert",
        (words,),
        len(forms) * len(words),
        tuple(forms),
        blocks=len(words) // _THREADS,
        threads=_THREADS,
    )


def _hard_singles(generator: np.random.Generator) -> Words:
    quarter = _NUMBERS // 4
    bits = generator.integers(0, 2**32, quarter, np.uint32)
    usual = generator.standard_normal(quarter).astype(np.float32) * 100
    # Halfway between two f16, and between two bf16: the lower bits are 1000...
    halfway = usual.view(np.uint32).copy()
    halfway[::2] = (halfway[::2] & ~np.uint32(0x1FFF)) | np.uint32(0x1000)
    halfway[1::2] = (halfway[1::2] & ~np.uint32(0xFFFF)) | np.uint32(0x8000)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65520, -65520, 2.0**-24]
    special += [2.0**-25, 3e-8, 2.0**-14, 2.0**-133, 1e-45, 3.4e38, 0.5, 1.5, 2.5]
    special += [2.0**31, -(2.0**31), 127.5, 128, -128.5, -129, 1e10]
    last = np.resize(np.array(special, np.float32), quarter).view(np.uint32)
    return np.concatenate([bits, usual.view(np.uint32), halfway, last])


def _shuffles() -> Iterator[Probe]:
    """Widths of 32, 16 and 8 lanes: operand c holds the clamp and the segment mask."""
    values = np.arange(1000, 1000 + WARP_SIZE, dtype=np.uint32)
    places = generator_of("places").integers(0, WARP_SIZE, WARP_SIZE, np.uint32)
    modes = ("shfl.idx", "shfl.up", "shfl.down", "shfl.bfly")
    for width in (32, 16, 8):
        segment = (WARP_SIZE - width) << 8
        for clamp in (0, 31):
            operand = np.array([segment | clamp], np.uint32)
            yield Probe(
                f"shuffle:{width}-{clamp}",
                "shuffle",
                (values, places, operand),
                4 * 2 * WARP_SIZE,
                tuple((mode, "bits") for mode in modes),
            )
