"""Loop kernels as data, and their text: what the fuzz test draws, shrinks and prints.

Every kernel is free of races as it stands, whatever its numbers are, so that what goes
wrong in its pipelined form is the pipeline's fault. The shape of all of them:

  for each loop:  copy rows of global arrays into shared buffers, one row per thread
                  barrier
                  read what *other* threads copied, and accumulate
                  barrier
  after it:       each thread stores its accumulators

A buffer has a row of `width * len(copies)` elements per thread; the source's row is
found from the loop's index or from a carried value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SPACE = "#gpu.address_space<workgroup>"
BYTES = {"i32": 4, "f32": 4, "f16": 2, "f64": 8}
TILE_FORMS = ("memref.copy", "linalg.copy", "linalg.generic")
ASYNC_FORMS = ("async", "async-guarded")
SCALAR_FORMS = ("scalar", "scalar-guarded")
OUTER_TRIPS = 2
WRAP = 11  # where the address form "wrapped" starts again; a prime, to visit all rows
# The short form is read together with the first name of the next line.
GROUP = '"nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token'
ALIGN_ATTRIBUTIONS = True
LOADED = 16  # entries of the table that the address form "loaded" looks up


@dataclass(frozen=True)
class Buffer:
    """A shared buffer and its copies.

    copies:  forms, each fills `width` elements of the thread's row; a tile form is
             alone and fills the whole buffer
    view:    how the loop sees the buffer: plain, or a view "hoisted" or made "inside"
    address: the source's row: "index", "carried", "wrapped", "loaded", "dependent"
    read:    "scalar", "vector", "transfer", "steps", "vector-steps", "run-time-steps",
             "branch"
    partner: a thread reads the row of thread `t xor partner`; -1: of another warp
    """

    element: str
    width: int
    copies: tuple[str, ...]
    view: str = "plain"
    address: str = "index"
    read: str = "scalar"
    steps: int = 2
    partner: int = 1

    @property
    def row(self) -> int:
        return self.width * len(self.copies)

    @property
    def is_tile(self) -> bool:
        return self.copies[0] in TILE_FORMS


@dataclass(frozen=True)
class Loop:
    """`for k = lower to lower + trips * step - slack step step`.

    effect: what else it does: "none"; "store" to an array of its own; to the source
            of its first buffer, by the "same" argument or by an "alias" of it;
            "exchange" values with other threads through a global array
    """

    buffers: tuple[Buffer, ...]
    trips: int
    lower: int = 0
    step: int = 1
    slack: int = 0
    dynamic: bool = False
    effect: str = "none"
    barrier_first: bool = False

    @property
    def upper(self) -> int:
        return self.lower + self.trips * self.step - self.slack

    @property
    def last(self) -> int:
        """The index in the last iteration, or where it would have begun."""
        return self.lower + max(0, self.trips - 1) * self.step


@dataclass(frozen=True)
class Kernel:
    """One block of `threads` threads.

    allocation: "attribution" of a gpu.func; memref.alloc in a gpu.launch, "before" the
                loops or "inside" them
    outer:      whether a sequential loop runs the loops twice
    foreign:    an asynchronous copy in flight over the loops: "none", "committed"
                before them, or left "open" and committed after them
    after:      whether threads read, after the loops, what others stored in the last
                iteration, relying on the barrier that ends it
    reuse:      whether a second loop fills the buffers of the first
    """

    threads: int
    loops: tuple[Loop, ...]
    allocation: str = "attribution"
    outer: bool = False
    foreign: str = "none"
    after: bool = False
    reuse: bool = False

    def text(self) -> str:
        return "\n".join(_Writer(self).module()) + "\n"

    def arrays(self) -> list[Array]:
        """The kernel's array arguments in order."""
        return list(_arrays(self))

    def bounds(self) -> list[int]:
        """The kernel's scalar arguments in order, after the arrays."""
        found = []
        for loop in self.loops:
            if loop.dynamic:
                found += [loop.lower, loop.upper]
            if any(b.read == "run-time-steps" for b in loop.buffers):
                found.append(loop.buffers[0].steps)
        return found


