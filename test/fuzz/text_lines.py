"""Lines of a kernel's text: names, constants, shared memory, what all parts need."""

from __future__ import annotations

from kernels import (
    OUTER_TRIPS,
    Array,
    Buffer,
    Kernel,
    Loop,
    rows_in_parts,
    rows_of,
    rows_per_index,
)

SPACE = "#gpu.address_space<workgroup>"
# The short form is read together with the first name of the next line.
GROUP = '"nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token'
SLOTS = 3  # of the view "slots"


class Lines:
    """Writes a kernel's text, line by line."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.threads = kernel.threads
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0

    def fresh(self) -> str:
        self.names += 1
        return f"%x{self.names}"

    def new(self, text: str) -> str:
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return name

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def open(self, line: str) -> None:
        self.emit(line)
        self.depth += 1

    def else_(self) -> None:
        self.depth -= 1
        self.emit("} else {")
        self.depth += 1

    def close(self, attributes: str = "") -> None:
        self.depth -= 1
        self.emit("}" + attributes)

    def constant(self, value: int) -> str:
        if 0 <= value <= 32:
            return f"%c{value}"
        return self.new(f"arith.constant {value} : index")

    def add(self, one: str, other: str) -> str:
        return self.new(f"arith.addi {one}, {other} : index")

    def barrier(self) -> None:
        self.emit("gpu.barrier")

    # -- memory ----------------------------------------------------------------------

    def index_of(self, number: int) -> str:
        """The index of a loop, as an `index`."""
        is_index = self.kernel.loops[number].index == "index"
        return f"%k{number}" if is_index else f"%j{number}"

    def outer_row(self) -> str:
        return "%o" if self.kernel.outer else "%c0"

    def per_thread_type(self, element: str) -> str:
        return Array("", (OUTER_TRIPS, self.threads), element).type

    def side_type(self, element: str) -> str:
        """Of shared memory with an element per thread."""
        return f"memref<{self.threads}x{element}, {SPACE}>"

    def padded(self, buffer: Buffer) -> int:
        """Rows: more than the threads where a view picks those in use."""
        return self.threads + (2 if buffer.view in ("hoisted", "inside") else 0)

    def shared(self, buffer: Buffer, rows: int) -> str:
        return f"memref<{rows}x{buffer.row}x{buffer.element}, {SPACE}>"

    def flat(self, buffer: Buffer, loop: Loop) -> str:
        """The type of a buffer in parts."""
        elements = rows_in_parts(self.threads, loop) * buffer.row
        return f"memref<{elements}x{buffer.element}, {SPACE}>"

    def allocated(self, buffer: Buffer, loop: Loop) -> str:
        """The type of the buffer itself."""
        if buffer.view == "parts":
            return self.flat(buffer, loop)
        slots = f"{SLOTS}x" if buffer.view == "slots" else ""
        shape = f"{slots}{self.padded(buffer)}x{buffer.row}x{buffer.element}"
        return f"memref<{shape}, {SPACE}>"

    def view_type(self, buffer: Buffer, loop: Loop) -> str:
        if buffer.view == "plain":
            return self.shared(buffer, self.threads)
        if buffer.view == "parts":
            return self.flat(buffer, loop)
        offset = "?" if buffer.view == "slots" else buffer.row
        return (
            f"memref<{self.threads}x{buffer.row}x{buffer.element}, "
            f"strided<[{buffer.row}, 1], offset: {offset}>, {SPACE}>"
        )

    def is_reused(self, number: int) -> bool:
        return bool(number) and self.kernel.reuse

    def buffer(self, number: int, place: int) -> str:
        return f"%b{0 if self.is_reused(number) else number}{place}"

    def target(self, number: int, place: int, buffer: Buffer) -> str:
        if buffer.view in ("plain", "parts"):
            return self.buffer(number, place)
        return f"%v{number}{place}"

    def element(
        self, number: int, place: int, buffer: Buffer, row: str, column: str
    ) -> str:
        """An element of what an iteration sees of a buffer."""
        target = self.target(number, place, buffer)
        if buffer.view != "parts":
            return f"{target}[{row}, {column}]"
        moved = self.constant(rows_per_index(self.threads, self.kernel.loops[number]))
        first = self.new(f"arith.muli {self.index_of(number)}, {moved} : index")
        of_row = self.constant(buffer.row)
        start = self.new(f"arith.muli {self.add(first, row)}, {of_row} : index")
        return f"{target}[{self.add(start, column)}]"

    def source_type(self, buffer: Buffer, loop: Loop) -> str:
        rows = rows_of(self.kernel, loop)
        return Array("", (rows, buffer.row), buffer.source).type

    # -- accesses --------------------------------------------------------------------

    def load(
        self, form: str, width: int, element: str, place: str, kind: str
    ) -> tuple[str, str]:
        """A value and its type."""
        if form == "scalar":
            return self.new(f"memref.load {place} : {kind}"), element
        vector = f"vector<{width}x{element}>"
        if form == "vector":
            return self.new(f"vector.load {place} : {kind}, {vector}"), vector
        return self.new(
            f"vector.transfer_read {place}, %zero_{element} {{in_bounds = [true]}} : "
            f"{kind}, {vector}"
        ), vector

    def store(self, form: str, value: str, kind: str, place: str, into: str) -> None:
        if form == "scalar":
            self.emit(f"memref.store {value}, {place} : {into}")
        elif form == "vector":
            self.emit(f"vector.store {value}, {place} : {into}, {kind}")
        else:
            self.emit(
                f"vector.transfer_write {value}, {place} {{in_bounds = [true]}} : "
                f"{kind}, {into}"
            )

    def accumulate(self, acc: str, value: str, element: str) -> str:
        """In integers exact, in floats rounded: both notice a changed order."""
        mul, add = ("muli", "addi") if element == "i32" else ("mulf", "addf")
        scaled = self.new(f"arith.{mul} {acc}, %factor_{element} : {element}")
        return self.new(f"arith.{add} {scaled}, {value} : {element}")

    def opposite(self) -> str:
        """A thread of another warp, where there is one."""
        return self.new(f"arith.xori %t, {self.constant(self.threads - 1)} : index")
