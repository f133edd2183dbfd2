"""One warp runs one matrix instruction on registers given as numbers per lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from kernel_text import run_kernel

Place = Callable[[int, int], tuple[int, int]]  # lane and element to row and column


def packed(values: Sequence[int], bits: int) -> list[int]:
    """Elements of some bits side by side in words of 32, the first one lowest."""
    per = 32 // bits
    words = []
    for start in range(0, len(values), per):
        word = 0
        for place, value in enumerate(values[start : start + per]):
            word |= (int(value) & ((1 << bits) - 1)) << (bits * place)
        words.append(word)
    return words


def registers(matrix: np.ndarray, bits: int, count: int, place: Place) -> np.ndarray:
    """(32, words) of the elements, bit patterns, that each lane holds."""
    rows = []
    for lane in range(32):
        held = [int(matrix[place(lane, i)]) for i in range(count)]
        rows.append(held if bits == 64 else packed(held, bits))
    return np.array(rows, np.uint64 if bits == 64 else np.uint32)


def placed(
    words: np.ndarray, dtype: type, shape: tuple[int, ...], place: Place
) -> np.ndarray:
    """The matrix of which each lane holds some elements, of type `dtype`."""
    out = np.zeros(shape, dtype)
    held = np.ascontiguousarray(words).view(dtype).reshape(32, -1)
    for lane in range(32):
        for i in range(held.shape[1]):
            out[place(lane, i)] = held[lane, i]
    return out


def run(
    opcode: str,
    operands: Sequence[np.ndarray],
    result_words: int,
    *,
    result_bits: int = 32,
    tail: str = "",
    target: str = "sm_80",
) -> np.ndarray:
    """The words of D (32, result_words); operands are (32, words) each.

    tail: of the operands, `%x0` being the first word of the last operand
    """
    dtype = np.uint64 if result_bits == 64 else np.uint32
    out = np.zeros((32, result_words), dtype)
    names = "abcx"
    body = ".reg .b64 %p, %o; .reg .b32 %lane; mov.u32 %lane, %tid.x;\n"
    body += f".reg .b{result_bits} %d<{result_words}>;\n"
    lists = []
    for place, given in enumerate(operands):
        size, name = given.dtype.itemsize, names[place]
        count = given.shape[1]
        body += f".reg .b{8 * size} %{name}<{count}>;\n"
        body += f"ld.param.u64 %p, [p{place}];\n"
        body += f"mad.wide.u32 %p, %lane, {size * count}, %p;\n"
        for i in range(count):
            body += f"ld.global.b{8 * size} %{name}{i}, [%p+{size * i}];\n"
        if name != "x":
            items = ", ".join(f"%{name}{i}" for i in range(count))
            lists.append("{" + items + "}")
    d = "{" + ", ".join(f"%d{i}" for i in range(result_words)) + "}"
    body += f"{opcode} {', '.join([d, *lists])}{tail};\n"
    size = result_bits // 8
    body += f"ld.param.u64 %o, [p{len(operands)}];\n"
    body += f"mad.wide.u32 %o, %lane, {size * result_words}, %o;\n"
    for i in range(result_words):
        body += f"st.global.b{result_bits} [%o+{size * i}], %d{i};\n"
    parameters = ["u64"] * (len(operands) + 1)
    run_kernel(
        body, parameters, [*operands, out], block=(32,), target=target, version="8.4"
    )
    return out
