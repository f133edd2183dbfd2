"""Mutants of a GEMM whose warps have roles: what synchronises is left out or changed.

One instruction at a time, in text of PTX as LLVM writes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

# What is left out. An arrival may be guarded; with bytes it is changed instead.
LEFT_OUT = re.compile(
    r"bar\.sync|fence\.proxy|wgmma\.(fence|commit_group|wait_group)|setmaxnreg\.\w+"
    r"|fence\.mbarrier_init|mbarrier\.arrive\.(release|shared)"
    r"|barrier\.cluster\.(arrive|wait)|cp\.async\.bulk\.(commit|wait)_group"
)
_ADDED = "{{ .reg .b32 %more; add.s32 %more, \\2, {}; \\1%more; }}"
_INIT = r"(mbarrier\.init.*, )(%r\d+);"
# What is changed: the pattern, and by what.
CHANGED = {
    "no wait": (r"mbarrier\.try_wait\S+\s+(\w+),.*", r"setp.eq.b32 \1, 0, 0;"),
    "other parity": (r"(mbarrier\.try_wait\S+\s+\w+, )(.*), (%r\d+), (.*)", "PARITY"),
    "one arrival less": (_INIT, _ADDED.format(-1)),
    "one arrival more": (_INIT, _ADDED.format(1)),
    "fewer bytes": (r"(mbarrier\.arrive\.expect_tx.*, )(\S+);", _ADDED.format(-8192)),
    "group + 1": (r"(wait_group\S*\s+)(\d+);", "MORE"),
    "other block": (r"(mapa.*), (\d);", "BLOCK"),
    "relaxed arrival": (r"arrive\.release\.cluster", "arrive.relaxed.cluster"),
    "relaxed barrier": (r"cluster\.arrive\.aligned", "cluster.arrive.relaxed.aligned"),
    "one block": (r"\.multicast::cluster( .*), %rs1;", r"\1;"),
}
ALL = os.environ.get("ALCOP_MUTANTS") == "all"


def mutants(text: str) -> dict[str, tuple[int, str]]:
    """By name: the number of the line, and what stands there instead."""
    found: dict[str, list[tuple[int, str]]] = {}
    for kind, number, new in _mutations(text):
        found.setdefault(kind, []).append((number, new))
    return {
        f"{kind}, {i + 1} of {len(places)}": place
        for kind, places in found.items()
        for i, place in enumerate(places)
    }


def mutated(text: str, mutant: tuple[int, str]) -> str:
    """The text with that line replaced."""
    lines = text.split("\n")
    number, lines[number] = mutant
    return "\n".join(lines)


def _mutations(text: str) -> Iterator[tuple[str, int, str]]:
    """Kind, number of the line, and what stands there instead."""
    for number, line in enumerate(text.split("\n")):
        if line.startswith("//"):
            continue
        hit = LEFT_OUT.search(line)
        if hit is not None:
            yield hit[0], number, ""
        for name in CHANGED:
            new = _changed(name, line)
            if new != line:
                yield name, number, new


def _changed(name: str, line: str) -> str:
    """The line with one of the changes; the same where it does not fit."""
    pattern, new = CHANGED[name]
    if new == "PARITY":
        flip = r"xor.b32 \3, \3, 1; \1\2, \3, \4 xor.b32 \3, \3, 1;"
        return re.sub(pattern, flip, line)
    if new == "MORE":
        return re.sub(pattern, lambda one: f"{one[1]}{int(one[2]) + 1};", line)
    if new == "BLOCK":
        return re.sub(pattern, lambda one: f"{one[1]}, {1 - int(one[2])};", line)
    return re.sub(pattern, new, line)
