"""Which instructions access global memory, where and how much, by their text."""

from __future__ import annotations

import re

from alcop_mlir.checker.instructions import (
    NUMBER,
    PLACE,
    Instruction,
    integer,
    names_in,
)
from alcop_mlir.checker.text import Kernel

_MEMORY = ("ld", "ldu", "st", "atom", "red")
_HARMLESS = set(
    "cvta isspacep mov prefetch prefetchu discard applypriority createpolicy membar "
    "fence".split()
)


def is_global(ins: Instruction) -> bool:
    """Whether it may access global memory."""
    if ins.parts[0] in _HARMLESS:
        return False
    return "global" in ins.parts or ins.is_generic or ins.parts[0] == "call"


def needed(kernel: Kernel) -> set[str]:
    """Registers of which addresses, sizes and guards are computed."""
    names: set[str] = set()
    for ins in kernel.code:
        if is_global(ins):
            places = [o for o in ins.operands if o.startswith("[")]
            sizes = ins.operands[3:] if ins.parts[0] == "cp" else ()
            names.update(n for one in (*places, *sizes) for n in names_in(one))
        if ins.guard and (ins.parts[0] == "bra" or is_global(ins)):
            names.add(ins.guard)
    grows = True
    while grows:
        before = len(names)
        for ins in reversed(kernel.code):
            if ins.parts[0] != "ld" and not names.isdisjoint(ins.results):
                names |= ins.reads - {""}
        grows = len(names) > before
    return names


def place_of(ins: Instruction) -> re.Match[str] | None:
    """The address of an access, if it is of a kind that is known."""
    is_copy = ins.parts[:2] == ["cp", "async"] and ins.parts[2] in ("ca", "cg")
    if ("async" in ins.parts or ins.parts[0] not in _MEMORY) and not is_copy:
        return None
    places = [PLACE.fullmatch(o) for o in ins.operands if o.startswith("[")]
    return places[int(is_copy)] if len(places) > is_copy else None


def step_of(place: re.Match[str]) -> int:
    """What is added to the register of an address."""
    return integer((place[2] or place[3] or "0").replace(" ", ""))


def most_bytes(ins: Instruction) -> int:
    """How many it accesses, where nothing says that it is fewer."""
    if ins.parts[0] == "cp":
        size = ins.operands[2]
        return integer(size) if NUMBER.fullmatch(size) else 16
    last = ins.parts[-1]
    width = int(last[1:]) if last[1:].isdigit() and last[0] in "subf" else 32
    count = next((int(p[1:]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)
    return max(width // 8, 1) * count


def source_size(ins: Instruction) -> str:
    """What says how many bytes a copy reads, or that it reads none; else empty."""
    if ins.parts[0] != "cp":
        return ""
    is_hinted = any("cache_hint" in part for part in ins.parts)
    others = ins.operands[3 : len(ins.operands) - is_hinted]
    return others[0] if others else ""
