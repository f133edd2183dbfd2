"""bench/sass.py: loops found in a listing of nvdisasm."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"

LISTING = """
.text.matmul:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   HMMA.16816.F32 R4, R4, R8, RZ ;
        /*0020*/              @!P0 BRA `(.L_x_1) ;
.L_x_2:
        /*0030*/                   LDSM.16.M88.4 R4, [R2] ;
        /*0040*/                   HMMA.16816.F32 R4, R4, R8, R4 ;
        /*0050*/               @P1 BRA `(.L_x_3) ;
        /*0060*/                   HMMA.16816.F32 R4, R4, R8, R4 ;
.L_x_3:
        /*0070*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0080*/         @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0090*/              @!P0 BRA `(.L_x_2) ;
.L_x_4:
        /*00a0*/                   IADD3 R3, R3, 0x1, RZ ;
        /*00b0*/                   BRA `(.L_x_4) ;
        /*00c0*/                   EXIT ;
"""


@pytest.fixture
def sass(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("sass")


def test_the_loop_with_most_matrix_instructions_is_first(sass: Any) -> None:
    """From the target of the branch to the branch; a loop without any is left out."""
    steady, short = sass.loops(LISTING)
    assert (steady.size, steady.matrix, steady.per_matrix) == (7, 2, 3.5)
    assert steady.instructions == {
        **{"LDSM": 1, "HMMA": 2, "BRA": 2},
        **{"IADD3": 1, "UIADD3": 1},
    }
    assert (short.size, short.matrix) == (2, 1)


def test_the_main_loop_of_a_compiled_kernel_is_found(sass: Any) -> None:
    """Unrolled by the slot period: 64 HMMA per K step of 32, for each of 4 warps."""
    import alcop_mlir

    kind = "memref<2048x2048x"
    program = alcop_mlir.compile(
        f"""func.func @f(%a: {kind}f16>, %b: {kind}f16>, %c: {kind}f32>) {{
          linalg.matmul ins(%a, %b : {kind}f16>, {kind}f16>) outs(%c : {kind}f32>)
          return
        }}""",
        schedule="block=128,128,32 warp=64,64 stages=3,2",
    )
    cubin = program.bundle.code["f_kernels"].cubin
    if cubin is None:
        pytest.skip("needs ptxas")
    loop = sass.steady_state(cubin)
    assert loop.matrix % (3 * 64) == 0
    assert loop.per_matrix < 2.3
    assert program.function.kernels[0].spill_bytes == 0


@pytest.mark.parametrize(
    ("layout", "step"), [("nn", 64), ("nt", 32), ("tn", 32), ("tt", 64)]
)
def test_run_time_sizes_take_no_more_than_known_ones(
    sass: Any, layout: str, step: int
) -> None:
    """With the promise of aligned rows: at most 1.65 of any kind, nothing spilled."""
    schedule = f"block=128,128,{step} warp=64,64 stages=3,2"
    measured = _measured(("f16", layout, "open", schedule))
    assert measured["per_mma"] <= 1.65
    assert measured["spill_bytes"] == 0


@pytest.mark.parametrize(
    ("layout", "sizes"), [("nt", "open, 4 bytes"), ("tt", "open, no promise")]
)
def test_rows_of_any_alignment_spill_nothing(
    sass: Any, layout: str, sizes: str
) -> None:
    """With the tile that is chosen for them; what is copied by elements is fetched."""
    schedule = "block=64,64,32 warp=32,32 stages=3,2"
    measured = _measured(("f16", layout, sizes, schedule))
    assert measured["spill_bytes"] == 0
    assert ("LDGSTS" in measured["mix"]) == (sizes == "open, 4 bytes")
    assert measured["per_mma"] <= (4.1 if sizes == "open, 4 bytes" else 8.6)


def _measured(case: tuple[str, str, str, str]) -> dict[str, Any]:
    """What bench_sass.py says of a case; skips where there is no ptxas."""
    from alcop_mlir.runtime import ptx

    if ptx.find_ptxas() is None:
        pytest.skip("needs ptxas")
    return importlib.import_module("bench_sass").measure(case, "sm_80", 4096)


# Of sizes known at run time only: two more than the 43 of known ones.
OPEN = 45
CUTILE = 8.38  # instructions for each wgmma of 128x128


@pytest.mark.parametrize(
    ("number", "layout", "sizes", "size"),
    [(0, "nt", "known", 4096), (0, "nn", "open", 4096), (2, "nt", "known", 1024)],
)
def test_loops_of_roles_have_no_more_instructions_than_cutlass(
    sass: Any, number: int, layout: str, sizes: str, size: int
) -> None:
    """Those that multiply and those that copy; wgmma is waited for once for each slot.

    size: of 1024 cubed each block has one tile
    """
    from alcop_mlir.runtime import ptx

    if ptx.find_ptxas() is None:
        pytest.skip("needs ptxas")
    hopper = importlib.import_module("bench_hopper")
    tile = list(dict.fromkeys(tile for tile, _ in hopper.CUTLASS))[number]
    measured = hopper.measure(hopper.Case(tile, layout, sizes), size)
    bound = hopper.CUTLASS[tile, layout]
    assert measured["multiply"] <= (OPEN if sizes == "open" else bound.multiply)
    assert measured["copy"] <= bound.copy
    assert (measured["depbar"], measured["arrive"]) == (1, 1)
    assert (measured["spill_bytes"], measured["advisories"]) == (0, [])
    assert measured["registers"] <= bound.registers


def test_longer_steps_have_fewer_instructions_for_each_wgmma(sass: Any) -> None:
    """Than cuTile's 128x128, of which a warpgroup has as many wgmma in an iteration."""
    from alcop_mlir.runtime import ptx

    if ptx.find_ptxas() is None:
        pytest.skip("needs ptxas")
    hopper = importlib.import_module("bench_hopper")
    measured = hopper.measure(hopper.Case(hopper.LONGER, "nt"))
    assert measured["per wgmma"] <= CUTILE
    assert (measured["registers"], measured["spill_bytes"]) == (168, 0)
    assert measured["advisories"] == []


def test_a_kernel_of_several(sass: Any) -> None:
    """Each is a section of the listing, the last one to its end."""
    line = "//" + "-" * 21
    sections = [".nv.info", ".text.f", ".text.f_rows16", ".nv.shared.f"]
    listing = "".join(f"{line} {name} {line[2:]}\n{name} has\n" for name in sections)
    assert sass.section(listing, "f").splitlines()[1:] == [".text.f has"]
    whole = listing[: listing.index(f"{line} .nv.shared.f")]
    assert sass.section(whole, "f_rows16").splitlines()[1:] == [".text.f_rows16 has"]
