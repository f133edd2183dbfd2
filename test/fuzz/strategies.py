"""Hypothesis strategies for the kernels of the fuzz test; simple ones come first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from differential import SCHEDULES, VISIBILITIES, Settings
from hypothesis import strategies as st
from kernels import BYTES, TILE_FORMS, Buffer, Kernel, Loop

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


@st.composite
def buffers(draw: st.DrawFn, plain: bool) -> Buffer:
    """A buffer; if `plain` one whose copies can surely be pipelined."""
    element = draw(st.sampled_from(sorted(BYTES, reverse=True)))
    size = BYTES[element]
    widths = [w for w in (1, 2, 4, 8) if w * size <= MAX_COPY_BYTES]
    width = draw(st.sampled_from([w for w in widths if w * size >= LEAST[plain]]))
    copies: tuple[str, ...]
    if draw(st.integers(0, 3)) == 3:
        copies = (draw(st.sampled_from(TILE_FORMS)),)
    else:
        forms = [
            form
            for form in (*THREAD_FORMS, *GUARDED_FORMS)
            if (width * size in CP_ASYNC or not form.startswith("async"))
            and (size in CP_ASYNC or not (plain and form.startswith("scalar")))
        ]
        copies = tuple(draw(st.lists(st.sampled_from(forms), min_size=1, max_size=2)))
    addresses = ["index", "carried", "wrapped"]
    if not plain:
        addresses += ["loaded", "dependent"] if element == "i32" else ["loaded"]
    return Buffer(
        element,
        width,
        copies,
        view=draw(st.sampled_from(("plain", "plain", "hoisted", "inside"))),
        address=draw(st.sampled_from(addresses)),
        read=draw(st.sampled_from(READS)),
        steps=draw(st.integers(1, 4)),
        partner=draw(st.sampled_from((1, 0, -1, 17))),
    )


@st.composite
def loops(draw: st.DrawFn, plain: bool) -> Loop:
    """A loop over one to three buffers."""
    step = draw(st.integers(1, 3))
    effects = ("none", "store") if plain else ("none", "same", "alias", "exchange")
    return Loop(
        tuple(draw(st.lists(buffers(plain), min_size=1, max_size=3))),
        trips=draw(st.integers(0, 9)),
        lower=draw(st.sampled_from((0, 0, 1, 5))),
        step=step,
        slack=draw(st.integers(0, step - 1)),
        dynamic=draw(st.booleans()),
        effect=draw(st.sampled_from(effects)),
        barrier_first=draw(st.booleans()),
    )


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """A kernel of one or two loops."""
    plain = draw(st.integers(0, 2)) < 2
    drawn = [draw(loops(plain))]
    reuse = False
    if draw(st.integers(0, 3)) == 3:
        reuse = draw(st.integers(0, 3)) == 3
        second = draw(loops(plain))
        if reuse:
            second = replace(second, buffers=drawn[0].buffers)
        drawn.append(second)
    allocations = ["attribution", "attribution", "before", "inside"]
    allocation = draw(st.sampled_from(allocations[: 3 if reuse else 4]))
    if allocation != "attribution":
        # A loop that never runs is folded away, and with it the kernel's arguments.
        drawn = [
            replace(loop, dynamic=loop.dynamic or not loop.trips) for loop in drawn
        ]
    relies_on_last_barrier = (
        len(drawn) == 1 and drawn[0].effect == "store" and not drawn[0].barrier_first
    )
    return Kernel(
        threads=draw(st.sampled_from((32, 64))),
        loops=tuple(drawn),
        allocation=allocation,
        outer=draw(st.integers(0, 3)) == 3,
        foreign=draw(st.sampled_from(("none", "none", "none", "committed", "open"))),
        after=relies_on_last_barrier and draw(st.booleans()),
        reuse=reuse,
    )


@st.composite
def settings_of(draw: st.DrawFn, kernel: Kernel) -> Settings:
    """How to pipeline `kernel`, at more than one stage of some level."""
    stages = st.tuples(st.integers(1, MAX_SHARED), st.integers(1, MAX_REGISTER))
    aliases = any(loop.effect == "alias" for loop in kernel.loops)
    return Settings(
        draw(stages.filter(lambda both: both != (1, 1))),
        tail=draw(st.sampled_from(("predicated", "predicated", "wrap"))),
        noalias=not aliases and draw(st.integers(0, 5)) != 5,
        cleanup=draw(st.booleans()),
        unroll=draw(st.booleans()),
    )


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


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Everything together."""
    kernel = draw(kernels())
    mode = st.tuples(st.sampled_from(VISIBILITIES), st.sampled_from(SCHEDULES))
    return Case(kernel, draw(settings_of(kernel)), draw(mode))
