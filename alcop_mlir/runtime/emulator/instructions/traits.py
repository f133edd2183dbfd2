"""What running a kernel needs to know of an instruction, whatever it computes."""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Integer, space_of

BRANCHES = ("bra", "brx")
EXITS = ("ret", "exit")


def is_meeting(ins: Instruction) -> bool:
    """Whether the lanes of a warp wait for one another at the instruction (.sync)."""
    return ("sync" in ins.parts and ins.parts[0] not in ("bar", "barrier", "cp")) or (
        ins.parts[:2] == ("bar", "warp")
    )


def orders_lanes(ins: Instruction) -> bool:
    """Whether the instruction orders the earlier accesses of the lanes of a warp.

    The PTX memory model promises that for bar.warp.sync alone, which does it itself.
    But a warp that has executed a matrix instruction as one has issued all that came
    before. Shuffles and votes need not run as one instruction, and stmatrix does not
    order what it writes itself.
    """
    return ins.parts[0] in ("mma", "ldmatrix", "movmatrix")


def ends_span(ins: Instruction) -> bool:
    """Whether the lanes may go elsewhere, or wait, after the instruction."""
    name = ins.parts[0]
    if name in BRANCHES or name in EXITS or name == "trap":
        return True
    return name in ("bar", "barrier") and ins.parts[1] != "warp"


def touches_shared(ins: Instruction) -> str:
    """How the instruction may use shared memory: "read", "write", or "" for not at all.

    Only ldmatrix, a read by the whole warp, counts as "read": a load by single lanes
    needs a new epoch before it, as a write does.
    """
    name = ins.parts[0]
    if name == "ldmatrix":
        return "read"
    if name in ("stmatrix", "cp", "atom", "red", "st"):
        return "" if "global" in ins.parts and name != "cp" else "write"
    if name == "ld":
        named = space_of(ins.parts)
        return "write" if named in (None, "shared") else ""
    return ""


def shared_granule(code: Sequence[Instruction]) -> int:
    """The smallest shared access of the kernel, in bytes."""
    smallest = 16
    for ins in code:
        name = ins.parts[0]
        if name == "cp" and len(ins.operands) >= 3:
            size = ins.operands[2]
            if isinstance(size, Integer):
                smallest = min(smallest, max(size.value, 1))
        elif name in ("ld", "st", "atom", "red") and ins.operands:
            space = space_of(ins.parts)
            scalar = SCALARS.get(ins.parts[-1])
            if space in (None, "shared") and scalar is not None:
                at = ins.operands[0] if name == "ld" else ins.operands[-1]
                count = len(getattr(at, "items", (at,)))
                smallest = min(smallest, scalar.size * count)
    return smallest
