"""The table of scalar types: each row against what its name says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_text import run_kernel

from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS

DECODED = ("f16", "bf16", "tf32")
EIGHT_BITS = ("e4m3", "e5m2")  # of one rounding; test_narrow_types.py has every byte
KINDS = {"b": "u", "u": "u", "s": "i"}
# Bits of one number in each format, and halfway from it to the next one.
NUMBERS = {
    "f16": (0x3E00, 2**-11),
    "bf16": (0x3FC0, 2**-8),
    "tf32": (0x3FC00000, 2**-11),
}


@pytest.mark.parametrize("name", SCALARS)
def test_size_kind_and_storage(name: str) -> None:
    row = SCALARS[name]
    found = re.fullmatch(r"([a-z]+?)(\d+)(x2)?", re.sub("e[45]m[23]", "f8", name))
    if found is None:
        assert (name, row.size) == ("pred", 1)
        return
    kind, bits, packed = found[1], int(found[2]), found[3]
    if kind == "tf":
        bits = 32
    if bits == 128:
        kind = "c"  # moved as a complex number, see `arithmetic.storage`
    assert row.bits == bits * (2 if packed else 1)
    assert row.half == (SCALARS[name.removesuffix("x2")] if packed else None)
    assert (row.kind == "f") == kind.endswith("f")
    assert row.dtype.itemsize == row.size
    if not packed and kind in KINDS:
        assert row.dtype.kind == KINDS[kind]
    if kind == "f":
        assert row.dtype.kind == ("f" if bits > 16 and not packed else "u")
    assert row.is_decoded == (row.kind == "f" and row.dtype.kind == "u")


@pytest.mark.parametrize("name", DECODED)
def test_bits_are_decoded_and_encoded(name: str) -> None:
    row = SCALARS[name]
    bits, half_step = NUMBERS[name]
    stored = np.array([bits], row.dtype)
    number = row.decode(stored)
    assert number.dtype == np.float32
    assert number[0] == 1.5
    assert row.encode(number, "rn")[0] == bits
    step = row.decode(stored + row.dtype.type(1 << 13 if name == "tf32" else 1))
    assert step[0] == 1.5 + 2 * half_step
    above = np.array([1.5 + 1.5 * half_step], np.float32)
    assert row.decode(row.encode(above, "rn"))[0] == step[0]
    assert row.decode(row.encode(above, "rz"))[0] == 1.5


@pytest.mark.parametrize("name", DECODED)
def test_the_largest_is_finite_and_the_next_is_not(name: str) -> None:
    row = SCALARS[name]
    step = 1 << 13 if name == "tf32" else 1
    bits = np.array([row.largest, row.largest + step], row.dtype)
    assert np.isfinite(row.decode(bits)).tolist() == [True, False]


def test_only_decoded_types_have_a_largest() -> None:
    assert {name for name, row in SCALARS.items() if row.largest} == {
        *DECODED,
        *EIGHT_BITS,
    }


@pytest.mark.parametrize("name", ["f16x2", "bf16x2", "u16x2", "s16x2"])
def test_a_packed_type_decodes_its_halves(name: str) -> None:
    row = SCALARS[name]
    assert row.half is not None
    assert (row.decode, row.encode) == (row.half.decode, row.half.encode)


@pytest.mark.parametrize(("kind", "bits"), [("f16", 0x3E01), ("bf16", 0x3FC1)])
def test_a_parameter_is_rounded_to_nearest(kind: str, bits: int) -> None:
    out = np.zeros(1, np.uint16)
    body = """
    .reg .b64 %p; .reg .b16 %h;
    ld.param.u64 %p, [p0]; ld.param.b16 %h, [p1]; st.global.b16 [%p], %h;
    """
    value = 1.5 + 1.5 * NUMBERS[kind][1]
    run_kernel(body, ["u64", kind], [out, value], block=(1,))
    assert out[0] == bits
