"""Programs of other compilers with one synchronisation left out, or counted otherwise.

Each mutant is found in one of `MODES`, nearly all in the first one, or stands in
`EQUIVALENT` with the reason why it changes nothing. Numbers are those of code that
these releases make.
"""

from __future__ import annotations

import pytest
from findings import programs
from mutations import Mutant, mutants

from alcop_mlir.errors import EmulationError

RELEASES = {
    "triton": "Triton 3.9.0",
    "tilelang": "TileLang 0.1.15",
    "cute": "CuTe DSL 4.8.1",
    "cutlass": "CUTLASS 4.1.0",
}
JOINED = "its copies join the next group, whose wait comes before all reads"
BESIDE = "a wait for as many groups comes before or behind it, with no commit between"
READS = "at most reads come between this barrier and another one"
UNUSED = "nobody touches what the copies of the last group write, zeros"
LAST = "no wait comes behind this commit"
ALL = "the wait behind it is for all copies, of groups or not"
DRAINED = "no copy is in flight: those of the last turns are off"
FENCED = "nothing was written since the fence before, or another one follows"
SHAPE = "only wgmma of one shape accesses the accumulators in between"
WHOLE = (
    "only wgmma read what is copied over, and the wait before is for those of all four "
    "warps"
)
FRESH = "the first wait for a slot that nothing has filled"
TAIL = "the copying warp's last waits are for other blocks of a cluster: it has one"
NOBODY = "of an mbarrier for which nobody waits, as there is no C to load"
RING = (
    "the ring is shorter than k: its mbarriers order the tile before and the next one"
)
# PTX ISA 9.3, cp.async.bulk.tensor: "This instruction accesses its mbarrier operand
# using generic-proxy"; fence.mbarrier_init is a release for other blocks; here is none.
GENERIC = "copies use mbarriers by the generic proxy, and a bar.sync orders the init"

# By compiler, target and name; of each mutant that is not found, by its number.
EQUIVALENT: dict[tuple[str, int, str], dict[int, str]] = {
    ("triton", 80, "layer_norm"): {},
    ("triton", 80, "matmul3"): {
        0: JOINED,
        7: BESIDE,
        8: BESIDE,
        9: READS,
        13: BESIDE,
        14: BESIDE,
        15: BESIDE,
        16: BESIDE,
        19: UNUSED,
    },
    ("triton", 80, "attention"): {0: JOINED, 6: JOINED, 9: UNUSED},
    ("triton", 90, "matmul3"): {0: JOINED, 12: WHOLE},
    ("triton", 90, "attention"): {
        0: JOINED,
        10: FENCED,
        13: WHOLE,
        14: JOINED,
        19: UNUSED,
    },
    ("cute", 80, "columns"): {65: LAST},
    ("tilelang", 80, "contraction3"): {},
    ("tilelang", 90, "contraction3"): {
        6: GENERIC,
        8: FRESH,
        13: FRESH,
        18: FRESH,
        57: SHAPE,
    },
    ("cutlass", 80, "multistage_nt"): {9: ALL, 10: DRAINED, 11: READS, 12: READS},
    ("cutlass", 90, "specialised"): {
        6: FENCED,
        7: FENCED,
        19: SHAPE,
        31: TAIL,
        33: TAIL,
        35: TAIL,
    },
    ("cutlass", 90, "cooperative"): {
        6: FENCED,
        **dict.fromkeys((7, 8, 9, 10), NOBODY),
        11: FENCED,
        **dict.fromkeys((12, 13, 14, 20), NOBODY),
        **dict.fromkeys((21, 23, 25), TAIL),
        37: SHAPE,
        56: RING,
    },
}


MODES = (
    ("late", "lockstep"),
    ("late", "ascending"),
    ("late", "random"),
    ("early", "descending"),
)


def is_found(mutant: Mutant, mode: tuple[str, str], limit: int) -> bool:
    """Whether the emulator reports it, or its result is wrong."""
    try:
        result, is_right = programs.run(mutant.program, *mode, instruction_limit=limit)
    except EmulationError:
        return True
    return bool(result.hazards) or not is_right


@pytest.mark.parametrize(("compiler", "capability", "name"), EQUIVALENT)
def test_each_mutant_is_found_or_changes_nothing(
    compiler: str, capability: int, name: str, built: programs.Builder
) -> None:
    program = built(compiler, capability)[name]
    if not program.compiler.startswith(RELEASES[compiler]):
        pytest.skip(f"{program.compiler} is not {RELEASES[compiler]}")
    whole, _ = programs.run(program, *MODES[0])
    limit = 10 * whole.warp_instructions + 10_000
    tried = list(mutants(program))
    assert len(tried) >= 5
    left = [
        one for one in tried if not any(is_found(one, mode, limit) for mode in MODES)
    ]
    equivalent = EQUIVALENT[compiler, capability, name]
    assert [f"{one.number}: {one.what}" for one in left] == [
        f"{number}: {tried[number].what}" for number in equivalent
    ]
