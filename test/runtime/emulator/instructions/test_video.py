"""The video instructions against the PTX ISA's description, on Python integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from integer_lanes import check
from operand_values import FIXED, seeds

TYPES = ("u32", "s32")
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def average(a: int, b: int) -> int:
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": average,
}


def as_signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def part_of(word: int, part: str, kind: str) -> int:
    """A byte, a half-word or the whole, by the type of the operand."""
    bits = {"b": 8, "h": 16}.get(part[:1], 32)
    word >>= bits * int(part[1:] or 0)
    return as_signed(word, bits) if kind == "s32" else word % (1 << bits)


def clamp(value: int, bits: int, signed: bool) -> int:
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    return max(low, min(high, value))


def merged(value: int, part: str, c: int) -> int:
    bits = 8 if part[0] == "b" else 16
    at = bits * int(part[1:])
    hole = ~(((1 << bits) - 1) << at)
    return c & hole | (value % (1 << bits)) << at


@dataclass(frozen=True)
class Scalar:
    """One scalar form: its operation on numbers, its types, parts and second step."""

    opcode: str
    fn: Callable[[int, int], int]
    a: str
    b: str
    signed: bool
    a_part: str = ""
    b_part: str = ""
    d_part: str = ""
    second: str = ""
    saturates: bool = False

    @property
    def text(self) -> str:
        parts = [f".{p}" if p else "" for p in (self.d_part, self.a_part, self.b_part)]
        d, a, b = (f"%{n}{p}" for n, p in zip("dab", parts, strict=True))
        more = ", %c" if self.d_part or self.second else ""
        return f"{self.opcode} {d}, {a}, {b}{more};"

    def model(self, a: int, b: int, c: int) -> int:
        value = self.fn(
            part_of(a, self.a_part, self.a), part_of(b, self.b_part, self.b)
        )
        if self.saturates:
            bits = {"b": 8, "h": 16}.get(self.d_part[:1], 32)
            value = clamp(value, bits, self.signed)
        if self.d_part:
            return merged(value, self.d_part, c)
        if not self.second:
            return value
        kind = "s32" if self.signed else "u32"
        x, y = part_of(value, "", kind), part_of(c, "", kind)
        return {"add": x + y, "min": min(x, y), "max": max(x, y)}[self.second]


PARTS = ["", "b0", "b1", "b2", "b3", "h0", "h1"]


def scalar_forms(seed: int) -> list[Scalar]:
    pick = random.Random(seed)
    found = []
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr"):
        for step in ("", "add", "min", "max", "part"):
            d, a, b = (pick.choice(TYPES) for _ in range(3))
            d_part = pick.choice(PARTS[1:]) if step == "part" else ""
            second = "" if step == "part" else step
            ending = f".{second}" if second else ""
            sat = pick.random() < 0.5 and name != "vset"
            middle = ".sat" if sat else ""
            if name == "vset":
                test = pick.choice(list(COMPARE))
                opcode, d = f"vset.{a}.{b}.{test}{ending}", "u32"
                fn: Callable[[int, int], int] = comparing(test)
            elif name in ("vshl", "vshr"):
                b, mode = "u32", pick.choice(("clamp", "wrap"))
                opcode = f"{name}.{d}.{a}.u32{middle}.{mode}{ending}"
                fn = shifting(name, mode)
            else:
                opcode = f"{name}.{d}.{a}.{b}{middle}{ending}"
                fn = ARITHMETIC[name]
            a_part, b_part = pick.choice(PARTS), pick.choice(PARTS)
            found.append(
                Scalar(
                    opcode, fn, a, b, d == "s32", a_part, b_part, d_part, second, sat
                )
            )
    return found


def comparing(test: str) -> Callable[[int, int], int]:
    return lambda a, b: int(COMPARE[test](a, b))


def shifting(name: str, mode: str) -> Callable[[int, int], int]:
    def shift(a: int, b: int) -> int:
        count = min(b, 32) if mode == "clamp" else b % 32
        return a << count if name == "vshl" else a >> count

    return shift


@FIXED
@given(seed=seeds)
def test_scalar(seed: int) -> None:
    for form in scalar_forms(seed):
        check(form.text, ("b32", "b32", "b32"), "b32", form.model, seed)


@dataclass(frozen=True)
class MultiplyAdd:
    """One form of vmad; `negative` names the operands with a minus."""

    a: str
    b: str
    a_part: str
    b_part: str
    negative: str
    plus_one: bool
    shift: int
    saturates: bool

    @property
    def signed(self) -> bool:
        return "s32" in (self.a, self.b) or self.negative in ("a", "b", "c")

    @property
    def text(self) -> str:
        opcode = f"vmad.s32.{self.a}.{self.b}{'.po' if self.plus_one else ''}"
        opcode += ".sat" if self.saturates else ""
        opcode += f".shr{self.shift}" if self.shift else ""
        given_parts = zip("abc", (self.a_part, self.b_part, ""), strict=True)
        operands = [
            f"{'-' if name in self.negative else ''}%{name}{'.' if part else ''}{part}"
            for name, part in given_parts
        ]
        return f"{opcode} %d, {', '.join(operands)};"

    def model(self, a: int, b: int, c: int) -> int:
        x, y = part_of(a, self.a_part, self.a), part_of(b, self.b_part, self.b)
        z = part_of(c, "", "s32" if self.signed else "u32")
        x = -x if "a" in self.negative else x
        y = -y if "b" in self.negative else y
        z = -z if "c" in self.negative else z
        value = (x * y + z + int(self.plus_one)) >> self.shift
        return clamp(value, 32, self.signed) if self.saturates else value


@pytest.mark.parametrize("signs", ["", "a", "b", "ab", "c", "po"])
@FIXED
@given(seed=seeds)
def test_vmad(signs: str, seed: int) -> None:
    pick = random.Random(seed)
    for a in TYPES:
        for b in TYPES:
            form = MultiplyAdd(
                a,
                b,
                pick.choice(PARTS),
                pick.choice(PARTS),
                "" if signs == "po" else signs,
                signs == "po",
                pick.choice((0, 7, 15)),
                pick.random() < 0.5,
            )
            check(form.text, ("b32", "b32", "b32"), "b32", form.model, seed)


@dataclass(frozen=True)
class Several:
    """A form with `count` parts; parts are named from the highest place down."""

    opcode: str
    fn: Callable[[int, int], int]
    count: int
    a: str
    b: str
    signed: bool
    step: str
    kept: tuple[int, ...]
    a_parts: tuple[int, ...] = ()
    b_parts: tuple[int, ...] = ()

    @property
    def letter(self) -> str:
        return "b" if self.count == 4 else "h"

    @property
    def text(self) -> str:
        operands = [
            f"%{name}"
            + (f".{self.letter}{''.join(map(str, digits))}" if digits else "")
            for name, digits in zip(
                "dab", (self.kept, self.a_parts, self.b_parts), strict=True
            )
        ]
        return f"{self.opcode} {', '.join(operands)}, %c;"

    def number(self, word: int, kind: str) -> int:
        bits = 32 // self.count
        return as_signed(word, bits) if kind == "s32" else word % (1 << bits)

    def model(self, a: int, b: int, c: int) -> int:
        n, bits = self.count, 32 // self.count
        a_parts = self.a_parts or tuple(range(n - 1, -1, -1))
        b_parts = self.b_parts or tuple(range(2 * n - 1, n - 1, -1))
        both, out = b << 32 | a, c
        for place in self.kept:
            x = self.number(both >> bits * a_parts[n - 1 - place], self.a)
            y = self.number(both >> bits * b_parts[n - 1 - place], self.b)
            value = self.fn(x, y)
            if self.step == ".add":
                out += value
                continue
            if self.step == ".sat":
                value = clamp(value, bits, self.signed)
            out = merged(value, f"{self.letter}{place}", out)
        return out


@pytest.mark.parametrize("name", [*ARITHMETIC, "vset"])
@pytest.mark.parametrize("count", [2, 4])
@FIXED
@given(seed=seeds)
def test_several(count: int, name: str, seed: int) -> None:
    pick = random.Random(seed)
    for step in ("", ".sat", ".add"):
        d, a, b = (pick.choice(TYPES) for _ in range(3))
        test = pick.choice(list(COMPARE))
        if name == "vset":
            step, d, fn = step.replace(".sat", ""), "u32", comparing(test)
            opcode = f"vset{count}.{a}.{b}.{test}{step}"
        else:
            fn, opcode = ARITHMETIC[name], f"{name}{count}.{d}.{a}.{b}{step}"
        kept = pick.sample(range(count), pick.randint(1, count))
        chosen = [
            tuple(pick.randrange(2 * count) for _ in range(count)) for _ in range(2)
        ]
        if pick.random() < 0.3:  # what is left out: all of a, all of b
            chosen = [(), ()]
        places = tuple(sorted(kept, reverse=True))
        form = Several(opcode, fn, count, a, b, d == "s32", step, places, *chosen)
        check(form.text, ("b32", "b32", "b32"), "b32", form.model, seed)
