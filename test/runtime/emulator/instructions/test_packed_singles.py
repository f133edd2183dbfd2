"""`.f32x2`: each half is what the instruction on one f32 gives, see test_float.py."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import module

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import emulate, prepare

# Zeros, subnormal and normal numbers at both ends, ones, infinities, NaN.
EXTREME = (0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000)
NAN, SIGN = 0x7FC00000, 0x80000000
FORMS = (
    "add.f32x2",
    "add.rn.f32x2",
    "add.rn.ftz.f32x2",
    "sub.rn.f32x2",
    "mul.rn.f32x2",
    "mul.ftz.f32x2",
    "fma.rn.f32x2",
    "fma.rn.ftz.f32x2",
)


def text(form: str, target: str = "sm_100") -> str:
    """Each thread reads three pairs, and stores the packed result, then the others."""
    single, count = form.removesuffix("x2"), 3 if form.startswith("fma") else 2
    pairs = ", ".join(f"%d{n}" for n in range(count))
    low, high = (
        ", ".join(f"%f{2 * n + half}" for n in range(count)) for half in range(2)
    )
    loads = "\n".join(
        f"ld.global.b64 %d{n}, [%p+{8 * n}];\n"
        f"mov.b64 {{%f{2 * n}, %f{2 * n + 1}}}, %d{n};"
        for n in range(3)
    )
    body = f"""
      .reg .b64 %p, %q, %d<4>; .reg .f32 %f<8>; .reg .b32 %t;
      mov.u32 %t, %tid.x;
      ld.param.u64 %p, [p0]; mad.wide.u32 %p, %t, 24, %p;
      ld.param.u64 %q, [p1]; mad.wide.u32 %q, %t, 16, %q;
      {loads}
      {form} %d3, {pairs};
      {single} %f6, {low};
      {single} %f7, {high};
      st.global.b64 [%q], %d3;
      st.global.v2.f32 [%q+8], {{%f6, %f7}};
      ret;"""
    return module(body, ["u64", "u64"], target=target, version="8.6")


@pytest.mark.parametrize("form", FORMS)
def test_halves_are_singles(form: str) -> None:
    """Of extreme values with each other, and of random bits."""
    random = np.random.default_rng(1)
    bits = random.integers(0, 2**32, (256, 6), dtype=np.uint32)
    fixed = np.array([*EXTREME, *(n | SIGN for n in EXTREME), NAN], np.uint32)
    bits[:128] = fixed[random.integers(0, len(fixed), (128, 6))]
    found = np.zeros((256, 4), np.uint32)
    emulate(text(form), "kernel", (1, 1, 1), (256, 1, 1), [bits, found])
    packed, single = (found[:, half : half + 2] for half in (0, 2))
    is_nan = (single & 0x7FFFFFFF) > 0x7F800000
    assert np.array_equal(packed[~is_nan], single[~is_nan])
    assert ((packed[is_nan] & 0x7FFFFFFF) > 0x7F800000).all()
    assert 0.05 < (~is_nan).mean()


def test_targets_before_do_not_have_it() -> None:
    prepare(text("add.rn.f32x2", "sm_120"))
    with pytest.raises(EmulationError, match="sm_90a: targets from sm_100 on have it"):
        prepare(text("add.rn.f32x2", "sm_90a"))
