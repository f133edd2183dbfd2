"""What instructions do, by their opcodes."""

from __future__ import annotations

from functools import lru_cache

from alcop_mlir.checker.text import Instruction, integer, names_in
from alcop_mlir.errors import CertificateError

_remembered = lru_cache(maxsize=1 << 14)

# Opcodes that write no register.
_NO_RESULT = frozenset(
    "st bra bar barrier cp ret exit trap brkpt membar fence red prefetch prefetchu "
    "griddepcontrol discard applypriority nanosleep pmevent setmaxnreg stmatrix "
    "brx stackrestore".split()
)
_SPACES = ("shared", "global", "param", "local", "const")


@_remembered
def results(ins: Instruction) -> list[str]:
    """The registers that an instruction writes."""
    first = ins.parts[0]
    if first in _NO_RESULT or not ins.operands:
        return []
    if first == "call" and not ins.operands[0].startswith("("):
        return []
    if first == "wgmma":
        raise CertificateError(f"not modelled: {ins.opcode}")
    return [n for n in names_in(ins.operands[0]) if n != "_"]


@_remembered
def is_access(ins: Instruction) -> bool:
    """Whether it accesses shared memory."""
    if ins.parts[0] in ("ldmatrix", "stmatrix"):
        return True
    named = any(part.split("::")[0] == "shared" for part in ins.parts)
    return named and ins.parts[0] not in ("cvta", "isspacep", "mapa")


@_remembered
def orders(ins: Instruction) -> bool:
    """Whether threads may not part ways around it."""
    if ins.parts[:2] == ["bar", "warp"]:
        return False
    kinds = ("bar", "barrier", "cp", "mbarrier", "wgmma", "tcgen05")
    return is_access(ins) or ins.parts[0] in kinds


@_remembered
def is_generic(ins: Instruction) -> bool:
    """Whether it may access any state space."""
    is_memory = ins.parts[0] in ("ld", "st", "atom", "red")
    named = any(p.split("::")[0] in _SPACES for p in ins.parts)
    return ins.parts[0] == "call" or (is_memory and not named)


def is_collective(ins: Instruction) -> bool:
    """Whether all threads have to execute it."""
    return orders(ins) and not is_access(ins) and ins.parts[0] != "cp"


@_remembered
def access_bytes(ins: Instruction) -> int:
    """What each thread reads or writes of shared memory; 0 for what is not modelled."""
    parts = ins.parts
    if ("async" in parts[1:] and parts[0] != "cp") or "shared::cluster" in parts:
        return 0
    if parts[0] == "ldmatrix":
        return 16 if "m8n8" in parts else 0
    if parts[0] in ("ld", "st") and parts[-1][1:].isdigit():
        counts = {"v2": 2, "v4": 4, "v8": 8}
        count = max([counts[p] for p in parts if p in counts], default=1)
        return int(parts[-1][1:]) // 8 * count
    if parts[:2] == ["cp", "async"] and parts[2] in ("ca", "cg"):
        return integer(ins.operands[2])
    return 0
