"""Numbers in PTX text: literals and integer constant expressions.

PTX ISA "Constants" and "Constant Expressions".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from alcop_mlir.runtime.emulator.ptx.syntax import Float, Integer

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]+|0|[1-9]\d*)U?$", re.A)
_FLOAT = re.compile(r"-?0([fF][0-9a-fA-F]{8}|[dD][0-9a-fA-F]{16})$")
_DECIMAL = re.compile(
    r"-?(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)$", re.A
)
_MAX_EXPRESSION = 256  # characters; deeper ones than these hold nobody writes
_BITS64 = 2**64 - 1
_EXPRESSION = re.compile(r"[-(~!+\s]*(?:\d|WARP_SZ)[\w()+\-*/%&|^<>~!=?:\s]*", re.A)
_WARP_SIZE = 32  # PTX ISA: WARP_SZ


def is_integer(text: str) -> bool:
    """Whether the text is one integer literal."""
    return _INTEGER.match(text) is not None


def read_literal(text: str) -> Integer | Float | None:
    """The number that the text is, or None if it is no literal."""
    if _INTEGER.match(text):
        return Integer(integer(text))
    found = _FLOAT.match(text)
    if found:
        size = 4 if found[1][0] in "fF" else 8
        bits = int(found[1][1:], 16)
        return Float(bits ^ (1 << (8 * size - 1)) if text[0] == "-" else bits, size)
    if _DECIMAL.match(text):
        return Float(int(np.float64(text).view(np.uint64)), 8)
    return None


def integer(text: str) -> int:
    """The value of an integer literal."""
    text = text.rstrip("U")
    digits = text.lstrip("-")
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        return int(text, 8)  # C-style octal
    return int(text, 0)


# Operators of two numbers: their order, and what they compute. PTX ISA "Integer
# Constant Expression Evaluation": 64 bits, unsigned where an operand is, and all bits.
_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda x, y: x or y),
    "&&": (2, lambda x, y: x and y),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    "<=": (7, operator.le),
    ">": (7, operator.gt),
    ">=": (7, operator.ge),
    "<<": (8, lambda x, bits: x << bits % 64),
    ">>": (8, lambda x, bits: x >> bits % 64),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)),
    "%": (10, lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1)),
}
_BITS = ("&", "^", "|")
_TRUTHS = ("||", "&&", "==", "!=", "<", "<=", ">", ">=")
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": operator.not_,
}


class _Number(NamedTuple):
    """64 bits, as a number from 0 on if it is unsigned."""

    value: int
    unsigned: bool = False

    def of(self, unsigned: bool) -> _Number:
        bits = self.value & _BITS64
        signed = bits - ((bits >> 63) << 64)
        return _Number(bits if unsigned else signed, unsigned)


_TOKEN = re.compile(r"\s*(\w+|<<|>>|[<>=!]=|&&|\|\||[-+*/%&|^~!<>?:()])", re.A)


def constant_expression(text: str) -> int | None:
    """The value of an integer expression, or None (PTX ISA "Constant Expressions").

    Its operators and their order are those of C.
    """
    if len(text) > _MAX_EXPRESSION or not _EXPRESSION.fullmatch(text):
        return None
    tokens = _TOKEN.findall(text)[::-1]  # the next one is the last
    try:
        value = _choice(tokens).value
    except (IndexError, ArithmeticError, ValueError):
        return None
    return None if tokens else value


def _choice(tokens: list[str]) -> _Number:
    """`a ? b : c`, or an expression without it; takes its tokens."""
    value = _infix(tokens, 1)
    if not tokens or tokens[-1] != "?":
        return value
    tokens.pop()
    yes = _choice(tokens)
    _take(tokens, ":")
    no = _choice(tokens)
    return (yes if value.value else no).of(yes.unsigned or no.unsigned)


def _infix(tokens: list[str], least: int) -> _Number:
    """Operators of that order at least, from the left."""
    x = _operand(tokens)
    while tokens and tokens[-1] in _BINARY and _BINARY[tokens[-1]][0] >= least:
        sign = tokens.pop()
        order, apply = _BINARY[sign]
        y = _infix(tokens, order + 1)
        unsigned = sign in _BITS or x.unsigned or y.unsigned
        if sign in ("<<", ">>"):
            unsigned = x.unsigned
        value = apply(x.of(unsigned).value, y.of(unsigned).value)
        if sign in _TRUTHS:
            value, unsigned = int(bool(value)), False
        x = _Number(value).of(unsigned)
    return x


def _operand(tokens: list[str]) -> _Number:
    token = tokens.pop()
    if token in _UNARY:
        x = _operand(tokens)
        unsigned = token == "~" or (x.unsigned and token != "!")
        return _Number(int(_UNARY[token](x.value))).of(unsigned)
    if token == "(":
        value = _choice(tokens)
        _take(tokens, ")")
        return value
    if token == "WARP_SZ":
        return _Number(_WARP_SIZE)
    if not is_integer(token):
        raise ValueError(f"no integer: {token}")
    value = integer(token)
    return _Number(value).of(token.endswith("U") or value >> 63 != 0)


def _take(tokens: list[str], wanted: str) -> None:
    if tokens.pop() != wanted:
        raise ValueError(f"expected {wanted}")
