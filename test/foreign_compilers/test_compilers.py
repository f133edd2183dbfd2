"""Programs of Triton, TileLang, CuTe and CUTLASS: right, and nothing is reported.

For sm_80 and sm_90, with copies that land late and early, in four orders of warps.
"""

from __future__ import annotations

import pytest
from findings import programs

NAMES = {
    "triton": (
        "softmax layer_norm matmul1 matmul2 matmul3 matmul4 int8_dot attention "
        "histogram scan sort argmax gather transpose to_f8 persistent"
    ),
    "tilelang": (
        "overwritten0 contraction0 contraction2 contraction3 normalised0 twice0"
    ),
    "cute": "row_totals columns",
}
CASES = [
    *(
        (compiler, capability, name)
        for compiler, names in NAMES.items()
        for capability in programs.CAPABILITIES
        for name in names.split()
    ),
    ("cutlass", 80, "multistage_nt"),
    ("cutlass", 80, "multistage_nn"),
    ("cutlass", 90, "specialised"),
    ("cutlass", 90, "cooperative"),
    ("cutlass", 90, "pingpong"),
    ("cutlass", 90, "cluster"),
]


@pytest.mark.parametrize(("compiler", "capability", "name"), CASES)
def test_a_correct_program(
    compiler: str, capability: int, name: str, built: programs.Builder
) -> None:
    found = programs.found(built(compiler, capability)[name])
    assert found.wrong == ()
    assert [str(hazard) for hazard in found.hazards] == []


# What docs/findings.md says of TileLang: copies that nobody waits for.
@pytest.mark.parametrize("stages", [2, 3])
def test_a_buffer_that_is_filled_while_it_is_read(
    stages: int, built: programs.Builder
) -> None:
    name = f"overwritten{stages}"
    program = built("tilelang", 80)[name]
    if not program.compiler.startswith("TileLang 0.1.15,"):
        pytest.skip(f"{program.compiler} is not TileLang 0.1.15")
    found = programs.found(program)
    assert {visibility for visibility, _ in found.wrong} == {"late"}
    kinds = {hazard.kind for hazard in found.hazards}
    assert kinds == {"read-in-flight", "write-in-flight"}
    found = programs.found(built("tilelang", 90)[name])
    assert found.wrong == programs.MODES
    assert "write-in-flight" in {hazard.kind for hazard in found.hazards}
