"""LLVM IR text as MLIR prints it, rewritten for the LLVM that generates PTX.

Before:  %x = fpext bfloat %a to float
         %y = fmul float %x, 1.000000e-01
After:   %bf16.x.h = bitcast bfloat %a to i16
         %bf16.x.w = zext i16 %bf16.x.h to i32
         %bf16.x.s = shl i32 %bf16.x.w, 16
         %x = bitcast i32 %bf16.x.s to float
         %y = fmul float %x, 0x3FB99999A0000000

An extension of bfloat is written as an explicit shift, to hide it from LLVM's
InstCombine (visitFPTrunc, LLVM 22): that turns `fptrunc (fmul (fpext %a), %y)` to half
into arithmetic in half, as bfloat has the shorter mantissa, and loses every value
beyond the exponents of half. The shift costs nothing: the back end generates the same
code for both.

Two conversions that the back end generates wrong code for are written as others: wide
integers to bfloat, which it rounds twice, and floats to i1, which it gives for 0 only.
Constants are written as an older LLVM reads them. A struct that many elements are taken
from, as the accumulators of `wgmma` are, is nine tenths of a text where each line has
its type in full: such a type gets a name.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable


def for_llvmlite(text: str) -> str:
    """`text` as llvmlite's LLVM parses it without changing its numbers."""
    text = _EXTENSION.sub(_shifted, _older_constants(_with_named_structs(text)))
    text = _TO_BIT.sub(_through_integer, text)
    return _with_declarations(_TO_BFLOAT.sub(_rounded_once, text))


_SOURCE = re.compile(r"^source_filename = .*\n", re.M)  # in front of all types
_LONG_STRUCT = re.compile(r"\{ (half|bfloat|float|double|i\d+)(?:, \1){7,} \}")


def _with_named_structs(text: str) -> str:
    """`text`, in which long structs are defined once, in front of all that has them."""
    named: list[str] = []
    while found := _LONG_STRUCT.search(text):
        name = f"%alcop.struct.{len(named)}"
        text = text.replace(found[0], name)
        named.append(f"{name} = type {found[0]}\n")
    head = _SOURCE.search(text)
    place = head.end() if head else 0
    return text[:place] + "".join(named) + text[place:]


_EXTENSION = re.compile(
    r"^(?P<indent> *)%(?P<name>[\w.$-]+) = fpext "
    r"(?P<from>(?:<(?P<lanes>\d+) x )?bfloat>?) (?P<value>.+?) "
    r"to (?P<to>(?:<\d+ x )?(?:float|double)>?)",
    re.M,
)


def _shifted(match: re.Match[str]) -> str:
    """The extension as a shift of the bits; to a double by way of the float."""
    name, lanes, to = match["name"], match["lanes"], match["to"]

    def kind(element: str) -> str:
        return f"<{lanes} x {element}>" if lanes else element

    # Names, as unnamed values have to be numbered in order.
    half, word, shifted, single = (f"%bf16.{name}.{step}" for step in "hwsf")
    distance = f"splat (i32 {_BFLOAT_SHIFT})" if lanes else str(_BFLOAT_SHIFT)
    steps = [
        f"{half} = bitcast {match['from']} {match['value']} to {kind('i16')}",
        f"{word} = zext {kind('i16')} {half} to {kind('i32')}",
        f"{shifted} = shl {kind('i32')} {word}, {distance}",
    ]
    if to == kind("float"):
        steps.append(f"%{name} = bitcast {kind('i32')} {shifted} to {to}")
    else:
        steps.append(f"{single} = bitcast {kind('i32')} {shifted} to {kind('float')}")
        steps.append(f"%{name} = fpext {kind('float')} {single} to {to}")
    return "\n".join(match["indent"] + step for step in steps)


_TO_BIT = re.compile(
    r"^(?P<head> *%(?P<name>[\w.$-]+) = (?:fptosi|fptoui) .+ to )"
    r"(?P<to>i1|<(?P<lanes>\d+) x i1>)(?=\s|,|$)",
    re.M,
)


def _through_integer(match: re.Match[str]) -> str:
    """To i1 by way of i32: LLVM 22's NVPTX says of a float whether it is 0."""
    to, name = match["to"], match["name"]
    wide = to.replace("i1", "i32")
    head = match["head"].replace(f"%{name} =", f"%bit.{name} =", 1)
    indent = head[: len(head) - len(head.lstrip())]
    return f"{head}{wide}\n{indent}%{name} = trunc {wide} %bit.{name} to {to}"


_TO_BFLOAT = re.compile(
    r"^(?P<indent> *)%(?P<name>[\w.$-]+) = (?P<op>sitofp|uitofp) (?:nneg )?"
    r"(?P<from>(?:<(?P<lanes>\d+) x )?(?P<integer>i32|i64)>?) (?P<value>.+?) "
    r"to (?:<\d+ x )?bfloat>?",
    re.M,
)
# Rounding towards zero, by op and type: nothing else looks into them.
_TOWARDS_ZERO = {
    ("sitofp", "i32"): "@llvm.nvvm.i2f.rz",
    ("uitofp", "i32"): "@llvm.nvvm.ui2f.rz",
    ("sitofp", "i64"): "@llvm.nvvm.ll2f.rz",
    ("uitofp", "i64"): "@llvm.nvvm.ull2f.rz",
}


