"""Numbers in PTX text: literals and integer constant expressions.

PTX ISA "Constants" and "Constant Expressions".
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator.ptx.syntax import Float, Integer

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]+|0|[1-9]\d*)U?$", re.A)
_FLOAT = re.compile(r"-?0([fF][0-9a-fA-F]{8}|[dD][0-9a-fA-F]{16})$")
_DECIMAL = re.compile(
    r"-?(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)$", re.A
)
_MAX_EXPRESSION = 256  # characters; deeper ones than these hold nobody writes
_BITS64 = 2**64 - 1
_EXPRESSION = re.compile(r"[(~-]*\s*\d[0-9a-fA-FxXU()+\-*/%&|^<>~\s]*")


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


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: lambda x, bits: x << _shift(bits),
    ast.RShift: lambda x, bits: x >> _shift(bits),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}


def constant_expression(text: str) -> int | None:
    """The value of an integer expression, or None (PTX ISA "Constant Expressions")."""
    if len(text) > _MAX_EXPRESSION or not _EXPRESSION.fullmatch(text):
        return None
    try:
        tree = ast.parse(text.replace("U", "").replace("/", "//"), mode="eval")
        return _evaluate(tree.body)
    except (SyntaxError, TypeError, KeyError, ArithmeticError, ValueError):
        return None


def _evaluate(node: ast.expr) -> int:
    """The value of a node; one that is no integer expression raises an error."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_evaluate(operand))
        case ast.BinOp(left=left, op=op, right=right):
            value = _OPERATORS[type(op)](_evaluate(left), _evaluate(right))
            return value if abs(value) <= _BITS64 else value & _BITS64
    raise TypeError("no integer expression")


def _shift(bits: int) -> int:
    if 0 <= bits < 64:
        return bits
    raise ValueError("more than the bits of a number")
