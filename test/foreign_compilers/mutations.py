"""Mutants of PTX: one synchronisation is left out, or counts otherwise.

- barriers, `bar.warp.sync`, commits, arrivals, fences and waits are left out
- a wait for groups leaves one group more in flight
- a wait for an mbarrier waits for the other parity, or not at all
- an mbarrier expects one arrival more; a phase expects 16 bytes more
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from findings.programs import Program

_DROPPED = re.compile(
    r"(?:bar(?:rier)?(?:\.warp)?\.sync|bar\.arrive|cp\.async\.(?:bulk\.)?commit_group"
    r"|cp\.async\.(?:bulk\.)?wait_(?:group|all)|cp\.async\.mbarrier\.arrive"
    r"|mbarrier\.arrive|fence\.|wgmma\.(?:fence|commit_group|wait_group))"
)
_CODE = re.compile(
    r"(?<![^\s{;:])(?P<guard>@!?%?\w+\s+)?"
    r"(?P<code>(?:bar(?:rier)?|cp\.async|mbarrier|fence|wgmma)\.[^;{}]*);"
)
_COMMENT = re.compile(r"//[^\n]*")
_GROUPS = re.compile(r"(wait_group(?:\.read)?(?:\.sync\.aligned)?\s+)(\d+)")
_TRIED = re.compile(
    r"mbarrier\.(?:try|test)_wait(?P<kind>[\w.:]*)\s+(?P<to>[%\w]+)\s*,"
    r"\s*(?P<at>\[[^]]*\])\s*,\s*(?P<parity>[%\w]+)(?P<rest>.*)",
    re.S,
)
_COUNT = re.compile(r"(mbarrier\.init[\w.:]*\s+\[[^]]*\]\s*,\s*)(\S+)", re.S)
_BYTES = re.compile(
    r"(mbarrier\.(?:arrive\.)?expect_tx[\w.:]*\s+(?:_\s*,\s*|%\w+\s*,\s*)?\[[^]]*\]\s*,\s*)(\S+)",
    re.S,
)


@dataclass(frozen=True)
class Mutant:
    """A program with one line changed.

    number: counted through the mutants of the program; line: of the PTX, from 1
    what: what was done to which instruction
    """

    number: int
    line: int
    what: str
    program: Program


def mutants(program: Program) -> Iterator[Mutant]:
    """All of a program's kernel."""
    text = _COMMENT.sub(lambda one: " " * len(one[0]), program.ptx)
    number = 0
    for found in _CODE.finditer(text, *_body(text, program.entry)):
        code, guard = found["code"], found["guard"] or ""
        for what, changed in _changes(code):
            parts = [part.strip() for part in changed.split(";") if part.strip()]
            new = " ".join(f"{guard}{part};" for part in parts)
            if "%mutant" in new:
                new = f"{{ .reg .b32 %mutant; {new} }}"
            start, stop = found.span()
            line = text.count("\n", 0, start) + 1
            name = f"{what}: {' '.join(code.split())}"
            ptx = f"{program.ptx[:start]}{new}{program.ptx[stop:]}"
            yield Mutant(number, line, name, replace(program, ptx=ptx))
            number += 1


def _body(text: str, entry: str | None) -> tuple[int, int]:
    """Where the body of a kernel begins and ends: of the one, or of that name."""
    at = text.index(f".entry {entry}(" if entry else ".entry ")
    start = at = text.index("{", text.index(")", at))
    depth = 0
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return start, start + brace.start()
    return start, len(text)


def _changes(code: str) -> Iterator[tuple[str, str]]:
    """What is done to an instruction, and what it becomes."""
    if _DROPPED.match(code):
        yield "left out", ""
    groups = _GROUPS.search(code)
    if groups:
        more = int(groups[2]) + 1
        yield (
            "one group more",
            f"{code[: groups.start(2)]}{more}{code[groups.end(2) :]};",
        )
    tried = _TRIED.fullmatch(code)
    if tried:
        yield "no wait", f"setp.eq.u32 {tried['to']}, 0, 0;"
        if "parity" in tried["kind"]:
            start, stop = tried.span("parity")
            other = _other(tried["parity"], "xor.b32 %mutant, {}, 1")
            yield "other parity", f"{other}{code[:start]}%mutant{code[stop:]};"
    for name, form, step in (
        ("one arrival more", _COUNT, 1),
        ("16 bytes more", _BYTES, 16),
    ):
        counted = form.fullmatch(code)
        if counted:
            other = _other(counted[2], "add.u32 %mutant, {}, " + str(step))
            yield name, f"{other}{counted[1]}%mutant;"


def _other(operand: str, instruction: str) -> str:
    return instruction.format(operand) + ";"
