"""Loop kernels as data: what the fuzz test draws and shrinks; `kernel_text` writes.

Every kernel is free of races as it stands, whatever its numbers are, so that what goes
wrong in its pipelined form is the pipeline's fault. The shape of all of them:

  for each loop:  copy rows of global arrays into shared buffers, one row per thread
                  barrier
                  read what *other* threads copied, and accumulate
                  barrier
  after it:       each thread stores its accumulators

A buffer has a row of `width * len(copies)` elements per thread; the source's row is
found from the loop's index, from a carried value or from tables. Beside that, a loop
may use more shared memory, with barriers of its own, and private memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

BYTES = {"i32": 4, "f32": 4, "f16": 2, "f64": 8}
# What a copy that converts loads, to store the elements of the key.
NARROW = {"f32": "f16", "f64": "f32"}
# Of gathers: all rows, "some" valid, of a "width" below a row.
GATHERS = ("gather", "gather-some", "gather-width")
TILE_FORMS = ("memref.copy", "linalg.copy", "linalg.generic", *GATHERS)
ASYNC_FORMS = ("async", "async-guarded")
SCALAR_FORMS = ("scalar", "scalar-guarded", "scalar-yield")
LOOP_FORMS = ("scalar-loop", "scalar-forall")
CARRIED = ("carried", "wrapped", "chase")
TABLES = ("loaded", "rows", "two-level", "chase", "invariant")
OUTER_TRIPS = 2
WRAP = 11  # where the address form "wrapped" starts again; a prime, to visit all rows
ATOMICS = 4  # entries that are added to
LOADED = 16  # entries of the table that the address form "loaded" looks up


@dataclass(frozen=True)
class Buffer:
    """A shared buffer and its copies.

    copies:  forms, each fills `width` elements of the thread's row; a tile form is
             alone and fills the whole buffer; "register" too: there is no buffer, a
             thread reads the source's row itself
    view:    how the loop sees the buffer: plain, a view "hoisted" or made "inside",
             one of three "slots", by the loop's index; "parts": the buffer is flat,
             each iteration has a part of its own, by sums of indices
    address: the source's row: "index", "carried", "wrapped", "dependent"; of a table
             "loaded", one per thread ("rows"), of two tables ("two-level"), from the
             last one ("chase"), "invariant"; from a "branch" of arithmetic
    read:    "scalar", "vector", "transfer", "steps", "vector-steps", "run-time-steps",
             "branch"
    partner: a thread reads the row of thread `t xor partner`; -1: of another warp
    guard:   of all copies: "part" of the threads copy, and others read only that;
             a condition "each" thread has, or a "uniform" one, with other values else;
             "stale": what was there before stays where the condition does not hold
    fill:    what guarded copies store else: "zero", "one", "least"
    compute: what is stored: the element, "double", or "cast" from a narrower type
    """

    element: str
    width: int
    copies: tuple[str, ...]
    view: str = "plain"
    address: str = "index"
    read: str = "scalar"
    steps: int = 2
    partner: int = 1
    guard: str = "none"
    fill: str = "zero"
    compute: str = "none"

    @property
    def source(self) -> str:
        """The type of the source's elements."""
        return NARROW[self.element] if self.compute == "cast" else self.element

    @property
    def is_register(self) -> bool:
        return self.copies[0] == "register"

    def forms(self) -> set[str]:
        """What is counted."""
        found = {f"copy {form}" for form in self.copies}
        found |= {f"address {self.address}", f"view {self.view}"}
        found |= {f"guard {self.guard}", f"compute {self.compute}"}
        return found

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
            "exchange" values with other threads through a global array; "in-place":
            an accumulator in an array of its own; "replace" each row of one by what
            is computed from it; "atomic" additions to one
    open:   whether no barrier ends an iteration, as all buffers have parts
    beside: more that it does, by name: reads a "tile" of shared memory filled before;
            a "pass" of values to other threads, or a block "reduction", through shared
            memory with barriers of their own; a "private" accumulator in memory; a
            "barrier" under a uniform condition
    index:  the type of its index
    under:  a condition around the whole iteration, the same for all threads: of its
            "index", of an entry of a "table", or "both", one in the other
    otherwise: whether an iteration does something where that does not hold
    """

    buffers: tuple[Buffer, ...]
    trips: int
    lower: int = 0
    step: int = 1
    slack: int = 0
    dynamic: bool = False
    effect: str = "none"
    barrier_first: bool = False
    open: bool = False
    beside: tuple[str, ...] = ()
    index: str = "index"
    under: str = "none"
    otherwise: bool = False

    @property
    def has_parts(self) -> bool:
        """Whether an iteration has parts of flat buffers; `lower` is 0 then."""
        return any(buffer.view == "parts" for buffer in self.buffers)

    @property
    def is_shared(self) -> bool:
        """Whether threads read what others copied."""
        return any(not buffer.is_register for buffer in self.buffers)

    def forms(self) -> set[str]:
        """What is counted."""
        found = {form for buffer in self.buffers for form in buffer.forms()}
        found |= {f"beside {one}" for one in self.beside}
        found |= {f"effect {self.effect}", f"loop {self.index}"}
        found |= {"loop open"} if self.open else set()
        return found | {f"under {self.under}"}

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
    refill:     whether the first buffer is used for something else after the loops
    noalias:    whether the IR says that arguments do not overlap
    """

    threads: int
    loops: tuple[Loop, ...]
    allocation: str = "attribution"
    outer: bool = False
    foreign: str = "none"
    after: bool = False
    reuse: bool = False
    refill: bool = False
    noalias: bool = False

    def forms(self) -> set[str]:
        """What is counted."""
        found = {form for loop in self.loops for form in loop.forms()}
        flags = ("reuse", "refill", "noalias", "after", "outer")
        return found | {f"kernel {one}" for one in flags if getattr(self, one)}

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
    for number, loop in enumerate(kernel.loops):
        yield from _arrays_of_loop(kernel, number, loop)
    element = kernel.loops[0].buffers[0].element
    per_thread = (OUTER_TRIPS, kernel.threads)
    if kernel.foreign != "none":
        yield Array("F", per_thread, "i32")
        yield Array("RF", per_thread, "i32")
    if kernel.after:
        yield Array("RA", per_thread, element)
    if kernel.refill:
        yield Array("RB", per_thread, element)


