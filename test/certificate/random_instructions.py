"""Random instructions of integers and predicates, one after the other, as PTX text.

Operands are edge numbers, parameters, numbers of threads and blocks, and what came of
instructions before. The text that runs stores all registers at its end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

THREADS, BLOCKS = 64, 2
_BITS = {"h": 16, "r": 32, "d": 64}
_LETTER = {bits: letter for letter, bits in _BITS.items()}
_COUNT = 10  # registers of each kind
REGISTERS = [f"%{letter}{n}" for letter in "phrd" for n in range(_COUNT)]
_EDGES = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 4096)
_TESTS = "eq ne lt le gt ge".split()
_HEAD = """
.version 8.3
.target sm_80
.address_size 64
.visible .entry f(.param .u64 a, .param .u32 n, .param .u64 m, .param .u64 out)
.reqntid 64, 1, 1
{{
.reg .pred %p<10>;
.reg .b16 %h<10>;
.reg .b32 %r<10>, %s<3>;
.reg .b64 %d<10>, %t<3>;
{body}
{end}
ret;
}}
"""
_START = """
ld.param.u64 %t0, [a];
ld.param.u32 %r0, [n];
ld.param.u64 %d0, [m];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
cvt.u64.u32 %d1, %r1;
cvt.u64.u32 %d2, %r2;
ld.global.u32 %r3, [%t0];
cvt.u16.u32 %h0, %r1;
cvt.u16.u32 %h1, %r0;
and.b32 %r4, %r0, 31;
and.b64 %d3, %d0, 1023;
mul.wide.u32 %d4, %r2, 64;
add.u32 %r5, %r1, %r4;
shl.b32 %r6, %r2, 6;
add.s32 %r6, %r6, %r1;
mad.lo.s32 %r7, %r4, 16, %r1;
sub.s32 %r8, %r1, 32;
mad.wide.s32 %d5, %r1, 8, %d3;
mad.lo.u64 %d6, %d2, 256, %d3;
shr.u64 %d7, %d3, 3;
mul.wide.s32 %d8, %r8, 24;
cvt.u16.u32 %h2, %r4;
mul.lo.s16 %h3, %h0, 16;
add.s16 %h3, %h3, %h2;
setp.lt.u32 %p0, %r1, 20;
setp.lt.u32 %p1, %r0, 100;
setp.eq.u32 %p2, %r2, 0;
setp.gt.s64 %p3, %d3, 512;
"""


@dataclass(frozen=True)
class Program:
    """Instructions, one in each line."""

    code: tuple[str, ...]

    @property
    def text(self) -> str:
        """As PTX."""
        return _HEAD.format(body="\n".join(self.code), end="")

    @property
    def ran(self) -> str:
        """The text that stores what registers hold at the end."""
        return _HEAD.format(body="\n".join(self.code), end=_stores())

    def without(self, line: int) -> Program:
        """The same without a line of the text."""
        left = line - 1 - _HEAD[: _HEAD.index("{body}")].count("\n")
        return Program((*self.code[:left], *self.code[left + 1 :]))


class _Drawer:
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def one(self, *of: str) -> str:
        return self.random.choice(of)

    def number(self, bits: int) -> str:
        """An edge, or beside one."""
        value = self.random.choice(_EDGES)
        if self.random.random() < 0.4:
            power = 1 << self.random.choice((7, 8, 15, 16, 31, 32, 63, bits - 1))
            value = power + self.random.choice((-2, -1, 0, 1))
        if self.random.random() < 0.3:
            value = -value
        value = max(value, -(1 << (bits - 1)))
        return str(value % (1 << bits) if value >= 1 << bits else value)

    def operand(self, bits: int) -> str:
        if self.random.random() < 0.3:
            return self.number(bits)
        return self.register(bits)

    def register(self, bits: int) -> str:
        return f"%{_LETTER[bits]}{self.random.randrange(_COUNT)}"

    def predicate(self) -> str:
        return f"%p{self.random.randrange(_COUNT)}"

    def guarded(self, text: str) -> str:
        if self.random.random() < 0.85:
            return text
        return f"@{self.one('', '!')}{self.predicate()} {text}"

    def instruction(self) -> str:
        kinds = (self.sums, self.sums, self.products, self.bits, self.bits, self.fields)
        others = self.moves, self.conversions, self.tests, self.tests, self.logic
        return self.guarded(self.random.choice((*kinds, *others))() + ";")

    def sums(self) -> str:
        kind, bits = self.one("u", "s"), self.random.choice((16, 32, 64))
        name = self.one("add", "sub", "min", "max", "div", "rem", "mul.lo", "sub")
        name += self.one("", "", "", ".sat") if name in ("add", "sub") else ""
        if name.endswith(".sat"):
            kind, bits = "s", 32
        if self.random.random() < 0.15:
            name, kind = self.one("neg", "abs"), "s"
            return f"{name}.s{bits} {self.register(bits)}, {self.operand(bits)}"
        pair = f"{self.operand(bits)}, {self.operand(bits)}"
        return f"{name}.{kind}{bits} {self.register(bits)}, {pair}"

    def products(self) -> str:
        kind, bits = self.one("u", "s"), self.random.choice((16, 32, 32, 64))
        how = self.one("lo", "hi", "wide" if bits < 64 else "lo")
        out = 2 * bits if how == "wide" else bits
        name = self.one("mul", "mad")
        operands = [self.register(out), self.operand(bits), self.operand(bits)]
        operands += [self.operand(out)] if name == "mad" else []
        return f"{name}.{how}.{kind}{bits} {', '.join(operands)}"

    def bits(self) -> str:
        bits = self.random.choice((16, 32, 64))
        name = self.one("and", "or", "xor", "shl", "shr", "shr", "not", "cnot")
        kind = self.one("b", "u", "s") if name == "shr" else "b"
        operands = [self.register(bits), self.operand(bits)]
        if name in ("shl", "shr"):
            operands.append(self.operand(32))
        elif name not in ("not", "cnot"):
            operands.append(self.operand(bits))
        return f"{name}.{kind}{bits} {', '.join(operands)}"

    def fields(self) -> str:
        bits = self.random.choice((32, 64))
        small = [
            self.one(self.register(32), str(self.random.randrange(70))) for _ in "12"
        ]
        if self.random.random() < 0.15:
            small[0] = str(self.random.choice((256, 257, -1, 255)))
        out, one, other = self.register(bits), self.operand(bits), self.operand(bits)
        words = [self.register(32), *(self.operand(32) for _ in range(3))]
        name = self.one(
            "bfe", "bfe", "bfi", "lop3", "prmt", "shf", "popc", "clz", "brev"
        )
        if name == "bfe":
            return f"bfe.{self.one('u', 's')}{bits} {out}, {one}, {', '.join(small)}"
        if name == "bfi":
            return f"bfi.b{bits} {out}, {one}, {other}, {', '.join(small)}"
        if name == "lop3":
            return f"lop3.b32 {', '.join(words)}, {self.random.randrange(256)}"
        if name == "prmt":
            mode = self.one("", "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")
            return f"prmt.b32{mode} {', '.join(words)}"
        if name == "shf":
            how = f"{self.one('l', 'r')}.{self.one('wrap', 'clamp')}"
            return f"shf.{how}.b32 {', '.join(words)}"
        to = out if name == "brev" else words[0]
        return f"{name}.b{bits} {to}, {one}"

    def moves(self) -> str:
        bits = self.random.choice((16, 32, 64))
        out, half = self.register(bits), bits // 2
        what = self.one("move", "pack", "unpack", "selp", "selp", "slct", "shfl")
        if what == "pack" and bits > 16:
            return (
                f"mov.b{bits} {out}, {{{self.register(half)}, {self.register(half)}}}"
            )
        if what == "unpack" and bits > 16:
            pair = [self.register(half), self.register(half)]
            pair[self.random.randrange(2)] = self.one("_", pair[0] + "")
            if pair[0] == pair[1]:
                pair[0] = "_"
            return f"mov.b{bits} {{{', '.join(pair)}}}, {out}"
        if what == "selp":
            two = f"{self.operand(bits)}, {self.operand(bits)}"
            return f"selp.b{bits} {out}, {two}, {self.predicate()}"
        if what == "slct":
            two = f"{self.operand(bits)}, {self.operand(bits)}"
            return f"slct.u{bits}.s32 {out}, {two}, {self.operand(32)}"
        if what == "shfl":
            mode, lane = self.one("idx", "idx", "up", "down", "bfly"), self.operand(32)
            last = self.one("31", "31", "0", "3", "0x1c1f", "0x101f")
            out = self.register(32) + self.one("", f"|{self.predicate()}")
            return (
                f"shfl.sync.{mode}.b32 {out}, {self.register(32)}, {lane}, {last}, -1"
            )
        return f"mov.{self.one('b', 'u', 's')}{bits} {out}, {self.operand(bits)}"

    def conversions(self) -> str:
        widths = (8, 16, 32, 64)
        to, of = (self.random.choice(widths) for _ in "12")
        out = max(to, self.random.choice(widths), 16)
        source = max(of, self.random.choice(widths), 16)
        more = self.one("", "", "", ".sat")
        kinds = f"{self.one('u', 's')}{to}.{self.one('u', 's')}{of}"
        return f"cvt{more}.{kinds} {self.register(out)}, {self.register(source)}"

    def tests(self) -> str:
        kind, bits = self.one("u", "s", "b"), self.random.choice((16, 32, 64))
        test = self.one(*(_TESTS if kind != "b" else _TESTS[:2]))
        if kind == "u" and self.random.random() < 0.3:
            test = self.one("lo", "ls", "hi", "hs")
        out, more = self.predicate(), ""
        if self.random.random() < 0.2:
            out = self.one(f"{out}|_", f"_|{out}")
        if self.random.random() < 0.2:
            test += "." + self.one("and", "or", "xor")
            more = f", {self.one('', '!')}{self.predicate()}"
        pair = f"{self.operand(bits)}, {self.operand(bits)}"
        return f"setp.{test}.{kind}{bits} {out}, {pair}{more}"

    def logic(self) -> str:
        out, one, other = (self.predicate() for _ in "123")
        name = self.one("and", "or", "xor", "not", "mov")
        if name == "mov":
            return f"mov.pred {out}, {self.one(one, '1', '0', '-1', '2')}"
        return f"{name}.pred {out}, {one}" + ("" if name == "not" else f", {other}")


def drawn(seed: int, count: int = 24) -> Program:
    """The program of that number; all registers are written at first."""
    drawer = _Drawer(seed)
    first = [line for line in _START.splitlines() if line]
    known = {line.split()[1].rstrip(",") for line in first}
    for name in REGISTERS:
        if name not in known and name[1] != "p":
            bits = _BITS[name[1]]
            first.append(f"mov.b{bits} {name}, {drawer.number(bits)};")
        elif name not in known:
            first.append(f"mov.pred {name}, {drawer.one('0', '1')};")
    return Program((*first, *(drawer.instruction() for _ in range(count))))


def _stores() -> str:
    """Each thread stores all of its registers, as numbers of 64 bits."""
    lines = [
        "ld.param.u64 %t1, [out];",
        "mov.u32 %s0, %tid.x;",
        "mov.u32 %s1, %ctaid.x;",
        f"mad.lo.u32 %s0, %s1, {THREADS}, %s0;",
        f"mad.wide.u32 %t1, %s0, {8 * len(REGISTERS)}, %t1;",
    ]
    for place, name in enumerate(REGISTERS):
        if name[1] == "p":
            lines.append(f"selp.b64 %t2, 1, 0, {name};")
        elif name[1] == "d":
            lines.append(f"mov.b64 %t2, {name};")
        else:
            lines.append(f"cvt.u64.u{_BITS[name[1]]} %t2, {name};")
        lines.append(f"st.global.b64 [%t1+{8 * place}], %t2;")
    return "\n".join(lines)