@dataclass(frozen=True)
class Array:
    """An array argument: its name, shape, element; `of` is the array that it aliases.

    is_table: it holds row numbers below WRAP
    """

    name: str
    shape: tuple[int, ...]
    element: str
    of: str = ""
    is_table: bool = False

    @property
    def type(self) -> str:
        return f"memref<{'x'.join(map(str, self.shape))}x{self.element}>"


def _arrays(kernel: Kernel) -> Iterator[Array]:
    threads = kernel.threads
    extra = OUTER_TRIPS + WRAP + LOADED
    for number, loop in enumerate(kernel.loops):
        rows = abs(loop.last) + 2 * loop.step + threads + extra
        for place, buffer in enumerate(loop.buffers):
            name = f"{number}{place}"
            yield Array(f"G{name}", (rows, buffer.row), buffer.element)
            if buffer.address == "loaded":
                yield Array(f"I{name}", (rows,), "i32", is_table=True)
            yield Array(f"R{name}", (OUTER_TRIPS, threads), buffer.element)
        first = loop.buffers[0]
        if loop.effect in ("store", "exchange"):
            yield Array(f"O{number}", (rows, threads), first.element)
        if loop.effect == "alias":
            yield Array(
                f"H{number}", (rows, first.row), first.element, of=f"G{number}0"
            )
    if kernel.foreign != "none":
        yield Array("F", (OUTER_TRIPS, threads), "i32")
        yield Array("RF", (OUTER_TRIPS, threads), "i32")
    if kernel.after:
        yield Array("RA", (OUTER_TRIPS, threads), kernel.loops[0].buffers[0].element)


def _without_unused_constants(lines: list[str]) -> list[str]:
    used = Counter(name for line in lines for name in re.findall(r"%\w+", line))
    return [
        line
        for line in lines
        if " = arith.constant" not in line or used[line.split()[0]] > 1
    ]


