"""The forms of PTX instructions, from the grammar in ptx_forms.txt.

The grammar follows PTX ISA 9.0, "Instruction Set": a family begins with `== name`, and
each of its lines is `opcode : operands`. `[a|b|]` is one of the alternatives, `<x>` one
of the group that `<x> = ` lists. Lines allow more than the PTX ISA does, where that
makes them shorter: an assembler says which of their forms exist.

Operands: `16`, `32`, `64`, `128` registers of so many bits; `p` a predicate; `T` as
wide as the last type of the opcode, `S` as its first, `W` twice `T`; `3*32` a vector;
`a/b` a pair; `N/2` a vector of half as many as the opcode has columns; `[g]`, `[s]`,
`[x]`, `[l]`, `[c]` an address in global, shared, any, local and constant memory; what
follows `=` is written as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

_LINES = (Path(__file__).parent / "ptx_forms.txt").read_text("utf-8").splitlines()
# Whole families that the emulator leaves out: images in a layout of the hardware's own,
# what of a sparse matrix in shared memory no program of others has used here, and maps
# of which no document says what a copy does.
TEXTURE_FAMILIES = ("texture", "surface")
OUT_OF_SCOPE = (
    *TEXTURE_FAMILIES,
    "sparse wgmma",
    "undocumented tensor maps",
)
FAMILIES = tuple(line[3:] for line in _LINES if line.startswith("== "))
GROUPS = dict(
    line.removeprefix("<").split("> = ") for line in _LINES if line.startswith("<")
)


# Modifiers of a few instructions that ptxas takes and drops in most others, as in
# add.finite.s32; the emulator refuses them there.
OVERLOOKED = frozenset(
    "finite infinite number notanumber normal subnormal pred texref surfref samplerref "
    "rank box_dim global_dim global_stride global_address element_stride elemtype "
    "swizzle_mode fill_mode interleave_layout row col any all tf32 b1".split()
)

_ADDRESSES = {
    "[g]": "[%gp]",
    "[s]": "[%sp]",
    "[x]": None,  # of the space that the opcode names
    "[l]": "[%lp]",
    "[c]": None,
}
_GROUP = re.compile(r"<([^<>]+)>")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_TYPE = re.compile(r"(pred|[busf](?:8|16|32|64|128)|tf32|b?f16(?:x2)?|[busf]16x2)$")
_PREFIX = {16: "h", 32: "r", 64: "d", 128: "q", 1: "p"}


class Form(NamedTuple):
    """One instruction as text, such as `add.s32 %r0, %r1, %r2;`, of a family."""

    family: str
    text: str


def forms() -> Iterator[Form]:
    """Every form of the grammar, once."""
    seen: set[str] = set()
    family = ""
    for line in _LINES:
        if line.startswith("== "):
            family = line[3:]
        elif family and line:
            for text in _texts(line):
                if text not in seen:
                    seen.add(text)
                    yield Form(family, text)


def reordered(form: Form, generator: Random) -> Form:
    """The same with its modifiers in another order, if it has several.

    Two neighbours have changed places, or all are shuffled.
    """
    opcode, space, operands = form.text.partition(" ")
    name, *modifiers = opcode.removesuffix(";").split(".")
    if len(modifiers) > 1 and generator.random() < 0.5:
        place = generator.randrange(len(modifiers) - 1)
        modifiers[place : place + 2] = modifiers[place : place + 2][::-1]
    else:
        generator.shuffle(modifiers)
    end = "" if space else ";"
    text = f"{'.'.join([name, *modifiers])}{end}{space}{operands}"
    return Form(form.family, text)


def changed(form: Form, generator: Random) -> Form:
    """The same with one modifier more, one less, one twice, or another one."""
    opcode, space, operands = form.text.partition(" ")
    name, *modifiers = opcode.removesuffix(";").split(".")
    place = generator.randrange(len(modifiers) + 1)
    kind = generator.choice(("more", "more", "twice", "other", "less"))
    given = [generator.choice(MODIFIERS)]
    if kind == "twice":
        given = modifiers[place : place + 1]
    elif kind == "less":
        given = []
    behind = place if kind in ("more", "twice") else place + 1
    modifiers[place:behind] = given
    end = "" if space else ";"
    text = f"{'.'.join([name, *modifiers])}{end}{space}{operands}"
    return Form(form.family, text)


def _modifiers() -> tuple[str, ...]:
    """Those of the grammar, but for most shapes of wgmma and what ptxas overlooks."""
    opcodes = (form.text.split(" ")[0].removesuffix(";") for form in forms())
    found = {part for opcode in opcodes for part in opcode.split(".")[1:]}
    shapes = {part for part in found if part.startswith("m64n")}
    return tuple(sorted({*found - shapes - OVERLOOKED, "m64n8k16", "xyz", "oob"}))


def _texts(line: str) -> Iterator[str]:
    pattern, _, operands = line.partition(" :")
    for opcode in _opcodes(pattern):
        for given in product(*map(_choices, operands.split())):
            yield _text(opcode, [one for one in given if one])


def _opcodes(pattern: str) -> Iterator[str]:
    pattern = _GROUP.sub(lambda found: f"[{GROUPS[found[1]]}]", pattern)
    pieces = _CHOICE.split(pattern)  # text and choices, by turns
    parts = [
        piece.split("|") if place % 2 else [piece] for place, piece in enumerate(pieces)
    ]
    return map("".join, product(*parts))


def _choices(operand: str) -> list[str]:
    operand = _GROUP.sub(lambda found: f"<{found[1]}>", operand)
    alternatives = [operand]
    if operand.startswith("[") and operand not in _ADDRESSES:
        alternatives = _outer(operand[1:-1])
    return [one for item in alternatives for one in _expanded(item)]


def _outer(text: str) -> list[str]:
    """The alternatives of a choice: split at bars outside of groups in brackets."""
    return re.split(r"\|(?![^\[\]]*\])", text)


def _expanded(item: str) -> list[str]:
    found = _GROUP.search(item)
    if found is None:
        return [item]
    return [item.replace(found[0], one) for one in GROUPS[found[1]].split("|")]


def _text(opcode: str, operands: list[str]) -> str:
    types = [part for part in opcode.split(".") if _TYPE.match(part)]
    written = [_operand(i, one, opcode, types) for i, one in enumerate(operands)]
    return f"{opcode} {', '.join(written)};" if written else f"{opcode};"


def _operand(place: int, item: str, opcode: str, types: list[str]) -> str:
    if item.startswith("="):
        return item[1:]
    if item in _ADDRESSES:
        return _ADDRESSES[item] or _address(opcode)
    if item.startswith("!"):
        return "!" + _operand(place, item[1:], opcode, types)
    if item.startswith("N/"):  # D of a warpgroup, by the columns in the opcode
        count = int(re.findall(r"m64n(\d+)", opcode)[0]) // int(item[2:])
        return f"{{{', '.join(f'%w{i}' for i in range(count))}}}"
    if "/" in item:
        first, second = item.split("/")
        left = "_" if first == "_" else _register(place, first, types)
        return f"{left}|{_register(place + 5, second, types)}"
    if "*" in item:
        count, kind = item.split("*")
        names = [_register(8 * place + i, kind, types) for i in range(int(count))]
        return f"{{{', '.join(names)}}}"
    return _register(place, item, types)


def _address(opcode: str) -> str:
    parts = {part.split("::")[0] for part in opcode.split(".")}
    for space, pointer in (("shared", "sp"), ("local", "lp"), ("const", "cp")):
        if space in parts:
            return f"[%{pointer}]"
    return "[%gp]"


def _register(place: int, kind: str, types: list[str]) -> str:
    bits = {"T": lambda: _bits(types[-1]), "S": lambda: _bits(types[0])}
    if kind == "W":
        size = 2 * _bits(types[-1])
    elif kind == "p":
        size = 1
    else:
        size = bits[kind]() if kind in bits else int(kind)
    return f"%{_PREFIX[size]}{place}"


def _bits(name: str) -> int:
    if name == "pred":
        return 1
    if name.endswith("x2"):
        return 32
    return max(int(re.sub(r"\D+", "", name)), 16)


HEADER = """.version {version}
.target {target}
.address_size 64
.global .align 16 .b8 memory[256];
.const .align 16 .b8 constants[256];
"""
TEXTURES = ".global .texref tx0;\n.global .surfref sf0;\n"


def kernel(name: str, lines: list[str]) -> str:
    """An entry with the registers that the forms name, around these instructions."""
    body = "\n".join(lines)
    return f""".visible .entry {name}()
{{
.reg .b16 %h<80>; .reg .b32 %r<80>; .reg .b64 %d<80>; .reg .b128 %q<4>;
.reg .b32 %w<132>; .reg .pred %p<16>; .reg .b64 %gp, %sp, %lp, %cp;
.shared .align 16 .b8 tile[256]; .local .align 16 .b8 own[256];
mov.u64 %gp, memory; mov.u64 %sp, tile; mov.u64 %lp, own; mov.u64 %cp, constants;
{body}
{"table: .branchtargets L0;" if "table" in body else ""}
L0:
ret;
}}
"""


MODIFIERS = _modifiers()