def rows_of(kernel: Kernel, loop: Loop) -> int:
    """Of the sources of a loop."""
    extra = OUTER_TRIPS + WRAP + LOADED
    return abs(loop.last) + 2 * loop.step + kernel.threads + extra


def rows_per_index(threads: int, loop: Loop) -> int:
    """By how many rows parts of a buffer move where the loop's index grows by 1."""
    return -(-threads // loop.step)


def rows_in_parts(threads: int, loop: Loop) -> int:
    """Of a buffer that has a part, of a row per thread, for each iteration."""
    return rows_per_index(threads, loop) * loop.step * max(1, loop.trips)


def _arrays_of_loop(kernel: Kernel, number: int, loop: Loop) -> Iterator[Array]:
    rows, per_thread = rows_of(kernel, loop), (OUTER_TRIPS, kernel.threads)
    for place, buffer in enumerate(loop.buffers):
        name = f"{number}{place}"
        yield Array(f"G{name}", (rows, buffer.row), buffer.source)
        if buffer.address in TABLES:
            yield Array(f"I{name}", (rows,), "i32", is_table=True)
        if buffer.address == "two-level":
            yield Array(f"J{name}", (rows,), "i32", is_table=True)
        yield Array(f"R{name}", per_thread, buffer.element)
    first = loop.buffers[0]
    if loop.effect in ("store", "exchange", "in-place", "replace"):
        yield Array(f"O{number}", (rows, kernel.threads), first.element)
    if loop.effect == "alias":
        yield Array(f"H{number}", (rows, first.row), first.element, of=f"G{number}0")
    if loop.effect == "atomic":
        yield Array(f"C{number}", (ATOMICS,), "i32")
    if loop.under in ("table", "both"):
        yield Array(f"U{number}", (rows,), "i32", is_table=True)
    if "tile" in loop.beside:
        yield Array(f"Q{number}", (kernel.threads,), first.element)