class _Writer:
    """Writes a kernel's text, line by line."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.threads = kernel.threads
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0

    # -- frame -----------------------------------------------------------------------

    def module(self) -> list[str]:
        kernel = self.kernel
        arguments = [f"%{a.name}: {a.type}" for a in kernel.arrays()]
        arguments += [f"%n{number}: index" for number in range(len(kernel.bounds()))]
        head = f"@kernel({', '.join(arguments)})"
        if kernel.allocation == "attribution":
            # Upstream aligns them to their elements only, cp.async needs more.
            aligned = " {llvm.align = 16 : i64}" if ALIGN_ATTRIBUTIONS else ""
            buffers = [f"{name} : {kind}{aligned}" for name, kind in self._buffers()]
            attributions = f" workgroup({', '.join(buffers)})" if buffers else ""
            self.lines += [
                "module attributes {gpu.container_module} {",
                "gpu.module @kernels {",
                f"gpu.func {head}{attributions} kernel attributes "
                f"{{known_block_size = array<i32: {self.threads}, 1, 1>}} {{",
            ]
            end = ["  gpu.return", "}", "}", "}"]
        else:
            self.lines += [
                "module {",
                f"func.func {head} {{",
                "  %one = arith.constant 1 : index",
                f"  %size = arith.constant {self.threads} : index",
                "  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, "
                "%gz = %one) threads(%lx, %ly, %lz) in (%sx = %size, %sy = %one, "
                "%sz = %one) {",
            ]
            end = ["  gpu.terminator", "  }", "  return", "}", "}"]
        self._constants()
        self._body()
        return _without_unused_constants(self.lines) + end

    def _buffers(self) -> Iterator[tuple[str, str]]:
        for number, loop in enumerate(self.kernel.loops):
            if number and self.kernel.reuse:
                continue
            for place, buffer in enumerate(loop.buffers):
                yield f"%b{number}{place}", self._shared(buffer, self._padded(buffer))
        if self.kernel.foreign != "none":
            yield "%f", f"memref<{self.threads}x1xi32, {SPACE}>"

    def _padded(self, buffer: Buffer) -> int:
        """Rows: more than the threads where a view picks those in use."""
        return self.threads + (0 if buffer.view == "plain" else 2)

    @staticmethod
    def _shared(buffer: Buffer, rows: int) -> str:
        return f"memref<{rows}x{buffer.row}x{buffer.element}, {SPACE}>"

    def _constants(self) -> None:
        self.emit("%t = gpu.thread_id x")
        for value in range(33):
            self.emit(f"%c{value} = arith.constant {value} : index")
        self.emit(f"%wrap = arith.constant {WRAP} : index")
        self.emit("%seven = arith.constant 7 : i32")
        for element in BYTES:
            is_int = element == "i32"
            zero, factor = ("0", "3") if is_int else ("0.0", "0.5")
            self.emit(f"%zero_{element} = arith.constant {zero} : {element}")
            self.emit(f"%factor_{element} = arith.constant {factor} : {element}")

    def _body(self) -> None:
        kernel = self.kernel
        if kernel.allocation == "before":
            for name, kind in self._buffers():
                self.emit(f"{name} = memref.alloc() : {kind}")
        elif kernel.allocation == "inside" and kernel.foreign != "none":
            kind = f"memref<{self.threads}x1xi32, {SPACE}>"
            self.emit(f"%f = memref.alloc() : {kind}")
        for number, loop in enumerate(kernel.loops):
            for place, buffer in enumerate(loop.buffers):
                if buffer.view == "hoisted" and kernel.allocation != "inside":
                    self._view(number, place, buffer)
        if kernel.outer:
            self.open("scf.for %o = %c0 to %c2 step %c1 {")
        self._foreign_issue()
        bound = 0
        for number, loop in enumerate(kernel.loops):
            if kernel.reuse:
                self.emit("gpu.barrier")  # what the loop before read last
            bound = self._loop(number, loop, bound)
        self._foreign_read()
        self._after()
        if kernel.outer:
            self.close()

    # -- one loop --------------------------------------------------------------------

    def _loop(self, number: int, loop: Loop, bound: int) -> int:
        lower, upper, bound = self._bounds(loop, bound)
        step = self.constant(loop.step)
        carried = [(f"%a{number}{p}", b.element) for p, b in enumerate(loop.buffers)]
        starts = [f"%zero_{b.element}" for b in loop.buffers]
        for place, buffer in enumerate(loop.buffers):
            if buffer.address in ("carried", "wrapped"):
                carried.append((f"%p{number}{place}", "index"))
                starts.append("%c1")
        pairs = ", ".join(
            f"{name} = {start}"
            for (name, _), start in zip(carried, starts, strict=True)
        )
        types = ", ".join(kind for _, kind in carried)
        results = f"%r{number}:{len(carried)}"
        self.open(
            f"{results} = scf.for %k{number} = {lower} to {upper} step {step} "
            f"iter_args({pairs}) -> ({types}) {{"
        )
        bound = self._iteration(number, loop, carried, bound)
        self.close()
        row = "%o" if self.kernel.outer else "%c0"
        for place, buffer in enumerate(loop.buffers):
            kind = Array("", (OUTER_TRIPS, self.threads), buffer.element).type
            self.emit(
                f"memref.store %r{number}#{place}, %R{number}{place}[{row}, %t] : "
                f"{kind}"
            )
        return bound

    def _bounds(self, loop: Loop, bound: int) -> tuple[str, str, int]:
        if loop.dynamic:
            return f"%n{bound}", f"%n{bound + 1}", bound + 2
        return self.constant(loop.lower), self.constant(loop.upper), bound

    def _iteration(
        self, number: int, loop: Loop, carried: list[tuple[str, str]], bound: int
    ) -> int:
        if loop.barrier_first:
            self.emit("gpu.barrier")
        for place, buffer in enumerate(loop.buffers):
            if self.kernel.allocation == "inside" and not self._reused(number):
                kind = self._shared(buffer, self._padded(buffer))
                self.emit(f"%b{number}{place} = memref.alloc() : {kind}")
            hoisted = buffer.view == "hoisted" and self.kernel.allocation != "inside"
            if buffer.view != "plain" and not hoisted:
                self._view(number, place, buffer)
            self._copies(number, place, buffer, loop)
        self._synchronise(loop)
        steps = ""
        if any(b.read == "run-time-steps" for b in loop.buffers):
            steps, bound = f"%n{bound}", bound + 1
        accumulated = [
            self._reads(number, place, buffer, steps)
            for place, buffer in enumerate(loop.buffers)
        ]
        accumulated[0] = self._effect(number, loop, accumulated[0])
        if not loop.barrier_first:
            self.emit("gpu.barrier")
        following = [
            self._next_address(f"%p{number}{place}", buffer)
            for place, buffer in enumerate(loop.buffers)
            if buffer.address in ("carried", "wrapped")
        ]
        values = ", ".join([*accumulated, *following])
        types = ", ".join(kind for _, kind in carried)
        self.emit(f"scf.yield {values} : {types}")
        return bound

    def _reused(self, number: int) -> bool:
        return bool(number) and self.kernel.reuse

    def _buffer(self, number: int, place: int) -> str:
        return f"{0 if self._reused(number) else number}{place}"

    def _view(self, number: int, place: int, buffer: Buffer) -> None:
        kind = self._shared(buffer, self._padded(buffer))
        self.emit(
            f"%v{number}{place} = memref.subview %b{self._buffer(number, place)}"
            f"[1, 0] [{self.threads}, {buffer.row}] [1, 1] : {kind} to "
            f"{self._view_type(buffer)}"
        )

    def _view_type(self, buffer: Buffer) -> str:
        if buffer.view == "plain":
            return self._shared(buffer, self.threads)
        return (
            f"memref<{self.threads}x{buffer.row}x{buffer.element}, "
            f"strided<[{buffer.row}, 1], offset: {buffer.row}>, {SPACE}>"
        )

    def _target(self, number: int, place: int, buffer: Buffer) -> str:
        if buffer.view == "plain":
            return f"%b{self._buffer(number, place)}"
        return f"%v{number}{place}"

    def _next_address(self, value: str, buffer: Buffer) -> str:
        moved = self.new(f"arith.addi {value}, %c2 : index")
        if buffer.address == "carried":
            return moved
        return self.new(f"arith.remui {moved}, %wrap : index")

    # -- copies ----------------------------------------------------------------------

    def _copies(self, number: int, place: int, buffer: Buffer, loop: Loop) -> None:
        base = self._base(number, place, buffer, loop)
        if buffer.is_tile:
            self._tile_copy(number, place, buffer, loop, base)
            return
        row = self.new(f"arith.addi {base}, %t : index")
        for part, form in enumerate(buffer.copies):
            width = 1 if form in SCALAR_FORMS else buffer.width
            for first in range(0, buffer.width, width):
                column = self.constant(part * buffer.width + first)
                self._thread_copy(number, place, buffer, loop, form, row, column)

    def _base(self, number: int, place: int, buffer: Buffer, loop: Loop) -> str:
        index = f"%k{number}"
        if self.kernel.outer:
            index = self.new(f"arith.addi {index}, %o : index")
        if buffer.address in ("carried", "wrapped"):
            # Of the rows that there are, whatever the number of iterations is.
            return self.new(f"arith.remui %p{number}{place}, %wrap : index")
        if buffer.address == "index":
            return index
        if buffer.address == "loaded":
            table = Array("", (self._rows(loop),), "i32").type
            row = self.new(f"memref.load %I{number}{place}[{index}] : {table}")
        else:
            row = self.new(f"arith.andi %a{number}{place}, %seven : i32")
        return self.new(f"arith.index_castui {row} : i32 to index")

    def _rows(self, loop: Loop) -> int:
        extra = OUTER_TRIPS + WRAP + LOADED
        return abs(loop.last) + 2 * loop.step + self.threads + extra

    def _source_type(self, buffer: Buffer, loop: Loop) -> str:
        return Array("", (self._rows(loop), buffer.row), buffer.element).type

    def _tile_copy(
        self, number: int, place: int, buffer: Buffer, loop: Loop, base: str
    ) -> None:
        tile = (
            f"memref<{self.threads}x{buffer.row}x{buffer.element}, "
            f"strided<[{buffer.row}, 1], offset: ?>>"
        )
        source = self.new(
            f"memref.subview %G{number}{place}[{base}, 0] [{self.threads}, "
            f"{buffer.row}] [1, 1] : {self._source_type(buffer, loop)} to {tile}"
        )
        target, kind = self._target(number, place, buffer), self._view_type(buffer)
        form = buffer.copies[0]
        if form == "memref.copy":
            self.emit(f"memref.copy {source}, {target} : {tile} to {kind}")
        elif form == "linalg.copy":
            self.emit(f"linalg.copy ins({source} : {tile}) outs({target} : {kind})")
        else:
            identity = "affine_map<(i, j) -> (i, j)>"
            self.open(
                f"linalg.generic {{indexing_maps = [{identity}, {identity}], "
                'iterator_types = ["parallel", "parallel"]} '
                f"ins({source} : {tile}) outs({target} : {kind}) {{"
            )
            element = buffer.element
            self.emit(f"^bb0(%in: {element}, %out: {element}):")
            self.emit(f"  linalg.yield %in : {element}")
            self.close()

    def _thread_copy(
        self,
        number: int,
        place: int,
        buffer: Buffer,
        loop: Loop,
        form: str,
        row: str,
        column: str,
    ) -> None:
        source, kind = f"%G{number}{place}", self._source_type(buffer, loop)
        target, target_kind = self._target(number, place, buffer), ""
        target_kind = self._view_type(buffer)
        into = f"{target}[%t, {column}]"
        if form.startswith("async"):
            self._async_copy(buffer, form, row, source, kind, into, target_kind, column)
            return
        guarded = form.endswith("-guarded")
        if guarded:
            inside = self._inside(row)
            self.open(f"scf.if {inside} {{")
        kind_of = form.removesuffix("-guarded").removesuffix("-masked")
        from_ = f"{source}[{row}, {column}]"
        if form.endswith("-masked"):
            value, value_type = self._masked_load(buffer, row, from_, kind)
        else:
            value, value_type = self._load(
                kind_of, buffer.width, buffer.element, from_, kind
            )
        self._store(kind_of, value, value_type, into, target_kind)
        if guarded:
            self.else_()
            if value_type == buffer.element:
                zero = f"%zero_{buffer.element}"
            else:
                number_ = "0" if buffer.element == "i32" else "0.0"
                zero = self.new(f"arith.constant dense<{number_}> : {value_type}")
            self._store(kind_of, zero, value_type, into, target_kind)
            self.close()

    def _masked_load(
        self, buffer: Buffer, row: str, place: str, kind: str
    ) -> tuple[str, str]:
        """A load of the first few elements, or none, or all; the rest is zero."""
        counts, one = self.constant(buffer.width + 3), self.constant(1)
        rest = self.new(f"arith.remui {row}, {counts} : index")
        count = self.new(f"arith.subi {rest}, {one} : index")
        mask_type = f"vector<{buffer.width}xi1>"
        mask = self.new(f"vector.create_mask {count} : {mask_type}")
        loaded = f"vector<{buffer.width}x{buffer.element}>"
        number = "0" if buffer.element == "i32" else "0.0"
        zero = self.new(f"arith.constant dense<{number}> : {loaded}")
        value = self.new(
            f"vector.maskedload {place}, {mask}, {zero} : {kind}, {mask_type}, "
            f"{loaded} into {loaded}"
        )
        return value, loaded

    def _inside(self, row: str) -> str:
        """Whether a source's row is to be read: true for some, false for others."""
        limit = self.constant(self.threads // 2 + 3)
        return self.new(f"arith.cmpi ult, {row}, {limit} : index")

    def _async_copy(
        self,
        buffer: Buffer,
        form: str,
        row: str,
        source: str,
        kind: str,
        into: str,
        target_kind: str,
        column: str,
    ) -> None:
        read = ""
        if form == "async-guarded":
            width = self.constant(buffer.width)
            count = self.new(f"arith.select {self._inside(row)}, {width}, %c0 : index")
            read = f", {count}"
        self.new(
            f"nvgpu.device_async_copy {source}[{row}, {column}], {into}, "
            f"{buffer.width}{read} : {kind} to {target_kind}"
        )

    def _synchronise(self, loop: Loop) -> None:
        if any(f in ASYNC_FORMS for b in loop.buffers for f in b.copies):
            group = self.new(GROUP)
            self.emit(f"nvgpu.device_async_wait {group} {{numGroups = 0 : i32}}")
        self.emit("gpu.barrier")

    # -- reads -----------------------------------------------------------------------

    def _reads(self, number: int, place: int, buffer: Buffer, steps: str) -> str:
        acc = f"%a{number}{place}"
        if buffer.read.endswith("steps"):
            end = steps if buffer.read == "run-time-steps" else f"%c{buffer.steps}"
            result, index, inner = self.fresh(), self.fresh(), self.fresh()
            self.open(
                f"{result} = scf.for {index} = %c0 to {end} step %c1 "
                f"iter_args({inner} = {acc}) -> ({buffer.element}) {{"
            )
            value = self._read_row(number, place, buffer, inner, index)
            self.emit(f"scf.yield {value} : {buffer.element}")
            self.close()
            return result
        if buffer.read == "branch":
            few = self.new(f"arith.cmpi ult, %t, %c{self.threads // 4} : index")
            result = self.fresh()
            self.open(f"{result} = scf.if {few} -> ({buffer.element}) {{")
            value = self._read_row(number, place, buffer, acc, "")
            self.emit(f"scf.yield {value} : {buffer.element}")
            self.else_()
            self.emit(f"scf.yield {acc} : {buffer.element}")
            self.close()
            return result
        return self._read_row(number, place, buffer, acc, "")

    def _read_row(
        self, number: int, place: int, buffer: Buffer, acc: str, step: str
    ) -> str:
        """`acc` and all elements of another thread's row, in a fixed order."""
        partner = self.constant(buffer.partner % self.threads)
        row = self.new(f"arith.xori %t, {partner} : index")
        if step:
            row = self.new(f"arith.xori {row}, {step} : index")
        target, kind = self._target(number, place, buffer), self._view_type(buffer)
        for part in range(len(buffer.copies)):
            column = part * buffer.width
            if buffer.read in ("vector", "transfer", "vector-steps"):
                form = "transfer" if buffer.read == "transfer" else "vector"
                place_ = f"{target}[{row}, {self.constant(column)}]"
                value, value_type = self._load(
                    form, buffer.width, buffer.element, place_, kind
                )
                for element in range(buffer.width):
                    one = self.new(
                        f"vector.extract {value}[{element}] : "
                        f"{buffer.element} from {value_type}"
                    )
                    acc = self._accumulate(acc, one, buffer.element)
                continue
            for element in range(buffer.width):
                place_ = f"{target}[{row}, {self.constant(column + element)}]"
                one = self.new(f"memref.load {place_} : {kind}")
                acc = self._accumulate(acc, one, buffer.element)
        return acc

    def _accumulate(self, acc: str, value: str, element: str) -> str:
        """In integers exact, in floats rounded: both notice a changed order."""
        mul, add = ("muli", "addi") if element == "i32" else ("mulf", "addf")
        scaled = self.new(f"arith.{mul} {acc}, %factor_{element} : {element}")
        return self.new(f"arith.{add} {scaled}, {value} : {element}")

    def _load(
        self, form: str, width: int, element: str, place: str, kind: str
    ) -> tuple[str, str]:
        if form == "scalar":
            return self.new(f"memref.load {place} : {kind}"), element
        vector = f"vector<{width}x{element}>"
        if form == "vector":
            return self.new(f"vector.load {place} : {kind}, {vector}"), vector
        return self.new(
            f"vector.transfer_read {place}, %zero_{element} {{in_bounds = [true]}} : "
            f"{kind}, {vector}"
        ), vector

    def _store(self, form: str, value: str, kind: str, place: str, into: str) -> None:
        if form == "scalar":
            self.emit(f"memref.store {value}, {place} : {into}")
        elif form == "vector":
            self.emit(f"vector.store {value}, {place} : {into}, {kind}")
        else:
            self.emit(
                f"vector.transfer_write {value}, {place} {{in_bounds = [true]}} : "
                f"{kind}, {into}"
            )

    # -- what else a kernel does -----------------------------------------------------

    def _effect(self, number: int, loop: Loop, acc: str) -> str:
        first = loop.buffers[0]
        index = f"%k{number}"
        if loop.effect in ("same", "alias"):
            # The row that the same place loads in the next iteration.
            later = self.new(f"arith.addi {index}, {self.constant(loop.step)} : index")
            row = self.new(f"arith.addi {later}, %t : index")
            array = f"%{'G' if loop.effect == 'same' else 'H'}{number}"
            array += "0" if loop.effect == "same" else ""
            kind = self._source_type(first, loop)
            self.emit(f"memref.store {acc}, {array}[{row}, %c0] : {kind}")
        kind = Array("", (self._rows(loop), self.threads), first.element).type
        if loop.effect in ("store", "exchange"):
            self.emit(f"memref.store {acc}, %O{number}[{index}, %t] : {kind}")
        if loop.effect == "exchange":
            self.emit("gpu.barrier")
            other = self._opposite()
            value = self.new(f"memref.load %O{number}[{index}, {other}] : {kind}")
            acc = self._accumulate(acc, value, first.element)
        return acc

    def _opposite(self) -> str:
        """A thread of another warp, where there is one."""
        return self.new(f"arith.xori %t, {self.constant(self.threads - 1)} : index")

    def _foreign_issue(self) -> None:
        if self.kernel.foreign == "none":
            return
        row = "%o" if self.kernel.outer else "%c0"
        source = Array("", (OUTER_TRIPS, self.threads), "i32").type
        self.emit(
            f"%fc = nvgpu.device_async_copy %F[{row}, %t], %f[%t, %c0], 1 : "
            f"{source} to memref<{self.threads}x1xi32, {SPACE}>"
        )
        if self.kernel.foreign == "committed":
            self.emit(f"%fg = {GROUP}")

    def _foreign_read(self) -> None:
        if self.kernel.foreign == "none":
            return
        if self.kernel.foreign == "open":
            self.emit(f"%fg = {GROUP}")
        self.emit("nvgpu.device_async_wait %fg {numGroups = 0 : i32}")
        self.emit("gpu.barrier")
        row = "%o" if self.kernel.outer else "%c0"
        other = self._opposite()
        kind = f"memref<{self.threads}x1xi32, {SPACE}>"
        value = self.new(f"memref.load %f[{other}, %c0] : {kind}")
        result = Array("", (OUTER_TRIPS, self.threads), "i32").type
        self.emit(f"memref.store {value}, %RF[{row}, %t] : {result}")
        self.emit("gpu.barrier")

    def _after(self) -> None:
        if not self.kernel.after:
            return
        loop = self.kernel.loops[0]
        element = loop.buffers[0].element
        other = self._opposite()
        kind = Array("", (self._rows(loop), self.threads), element).type
        last = self.constant(loop.last)
        value = self.new(f"memref.load %O0[{last}, {other}] : {kind}")
        row = "%o" if self.kernel.outer else "%c0"
        result = Array("", (OUTER_TRIPS, self.threads), element).type
        self.emit(f"memref.store {value}, %RA[{row}, %t] : {result}")
        self.emit("gpu.barrier")

    # -- text ------------------------------------------------------------------------

    def constant(self, value: int) -> str:
        if 0 <= value <= 32:
            return f"%c{value}"
        return self.new(f"arith.constant {value} : index")

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

    def close(self) -> None:
        self.depth -= 1
        self.emit("}")
