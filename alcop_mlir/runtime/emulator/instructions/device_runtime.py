"""call: of the functions that the CUDA device runtime brings.

CUDA C++ Programming Guide: "Formatted Output" (`vprintf`, of which the second operand
points at what is printed, each aligned to its size), "Assertion" (`__assertfail`, which
takes message, file, line, function, and the size of a character), "Dynamic Global
Memory Allocation" (`malloc`, `free`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, U32, U64, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.memory import GlobalMemory
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.program import Call, read_call
from alcop_mlir.runtime.emulator.ptx.scalars import B32, B64, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Name,
    unsupported,
)

_MAX_TEXT = 1000  # characters of a text that are shown
_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcsp%])"
)
_WIDE = ("l", "ll", "j", "z", "t")  # of 8 bytes, where `long` has 64 bits


def translate(t: Translator, ins: Instruction) -> Op | None:
    """The op of a call of the runtime, None for any other function."""
    call = read_call(ins)
    make = RUNTIME.get(call.target)
    return None if make is None else make(t, ins, call)


def _argument(
    t: Translator, call: Call, number: int, scalar: Scalar, ins: Instruction
) -> Callable[[Cohort, Mask], Array]:
    """How to read one argument of a call, whichever way it is passed."""
    if number >= len(call.arguments):
        raise unsupported(ins, f"{call.target} takes more arguments")
    operand = call.arguments[number]
    name = operand.name if isinstance(operand, Name) else ""
    if name not in t.memory_map.local:
        read = t.read(operand, scalar, ins)
        return lambda cohort, mask: read(cohort.R)
    address, _ = t.base_address(Address(name, 0), ins)

    def load(cohort: Cohort, mask: Mask) -> Array:
        where = Access(cohort, mask, address(cohort.R), "local", scalar.size, ins)
        return access.load(where)

    return load


def _result(
    t: Translator, call: Call, scalar: Scalar, ins: Instruction
) -> Callable[[Cohort, Mask, Array], None]:
    """How to write the result of a call, if it is taken."""
    if not call.results:
        return lambda cohort, mask, value: None
    operand = call.results[0]
    name = operand.name if isinstance(operand, Name) else ""
    if name not in t.memory_map.local:
        write = t.writer(operand, scalar.unsigned, ins)
        return lambda cohort, mask, value: write(cohort, value, mask)
    address, _ = t.base_address(Address(name, 0), ins)

    def store(cohort: Cohort, mask: Mask, value: Array) -> None:
        where = Access(cohort, mask, address(cohort.R), "local", scalar.size, ins)
        access.store(where, value)

    return store


def _full(cohort: Cohort, value: Array | Mask) -> Array:
    """A register, or a mask, with an entry for each lane of each block."""
    shape = (cohort.blocks, cohort.warps, LANES)
    return np.broadcast_to(np.ones((1, 1, 1), bool) if value is None else value, shape)


def _assert_fail(t: Translator, ins: Instruction, call: Call) -> Op:
    types = (B64, B64, B32)
    reads = [_argument(t, call, i, one, ins) for i, one in enumerate(types)]

    def run(cohort: Cohort, mask: Mask) -> None:
        failed = _full(cohort, mask)
        first = tuple(np.argwhere(failed)[0])
        values = (_full(cohort, read(cohort, mask)) for read in reads)
        text, where, number = (int(value[first]) for value in values)
        memory = cohort.batch.memory
        raise fault(
            ins,
            f"assertion failed: {_text(memory, text)} "
            f"({_text(memory, where)}:{number})",
            location_of_mask(cohort, failed),
        )

    return run


def _text(memory: GlobalMemory, address: int) -> str:
    """The text that begins at an address, up to a zero byte; "?" where none does."""
    at = memory.buffer_at(address)
    if at < 0 or address >= memory.buffers[at].stop:
        return "?"
    buffer = memory.buffers[at]
    data = bytes(memory.bytes_of(buffer)[address - buffer.start :][:_MAX_TEXT])
    return data.split(b"\0")[0].decode("utf-8", "replace")


# --- printf ------------------------------------------------------------------------


def _print(t: Translator, ins: Instruction, call: Call) -> Op:
    form = _argument(t, call, 0, B64, ins)
    values = _argument(t, call, 1, B64, ins)
    result = _result(t, call, B32, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        on = _full(cohort, mask)
        texts = _full(cohort, form(cohort, mask))
        start = _full(cohort, values(cohort, mask))
        out = np.zeros(on.shape, U32)
        for address in np.unique(texts[on]).tolist():
            part = on & (texts == address)
            text = _text(cohort.batch.memory, address)
            given = _read_values(cohort, part, start, text, ins)
            _put_lines(cohort, part, text, given)
            out = np.where(part, U32.type(len(given)), out)
        result(cohort, mask, out)

    return run


def _layout(text: str) -> Iterator[tuple[int, int]]:
    """Offset and size of each value that a format takes."""
    offset = 0
    for found in _CONVERSION.finditer(text):
        if found["kind"] == "%":
            continue
        stars = [found["width"], found["precision"]].count("*")
        wide = found["kind"] in "eEfFgGaAsp" or found["length"] in _WIDE
        for size in [4] * stars + [8 if wide else 4]:
            offset = -(-offset // size) * size
            yield offset, size
            offset += size


def _read_values(
    cohort: Cohort, part: Array, start: Array, text: str, ins: Instruction
) -> list[Array]:
    """The bits of all values that a format takes, each a full register."""
    return [
        access.load(
            Access(cohort, part, start + U64.type(offset), "generic", size, ins)
        )
        for offset, size in _layout(text)
    ]


def _put_lines(cohort: Cohort, part: Array, text: str, given: list[Array]) -> None:
    """Prints for one lane after the other."""
    memory = cohort.batch.memory
    for lane in np.argwhere(part):
        at = tuple(lane)
        bits = [np.array(_full(cohort, value)[at]) for value in given]
        cohort.batch.kernel.printed.add(_formatted(memory, text, bits))


def _formatted(memory: GlobalMemory, text: str, bits: list[Array]) -> str:
    """What C prints of a format and the bits of its values."""
    left = iter(bits)

    def one(found: re.Match[str]) -> str:
        if found["kind"] == "%":
            return "%"
        flags, precision = found["flags"], found["precision"]
        width = str(_signed(next(left))) if found["width"] == "*" else found["width"]
        if precision == "*":
            precision = str(_signed(next(left)))
        tail = "" if precision is None else f".{precision}"
        return _one_value(memory, flags + width + tail, found["kind"], next(left))

    return _CONVERSION.sub(one, text)


def _one_value(memory: GlobalMemory, form: str, kind: str, bits: Array) -> str:
    if kind in "eEfFgG":
        return f"%{form}{kind}" % float(bits.view(np.float64))
    if kind in "aA":
        text = float(bits.view(np.float64)).hex()
        return text.upper() if kind == "A" else text
    if kind == "s":
        return f"%{form}s" % _text(memory, int(bits))
    if kind == "p":
        return f"%{form}s" % hex(int(bits))
    if kind == "c":
        return f"%{form}c" % (int(bits) & 0xFF)
    return f"%{form}{kind}" % (_signed(bits) if kind in "di" else int(bits))


def _signed(bits: Array) -> int:
    return int(bits.view(f"i{bits.dtype.itemsize}"))


# --- malloc and free -----------------------------------------------------------------


def _allocate(t: Translator, ins: Instruction, call: Call) -> Op:
    size = _argument(t, call, 0, B64, ins)
    result = _result(t, call, B64, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        on = _full(cohort, mask)
        wanted = _full(cohort, size(cohort, mask))
        out = np.zeros(on.shape, MOVED_AS[8])
        out[on] = cohort.batch.memory.allocate(wanted[on])
        result(cohort, mask, out)

    return run


def _release(t: Translator, ins: Instruction, call: Call) -> Op:
    address = _argument(t, call, 0, B64, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        on = _full(cohort, mask)
        given = _full(cohort, address(cohort, mask))
        memory = cohort.batch.memory
        for lane in np.argwhere(on):
            where = int(given[tuple(lane)])
            if where and not memory.release(where):
                only = np.zeros(on.shape, bool)
                only[tuple(lane)] = True
                raise fault(
                    ins,
                    f"free of address 0x{where:x}, which malloc did not return or "
                    "which is free",
                    location_of_mask(cohort, only),
                )

    return run


RUNTIME: dict[str, Callable[[Translator, Instruction, Call], Op]] = {
    "__assertfail": _assert_fail,
    "vprintf": _print,
    "malloc": _allocate,
    "free": _release,
}
