"""Draws the cases of the fuzz test: `draw_case(seed)`, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from differential import SCHEDULES, VISIBILITIES, Settings
from kernels import (
    BYTES,
    LOOP_FORMS,
    NARROW,
    SCALAR_FORMS,
    TABLES,
    TILE_FORMS,
    Buffer,
    Kernel,
    Loop,
    rows_in_parts,
)
from text_kernel import kernel_text

_T = TypeVar("_T")

MAX_THREADS = 64
THREAD_FORMS = ("scalar", "vector", "transfer", "async", "scalar-guarded")
OTHER_FORMS = (
    "vector-guarded",
    "transfer-guarded",
    "async-guarded",
    "vector-masked",
    "scalar-yield",
    "vector-yield",
    *LOOP_FORMS,
)
VIEWS = ("plain", "plain", "hoisted", "inside")
COMPUTING = ("scalar", "vector", "transfer", "scalar-loop")
READS = (
    "scalar",
    "steps",
    "vector-steps",
    "vector",
    "transfer",
    "run-time-steps",
    "branch",
)
MAX_SHARED, MAX_REGISTER = 6, 4
MAX_COPY_BYTES = 16
MAX_PARTS_BYTES = 12288  # of a buffer: some fit into the 48 KB of a block
# Effects by which a thread reads what others wrote to an argument: no promise of
# `llvm.noalias` holds there, as LLVM moves loads of such memory over barriers.
PASSED = ("same", "alias", "exchange", "replace")
# Effects by which a thread reads only what it wrote itself.
OWN = ("none", "store", "in-place", "atomic")
CP_ASYNC = (4, 8, 16)
LEAST = {True: 4, False: 2}  # bytes of a copy, in plain buffers and others


@dataclass(frozen=True)
class Case:
    """A kernel, how it is pipelined, and how it is run: visibility and schedule."""

    kernel: Kernel
    settings: Settings
    mode: tuple[str, str]

    def text(self) -> str:
        """As `.mlir`, with what is needed to run it again."""
        return "\n".join(
            [
                f"// {self.settings}",
                f"// mode {self.mode}, {self.kernel.threads} threads, arguments after "
                f"the arrays: {self.kernel.bounds()}",
                f"// {self.kernel}",
                kernel_text(self.kernel),
            ]
        )


def draw_case(seed: int) -> Case:
    """The case of that number."""
    draw = _Draw(seed)
    kernel = draw.kernel()
    mode = (draw.one_of(VISIBILITIES), draw.one_of(SCHEDULES))
    return Case(kernel, draw.settings(kernel), mode)


class _Draw:
    """Draws parts of a case; `plain` buffers are such as surely can be pipelined."""

    def __init__(self, seed: int):
        self._random = Random(seed)
        # Half of the kernels are odd in about one way, so that most are pipelined.
        self._calm = self.one_of((1, 5))

    def one_of(self, choices: Sequence[_T]) -> _T:
        return self._random.choice(choices)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def chance(self, of: int) -> bool:
        """True once in so many times."""
        return self._random.randrange(of) == 0

    def odd(self, of: int) -> bool:
        """True once in so many times, and more seldom in calm kernels."""
        return self.chance(of * self._calm)

    def buffer(self) -> Buffer:
        plain = not self.odd(4)
        element = self.one_of(sorted(BYTES, reverse=True))
        size = BYTES[element]
        widths = [w for w in (1, 2, 4, 8) if LEAST[plain] <= w * size <= MAX_COPY_BYTES]
        width = self.one_of((widths[0], *widths))  # wide ones take long
        copies = self.copies(element, width, plain)
        addresses = ["index", "carried", "wrapped"]
        if self.odd(3):
            addresses = ["branch", *TABLES]
        if not plain and element == "i32":
            addresses.append("dependent")
        guard, compute = "none", "none"
        if copies == ("register",) and self.chance(3):
            compute = "double"
        if not copies[0].startswith((*TILE_FORMS, "register")):
            if all("-" not in form for form in copies) and self.odd(3):
                guard = self.one_of(("part", "part", "each", "uniform", "stale"))
            if all(form in COMPUTING for form in copies) and self.odd(4):
                compute = self.one_of(("double", "cast"))
        if copies == ("register",):
            address = self.one_of(("index", "wrapped", *TABLES))
            return Buffer(element, width, copies, address=address, compute=compute)
        view = "slots" if self.odd(4) else self.one_of(VIEWS)
        if self.chance(6) and not copies[0].startswith(TILE_FORMS):
            view = "parts"
        if guard == "stale":
            addresses, view = ["index"], "plain"
        return Buffer(
            element,
            width,
            copies,
            view=view,
            address=self.one_of(addresses),
            read=self.one_of(READS),
            steps=self.number(1, 3),
            partner=self.one_of((1, 0, -1, 17)),
            guard=guard,
            fill=self.one_of(("zero", "zero", "one", "least")),
            compute="none" if compute == "cast" and element not in NARROW else compute,
        )

    def copies(self, element: str, width: int, plain: bool) -> tuple[str, ...]:
        """The forms of a buffer's copies."""
        if self.chance(5):
            return (self.one_of(TILE_FORMS),)
        if self.odd(12):
            return ("register",)
        size = BYTES[element]
        forms = [
            form
            for form in (*THREAD_FORMS, *OTHER_FORMS)
            if (width * size in CP_ASYNC or not form.startswith("async"))
            and (size in CP_ASYNC or not (plain and form.startswith("scalar")))
            and (width <= 2 or form not in SCALAR_FORMS)
        ]
        return tuple(self.one_of(forms) for _ in range(self.one_of((1, 1, 2))))

    def loop(self) -> Loop:
        step = self.number(1, 3)
        effects = ("none", "none", "store")
        if self.odd(2):
            effects = ("in-place", "replace", "atomic")
        drawn = tuple(self.buffer() for _ in range(self.one_of((1, 1, 2, 3))))
        first = drawn[0]
        if self.odd(4) and not first.is_register:
            effects = ("exchange",)
            if first.source == first.element:
                effects = ("same", "alias", "exchange")
        effect = self.one_of(effects)
        beside = ("tile", "pass", "reduction", "private", "barrier")
        loop = Loop(
            drawn,
            trips=self.number(0, 9),
            lower=self.one_of((0, 0, 1, 5)),
            step=step,
            slack=self.number(0, step - 1),
            dynamic=self.chance(2),
            effect=effect,
            barrier_first=self.chance(2),
            beside=(self.one_of(beside),) if self.odd(4) else (),
            index="i32" if self.odd(8) else "index",
            under=self.one_of(("index", "table", "both")) if self.odd(4) else "none",
            otherwise=self.chance(2),
        )
        return self.with_parts(loop)

    def with_parts(self, loop: Loop) -> Loop:
        """The loop, with parts of its buffers only if they are not too large."""
        bytes_per_row = max(b.row * BYTES[b.element] for b in loop.buffers)
        if rows_in_parts(MAX_THREADS, loop) * bytes_per_row > MAX_PARTS_BYTES:
            plain = [
                replace(b, view="plain") if b.view == "parts" else b
                for b in loop.buffers
            ]
            return replace(loop, buffers=tuple(plain))
        if not loop.has_parts:
            return loop
        is_own = all(b.view == "parts" for b in loop.buffers) and loop.effect in OWN
        return replace(loop, lower=0, open=is_own and self.chance(2))

    def kernel(self) -> Kernel:
        drawn = [self.loop()]
        reuse = False
        if self.chance(6):
            reuse = self.chance(2) and not drawn[0].has_parts
            second = self.loop()
            if reuse:
                # The buffers of the first loop may not suit what the second one stores.
                stores = second.effect in ("same", "alias")
                effect = "none" if stores else second.effect
                second = replace(
                    second, buffers=drawn[0].buffers, effect=effect, open=False
                )
            drawn.append(second)
        allocations = ["attribution", "attribution", "before", "inside"]
        if any("private" in loop.beside for loop in drawn):
            allocations = ["attribution"]  # gpu.launch takes no memref.alloca
        is_stale = any(b.guard == "stale" for loop in drawn for b in loop.buffers)
        if reuse or is_stale or any(loop.has_parts for loop in drawn):
            allocations = [one for one in allocations if one != "inside"]
        allocation = self.one_of(allocations)
        if allocation != "attribution":
            # A loop that runs less than twice is folded away, and arguments with it.
            drawn = [
                replace(loop, dynamic=loop.dynamic or loop.trips < 2) for loop in drawn
            ]
        first = drawn[0].buffers[0]
        relies_on_last_barrier = (
            len(drawn) == 1
            and drawn[0].effect == "store"
            and not drawn[0].barrier_first
            and not drawn[0].open
            and drawn[0].under == "none"
            and drawn[0].is_shared
        )
        may_refill = first.view == "plain" and not first.is_register
        passes_values = any(loop.effect in PASSED for loop in drawn)
        return Kernel(
            threads=self.one_of((MAX_THREADS // 2, MAX_THREADS)),
            loops=tuple(drawn),
            allocation=allocation,
            outer=not any(loop.open for loop in drawn) and self.odd(6),
            foreign=self.one_of(("committed", "open")) if self.odd(3) else "none",
            after=relies_on_last_barrier and self.chance(2),
            reuse=reuse,
            refill=may_refill and allocation != "inside" and self.odd(8),
            noalias=not passes_values and self.chance(6),
        )

    def settings(self, kernel: Kernel) -> Settings:
        """How to pipeline `kernel`, at more than one stage of some level."""
        stages = (1, 1)
        while stages == (1, 1):
            stages = (self.number(1, MAX_SHARED), self.number(1, MAX_REGISTER))
        has_parts = any(loop.has_parts for loop in kernel.loops)
        aliases = any(loop.effect == "alias" for loop in kernel.loops)
        return Settings(
            stages,
            tail=self.one_of(("predicated", "predicated", "wrap")),
            noalias=not aliases and not self.chance(6),
            cleanup=self.chance(2),
            unroll=self.chance(4),
            prepare=self.chance(2) or has_parts,
            version=self.chance(8),
            make_async=self.chance(4),
            optimize=self.chance(4),
        )
