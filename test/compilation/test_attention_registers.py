"""Attention in wide tiles holds what registers can: nothing spills (needs ptxas)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import ptx
from alcop_mlir.target import find_target

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from attention_tiles import Attention
from plain_attention import Tiled, plain_attention

WIDE = Attention(4, 1024, 64, (128, 64))
CAUSAL = Attention(4, 1024, 64, (128, 64), causal=True)
CASES = {
    "plain program": (WIDE, plain_attention(WIDE)),
    "plain program, causal": (CAUSAL, plain_attention(CAUSAL)),
    "tile code, causal": (CAUSAL, CAUSAL.text()),
}


@pytest.mark.skipif(ptx.find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("name", CASES)
def test_rows_of_32_for_each_warp_do_not_spill(name: str) -> None:
    """Totals of a tile, if added up beside the contractions of the next, would."""
    case, text = CASES[name]
    rows = case.block[0] // case.warps
    tiles = (rows, case.warps, case.block[1])
    options = Tiled(find_target("sm_80"), tiles=tiles)
    bundle = compiler.compile_source(inputs.read_text(text), options)
    (kernel,) = bundle.functions[0].kernels
    assert kernel.spill_bytes == 0
