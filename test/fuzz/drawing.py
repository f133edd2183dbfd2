"""Draws the cases of the fuzz test: `draw_case(seed)`, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from differential import SCHEDULES, VISIBILITIES, Settings
from kernels import BYTES, TILE_FORMS, Buffer, Kernel, Loop

_T = TypeVar("_T")

THREAD_FORMS = ("scalar", "vector", "transfer", "async", "scalar-guarded")
GUARDED_FORMS = (
    "vector-guarded",
    "transfer-guarded",
    "async-guarded",
    "vector-masked",
)
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
                self.kernel.text(),
            ]
        )


def draw_case(seed: int) -> Case:
    """The case of that number."""
    draw = _Draw(seed)
    kernel = draw.kernel()
    mode = (draw.one_of(VISIBILITIES), draw.one_of(SCHEDULES))
    return Case(kernel, draw.settings(kernel), mode)


class _Draw:
    """Draws parts of a case; `plain` parts are such as surely can be pipelined."""

    def __init__(self, seed: int):
        self._random = Random(seed)

    def one_of(self, choices: Sequence[_T]) -> _T:
        return self._random.choice(choices)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def chance(self, of: int) -> bool:
        """True once in so many times."""
        return self._random.randrange(of) == 0

    def buffer(self, plain: bool) -> Buffer:
        element = self.one_of(sorted(BYTES, reverse=True))
        size = BYTES[element]
        widths = [w for w in (1, 2, 4, 8) if LEAST[plain] <= w * size <= MAX_COPY_BYTES]
        width = self.one_of((widths[0], *widths))  # wide ones take long
        copies: tuple[str, ...]
        if self.chance(4):
            copies = (self.one_of(TILE_FORMS),)
        else:
            forms = [
                form
                for form in (*THREAD_FORMS, *GUARDED_FORMS)
                if (width * size in CP_ASYNC or not form.startswith("async"))
                and (size in CP_ASYNC or not (plain and form.startswith("scalar")))
                and (width <= 2 or not form.startswith("scalar"))
            ]
            copies = tuple(self.one_of(forms) for _ in range(self.one_of((1, 1, 2))))
        addresses = ["index", "carried", "wrapped"]
        if not plain:
            addresses += ["loaded", "dependent"] if element == "i32" else ["loaded"]
        return Buffer(
            element,
            width,
            copies,
            view=self.one_of(("plain", "plain", "hoisted", "inside")),
            address=self.one_of(addresses),
            read=self.one_of(READS),
            steps=self.number(1, 3),
            partner=self.one_of((1, 0, -1, 17)),
        )

    def loop(self, plain: bool) -> Loop:
        step = self.number(1, 3)
        effects = ("none", "store") if plain else ("none", "same", "alias", "exchange")
        return Loop(
            tuple(self.buffer(plain) for _ in range(self.one_of((1, 1, 2, 3)))),
            trips=self.number(0, 9),
            lower=self.one_of((0, 0, 1, 5)),
            step=step,
            slack=self.number(0, step - 1),
            dynamic=self.chance(2),
            effect=self.one_of(effects),
            barrier_first=self.chance(2),
        )

    def kernel(self) -> Kernel:
        plain = not self.chance(3)
        drawn = [self.loop(plain)]
        reuse = False
        if self.chance(6):
            reuse = self.chance(4)
            second = self.loop(plain)
            if reuse:
                second = replace(second, buffers=drawn[0].buffers)
            drawn.append(second)
        allocations = ("attribution", "attribution", "before", "inside")
        allocation = self.one_of(allocations[: 3 if reuse else 4])
        if allocation != "attribution":
            # A loop that never runs is folded away, and the kernel's arguments with it.
            drawn = [
                replace(loop, dynamic=loop.dynamic or not loop.trips) for loop in drawn
            ]
        relies_on_last_barrier = (
            len(drawn) == 1
            and drawn[0].effect == "store"
            and not drawn[0].barrier_first
        )
        return Kernel(
            threads=self.one_of((32, 64)),
            loops=tuple(drawn),
            allocation=allocation,
            outer=self.chance(6),
            foreign=self.one_of(("none", "none", "none", "committed", "open")),
            after=relies_on_last_barrier and self.chance(2),
            reuse=reuse,
        )

    def settings(self, kernel: Kernel) -> Settings:
        """How to pipeline `kernel`, at more than one stage of some level."""
        stages = (1, 1)
        while stages == (1, 1):
            stages = (self.number(1, MAX_SHARED), self.number(1, MAX_REGISTER))
        aliases = any(loop.effect == "alias" for loop in kernel.loops)
        return Settings(
            stages,
            tail=self.one_of(("predicated", "predicated", "wrap")),
            noalias=not aliases and not self.chance(6),
            cleanup=self.chance(2),
            unroll=self.chance(4),
        )