def _rounded_once(match: re.Match[str]) -> str:
    """To bfloat by way of a float whose last bit says whether it is exact.

    By way of the nearest float, as LLVM 22's NVPTX does it, 2^24 + 2^16 + 1 would be
    rounded to a tie of two bfloats, and then to the wrong one.
    """
    name, lanes, integer = match["name"], match["lanes"], match["integer"]
    if lanes is None:
        lines = _odd_steps(match["op"], integer, match["value"], f"%{name}", name)
        return "\n".join(match["indent"] + line for line in lines)
    lines, made = [], "poison"
    for lane in range(int(lanes)):
        one, own = f"%odd.{name}.{lane}", f"{name}.{lane}"
        into = f"%{name}" if lane == int(lanes) - 1 else f"{one}.all"
        lines += [
            f"{one}.in = extractelement {match['from']} {match['value']}, i32 {lane}",
            *_odd_steps(match["op"], integer, f"{one}.in", f"{one}.out", own),
            f"{into} = insertelement <{lanes} x bfloat> {made}, bfloat {one}.out, "
            f"i32 {lane}",
        ]
        made = into
    return "\n".join(match["indent"] + line for line in lines)


def _odd_steps(op: str, integer: str, value: str, result: str, name: str) -> list[str]:
    back = "fptosi" if op == "sitofp" else "fptoui"
    zero, whole, differs, odd, bits, sticky, single = (
        f"%odd.{name}.{step}" for step in "zwdobsf"
    )
    return [
        f"{zero} = call float {_TOWARDS_ZERO[op, integer]}({integer} {value})",
        f"{whole} = {back} float {zero} to {integer}",
        f"{differs} = icmp ne {integer} {whole}, {value}",
        f"{odd} = zext i1 {differs} to i32",
        f"{bits} = bitcast float {zero} to i32",
        f"{sticky} = or i32 {bits}, {odd}",
        f"{single} = bitcast i32 {sticky} to float",
        f"{result} = fptrunc float {single} to bfloat",
    ]


def _with_declarations(text: str) -> str:
    """`text`, in which the functions that it was made to call are declared."""
    used = [key for key, name in _TOWARDS_ZERO.items() if f"{name}(" in text]
    lines = [f"declare float {_TOWARDS_ZERO[key]}({key[1]})\n" for key in used]
    return text + "".join(lines)


_BFLOAT_SHIFT = 16  # a bfloat is the upper half of a float


def _older_constants(text: str) -> str:
    """Floating-point constants as the LLVM of llvmlite reads them.

    MLIR's newer LLVM prints a constant as the shortest decimal that its own type rounds
    back to it, as that type's bits (`f0x3B000000`), or as `+inf` or `+qnan`. An older
    one takes only exact decimals, a float by the bits of the double, and the 16-bit
    formats as `0xH` and `0xR` with their own bits: all are written so here.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _MAY_HOLD_CONSTANT.search(line):
            lines[number] = _older_line(line)
    return "\n".join(lines)


def _older_line(line: str) -> str:
    kind = ""

    def rewritten(match: re.Match[str]) -> str:
        nonlocal kind
        if match["type"]:
            kind = match["type"]  # of the constants that follow on the line
            return match[0]
        if match["bits"]:
            return _older_bits(match["bits"], kind)
        if kind not in _CONSTANT or (kind == "double" and match["value"][-1].isdigit()):
            return match[0]
        return _CONSTANT[kind](float(match["value"].replace("qnan", "nan")))

    return _CONSTANTS.sub(rewritten, line)


def _older_bits(bits: str, kind: str) -> str:
    """The older form of a constant given by its type's own bits."""
    if len(bits) == len("3B00"):
        return f"0x{'R' if kind == 'bfloat' else 'H'}{bits}"
    if len(bits) == len("3B000000"):
        (value,) = struct.unpack(">f", bytes.fromhex(bits))
        return _CONSTANT["float"](value)
    return f"0x{bits}"


# Few lines do: looking for them first takes a tenth of the time.
_MAY_HOLD_CONSTANT = re.compile(r"\bf0x|\d\.\d|[+-](?:inf|q?nan)\b")
_CONSTANTS = re.compile(
    r"\b(?P<type>half|bfloat|float|double)\b"
    r"|\bf0x(?P<bits>(?:[0-9A-Fa-f]{4}){1,4})\b"
    r"|(?<![\w.%@])(?P<value>-?\d+\.\d+(?:e[+-]\d+)?|[+-](?:inf|q?nan))\b"
)
_CONSTANT: dict[str, Callable[[float], str]] = {
    "double": lambda value: f"0x{struct.pack('>d', value).hex().upper()}",
    "float": lambda value: f"0x{struct.pack('>d', _rounded(value)).hex().upper()}",
    "half": lambda value: f"0xH{struct.pack('>e', value).hex().upper()}",
    # The decimal names a bfloat: the upper half of the float next to it.
    "bfloat": lambda value: f"0xR{_bfloat_bits(value):04X}",
}


def _rounded(value: float) -> float:
    """The float nearest to a decimal."""
    return struct.unpack(">f", struct.pack(">f", value))[0]


def _bfloat_bits(value: float) -> int:
    (bits,) = struct.unpack(">I", struct.pack(">f", value))
    return (bits + 0x8000) >> 16
